//! That the file, the flags and the pages know every setting of the table.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::config::Config;
use crate::setting::Flag;
use crate::source::SourceSpan;
use crate::value::{Literal, Value};
use crate::{defaults_toml, from_matches, from_toml, reference_markdown, serve_command};

/// Every setting that stands in the table, with its scope.
fn all() -> Vec<(Scope, &'static About)> {
    Scope::ALL
        .into_iter()
        .flat_map(|scope| scope.settings().into_iter().map(move |about| (scope, about)))
        .collect()
}

/// What some settings cannot be without.
const BESIDES: [(Scope, &str, &str); 7] = [
    (Scope::Sessions, "store", "redis://beside"),
    (Scope::Fleet, "key", "beside.key"),
    (Scope::Fleet, "listen", "10.0.0.9:9"),
    (Scope::Admin, "listen", "127.0.0.1:9440"),
    (Scope::Shared, "cert", "beside.pem"),
    (Scope::Shared, "client_auth", "optional"),
    (Scope::Shared, "client_ca", "beside.pem"),
];

/// Whether a line of a file, or a flag, is that of this key.
fn is_of(line: &str, key: &str) -> bool {
    line.split(" = ").next() == Some(key)
}

/// A file with one listener and one host, and this line at its place.
fn file(scope: Scope, line: &str) -> Config {
    let goes_elsewhere = is_of(line, "backend") || (scope == Scope::Shared && is_of(line, "pool"));
    let backend = if goes_elsewhere { "" } else { "backend = 'app:80'" };
    let servers = if is_of(line, "servers") { "" } else { "servers = 'app:80'" };
    let names = if line.starts_with("names") { "" } else { "names = 'b.example'" };
    let at = |place: Scope| if place == scope { line } else { "" };
    let besides = |place: Scope| {
        let lines = BESIDES
            .iter()
            .filter(|(other, key, ..)| *other == place && !(place == scope && is_of(line, key)));
        lines.map(|(_, key, value)| format!("{key} = '{value}'\n")).collect::<String>()
    };
    let text = format!(
        "{}\n[sessions]\n{}{}\n[fleet]\n{}{}\n[admin]\n{}{}\n[acme]\n{}\n[pool.shop]\n{servers}\n{}\n[[listener]]\n{backend}\n{}\n{}{}\n[[listener.host]]\n{names}\n{}\n",
        at(Scope::Process),
        besides(Scope::Sessions),
        at(Scope::Sessions),
        besides(Scope::Fleet),
        at(Scope::Fleet),
        besides(Scope::Admin),
        at(Scope::Admin),
        at(Scope::Acme),
        at(Scope::Pool),
        at(Scope::Listener),
        besides(Scope::Shared),
        at(Scope::Shared),
        at(Scope::Host),
    );
    from_toml(&text, Path::new("x.toml")).unwrap_or_else(|problems| panic!("{problems}")).config
}

/// The example of a setting as words of the command line.
fn words(about: &About) -> Vec<String> {
    let flag = |name: &str, value: &Value| [format!("--{name}"), word(value)];
    match about.flag {
        Flag::None => Vec::new(),
        Flag::Switch(name, ..) => vec![format!("--{name}")],
        Flag::Takes(name) => match Value::builtin(about.example) {
            Value { literal: Literal::List(items), .. } => {
                items.iter().flat_map(|item| flag(name, item)).collect()
            }
            value => flag(name, &value).to_vec(),
        },
    }
}

fn word(value: &Value) -> String {
    match &value.literal {
        Literal::Text(text) => text.clone(),
        Literal::Integer(number) => number.to_string(),
        Literal::Table(table) => {
            let part = |key: &str| word(table.get(key).expect("examples name both files"));
            format!("{},key={}", part("chain"), part("key"))
        }
        other => panic!("no flag takes {other:?}"),
    }
}

