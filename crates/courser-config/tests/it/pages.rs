//! What is made from the table of settings for people to read.

use std::path::Path;
use std::sync::Arc;

use courser_config::{defaults_toml, from_matches, from_toml, load, reference_markdown, serve_command};

use crate::snapshot::{hold, root};

#[test]
fn the_reference_page_is_what_the_table_says() {
    hold(&reference_markdown(), &root().join("../../docs/configuration.md"))
        .unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn the_commented_defaults_are_the_defaults() {
    let text = defaults_toml();
    let mut written =
        from_toml(&text, Path::new("courser.toml")).unwrap_or_else(|problems| panic!("{problems}"));
    let flags = serve_command().try_get_matches_from(["serve", "--backend", "127.0.0.1:8080"]).unwrap();
    let unsaid = from_matches(&flags).unwrap();
    "default".clone_into(&mut Arc::make_mut(&mut written.config.listeners[0]).name);
    assert_eq!(written.config, unsaid.config);
}

#[test]
fn the_commented_defaults_are_right_without_their_comments_too() {
    // A listener has the one or the other.
    let text = defaults_toml().replace("\nbackend = ", "\n# backend = ");
    let whole: String =
        text.lines().filter(|line| !line.starts_with("# backend = ")).map(uncomment).collect();
    let loaded =
        from_toml(&whole, Path::new("courser.toml")).unwrap_or_else(|problems| panic!("{problems}\n{whole}"));
    assert_eq!(loaded.config.listeners[0].hosts.len(), 1);
}

/// A commented setting or heading as if it were live.
fn uncomment(line: &str) -> String {
    let bare = line.trim_start_matches("# ");
    let setting = bare
        .split_once(" = ")
        .is_some_and(|(key, _)| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
    let live = if setting || bare.starts_with('[') { bare } else { line };
    format!("{live}\n")
}

#[test]
fn the_packaged_example_is_right() {
    let loaded = load(&root().join("../../packaging/courser.example.toml"))
        .unwrap_or_else(|problems| panic!("{problems}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
}
