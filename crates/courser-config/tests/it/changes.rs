//! What is different between two files, as a reload says it.

use std::path::Path;

use courser_config::{Change, from_toml};

const BEFORE: &str = r#"
workers = 2
[sessions]
lifetime = "1h"
[pool.shop]
servers = ["10.0.0.1:80"]
[[listener]]
name = "web"
listen = ["127.0.0.1:1"]
cert = "a.pem"
pool = "shop"
[[listener.host]]
names = ["b.example"]
cert = "b.pem"
"#;

fn changes(after: &str) -> Vec<Change> {
    let load = |text: &str| from_toml(text, Path::new("courser.toml")).expect("it is valid").written;
    load(BEFORE).changes_to(&load(after))
}

fn lines(after: &str) -> Vec<String> {
    changes(after).iter().map(ToString::to_string).collect()
}

#[test]
fn comments_order_and_white_space_are_no_change() {
    let after = BEFORE.replace("workers = 2", "# more\nworkers   =  2").replace("\"a.pem\"", "'a.pem'");
    assert_eq!(changes(&after), []);
}

#[test]
fn each_change_is_said_with_its_place() {
    let after = BEFORE
        .replace("[\"10.0.0.1:80\"]", "[\"10.0.0.1:80\", { address = \"10.0.0.2:80\", weight = 2 }]")
        .replace("lifetime = \"1h\"", "tickets_per_handshake = 1")
        .replace("\"a.pem\"", "\"c.pem\"")
        .replace("\"b.pem\"", "\"d.pem\"");
    let expected = [
        "listener web, host b.example: cert: \"b.pem\" -> \"d.pem\"",
        "listener web: cert: \"a.pem\" -> \"c.pem\"",
        "pool.shop.servers: [\"10.0.0.1:80\"] -> [\"10.0.0.1:80\", { address = \"10.0.0.2:80\", weight = 2 }]",
        "sessions.lifetime: was \"1h\", not set any more",
        "sessions.tickets_per_handshake: set to 1",
    ];
    assert_eq!(lines(&after), expected);
}

#[test]
fn settings_of_the_process_are_told_from_those_of_a_generation() {
    let needs_restart = |change: &Change| change.needs_restart;
    assert!(changes(&BEFORE.replace("workers = 2", "workers = 3")).iter().all(needs_restart));
    assert!(!changes(&BEFORE.replace("a.pem", "c.pem")).iter().any(needs_restart));
}

#[test]
fn a_url_that_may_hold_a_password_is_not_shown() {
    let with = |url: &str| {
        let text = format!(
            "[fleet]\nkey = 'k'\n[sessions]\nstore = '{url}'\n[[listener]]\nbackend = '10.0.0.1:80'\n"
        );
        from_toml(&text, Path::new("courser.toml")).expect("it is valid").written
    };
    let changes = with("redis://:old@a:1/0").changes_to(&with("redis://:new@a:1/0"));
    assert_eq!(changes.iter().map(ToString::to_string).collect::<Vec<_>>(), ["sessions.store: changed"]);
}