fn flags(words: &[String]) -> Config {
    let backend = ["--backend".to_owned(), "app:80".to_owned()];
    let backend = if words.contains(&backend[0]) { &[] } else { &backend[..] };
    let besides = BESIDES.iter().flat_map(|(scope, key, value)| {
        let about = scope.settings().into_iter().find(|about| about.key == *key).unwrap();
        let flag = format!("--{}", about.flag.name().unwrap());
        let given = words.contains(&flag);
        [flag, (*value).to_owned()].into_iter().filter(move |_| !given)
    });
    let words = ["serve".to_owned()]
        .into_iter()
        .chain(backend.iter().cloned())
        .chain(besides)
        .chain(words.iter().cloned());
    from_matches(&serve_command().get_matches_from(words))
        .unwrap_or_else(|problems| panic!("{problems}"))
        .config
}

/// The same configuration as flags would give it: no pools, no hosts, no name, no places.
fn without_places(mut config: Config, origin: &SourceSpan) -> Config {
    config.pools.clear();
    for listener in config.listeners.iter_mut().map(Arc::make_mut) {
        listener.hosts.clear();
        "default".clone_into(&mut listener.name);
        "listener 1".clone_into(&mut listener.session_scope);
        listener.default.certificates.iter_mut().for_each(|files| files.origin = origin.clone());
        listener.default.staples.iter_mut().for_each(|file| file.origin = origin.clone());
        listener.default.client_ca.iter_mut().for_each(|file| file.origin = origin.clone());
    }
    let Config { process, sessions, fleet, .. } = &mut config;
    let files =
        [&mut process.control, &mut sessions.file, &mut sessions.store_password, &mut sessions.store_ca];
    files.into_iter().chain([&mut fleet.state]).flatten().for_each(|file| file.origin = origin.clone());
    let accounts = [&mut process.user, &mut process.group];
    accounts.into_iter().flatten().for_each(|name| name.origin = origin.clone());
    sessions.store_cert.iter_mut().for_each(|files| files.origin = origin.clone());
    fleet.keys.iter_mut().for_each(|file| file.origin = origin.clone());
    sessions.store.iter_mut().for_each(|url| url.origin = origin.clone());
    fleet.listen.iter_mut().for_each(|address| address.origin = origin.clone());
    fleet.interface.iter_mut().for_each(|interface| interface.origin = origin.clone());
    config
}

#[test]
fn every_example_in_a_file_changes_the_configuration() {
    for (scope, about) in all() {
        let changed = file(scope, &format!("{} = {}", about.key, about.example));
        assert_ne!(changed, file(scope, ""), "{} = {}", about.key, about.example);
    }
}

#[test]
fn every_flag_does_what_its_line_in_a_file_does() {
    let origin = Value::builtin("0").origin;
    for (scope, about) in all().into_iter().filter(|(_, about)| about.flag != Flag::None) {
        let line = file(scope, &format!("{} = {}", about.key, about.example));
        let flag = flags(&words(about));
        assert_eq!(without_places(flag, &origin), without_places(line, &origin), "{:?}", words(about));
    }
}

#[test]
fn every_setting_is_on_both_pages() {
    let (page, file) = (reference_markdown(), defaults_toml());
    for (_, about) in all() {
        assert!(page.contains(&format!("### `{}`\n\n{}", about.key, about.doc)), "{}", about.key);
        assert!(
            file.contains(&format!("\n{} = ", about.key)) || file.contains(&format!("\n# {} = ", about.key)),
            "{}",
            about.key
        );
    }
}

#[test]
fn no_flag_and_no_key_of_a_scope_stands_twice() {
    let mut flags: Vec<_> = all().iter().filter_map(|(_, about)| about.flag.name()).collect();
    let count = flags.len();
    flags.sort_unstable();
    flags.dedup();
    assert_eq!(flags.len(), count);
    for scope in [Scope::Listener, Scope::Host] {
        let shared = Scope::Shared.settings();
        let clash =
            scope.settings().into_iter().find(|about| shared.iter().any(|other| other.key == about.key));
        assert!(clash.is_none(), "{clash:?}");
    }
}
