//! Values of dimensions in words: what tables have as rows and columns, and what cases are called.

use std::collections::{BTreeMap, BTreeSet};

use super::field::{OneOrMany, size};
use super::file::Dimensions;

/// Names of the dimensions that a group has several values of.
pub(super) type Swept = BTreeSet<&'static str>;

/// Order in which dimensions stand in names and titles.
const ORDER: [&str; 21] = [
    "version",
    "key",
    "cipher",
    "exchange",
    "segments",
    "alpn",
    "resumption",
    "cache",
    "new key",
    "object",
    "requests",
    "connections",
    "cores",
    "hosts",
    "backend",
    "rate",
    "capacity",
    "patience",
    "sources",
    "beside",
    "engine",
];

/// Which dimensions have several values.
pub(super) fn swept(of: &Dimensions) -> Swept {
    fn many<T>(field: &Option<OneOrMany<T>>) -> bool {
        matches!(field, Some(OneOrMany::Many(values)) if values.len() > 1)
    }
    let fields = [
        ("version", many(&of.version)),
        ("key", many(&of.key)),
        ("cipher", many(&of.suite)),
        ("exchange", many(&of.exchange)),
        ("segments", many(&of.segments)),
        ("alpn", many(&of.alpn)),
        ("resumption", many(&of.resumption)),
        ("cache", many(&of.cache)),
        ("new key", many(&of.reuse)),
        ("object", many(&of.object)),
        ("requests", many(&of.requests)),
        ("connections", many(&of.clients)),
        ("cores", many(&of.cores)),
        ("hosts", many(&of.hosts)),
        ("backend", many(&of.backend)),
        ("rate", many(&of.rate)),
        ("capacity", many(&of.capacity)),
        ("patience", many(&of.patience)),
        ("sources", many(&of.sources)),
        ("beside", many(&of.beside)),
        ("engine", many(&of.engine)),
    ];
    fields.into_iter().filter(|(_, many)| *many).map(|(name, _)| name).collect()
}

/// What the fields of a combination are called.
pub(super) fn labels(one: &Dimensions) -> Result<BTreeMap<String, String>, String> {
    fn first<T: Clone>(field: &Option<OneOrMany<T>>, label: impl Fn(T) -> String) -> Option<String> {
        field.as_ref().and_then(|values| values.values().into_iter().next()).map(label)
    }
    if let Some(OneOrMany::One(object)) = &one.object {
        size(object)?;
    }
    let labels = [
        ("version", first(&one.version, version)),
        ("key", first(&one.key, |key| key)),
        ("cipher", first(&one.suite, |suite| cipher(&suite))),
        ("exchange", first(&one.exchange, |group| group)),
        ("segments", first(&one.segments, |segments| segments.to_string())),
        ("alpn", first(&one.alpn, |protocol| protocol)),
        ("resumption", first(&one.resumption, |by| if by == "id" { "session ID".into() } else { by })),
        ("cache", first(&one.cache, |on| if on { "on" } else { "off" }.into())),
        ("new key", first(&one.reuse, reuse)),
        ("object", first(&one.object, |size| size)),
        (
            "requests",
            first(&one.requests, |count| if count == 0 { "keep-alive".into() } else { count.to_string() }),
        ),
        ("connections", first(&one.clients, |clients| clients.to_string())),
        ("cores", first(&one.cores, |cores| cores.to_string())),
        ("hosts", first(&one.hosts, |hosts| hosts.to_string())),
        ("backend", first(&one.backend, |backend| backend)),
        ("rate", first(&one.rate, |rate| format!("{rate}/s"))),
        ("capacity", first(&one.capacity, |percent| format!("{percent} %"))),
        ("patience", first(&one.patience, |seconds| format!("{seconds} s"))),
        ("sources", first(&one.sources, |count| count.to_string())),
        ("beside", first(&one.beside, |crowd| crowd)),
        ("engine", first(&one.engine, |engine| engine)),
    ];
    let there = labels.into_iter().filter_map(|(name, label)| Some((name.to_owned(), label?)));
    Ok(there.collect())
}

fn version(version: String) -> String {
    if version == "clear" { version } else { format!("TLS {version}") }
}

/// How often a new symmetric key is made, in the words of the tables of 2011.
fn reuse(times: u32) -> String {
    match times {
        0 => "never".into(),
        1 => "each".into(),
        times => format!("every {times}"),
    }
}

/// The cipher in a suite's name, as tables print it.
fn cipher(suite: &str) -> String {
    let after = suite.split_once("_WITH_").map_or(suite, |(_, after)| after);
    let name = after.trim_start_matches("TLS_").replace('_', "-");
    name.replace("AES-128", "AES128").replace("AES-256", "AES256")
}

/// The name of a case: the group's, then the values that it sweeps over.
pub(super) fn id(group: &str, labels: &BTreeMap<String, String>, swept: &Swept) -> String {
    let values = ORDER.iter().filter(|name| swept.contains(*name)).filter_map(|name| {
        let label = labels.get(*name)?;
        // Numbers alone would not say what they count.
        let bare = label.chars().all(|c| c.is_ascii_digit())
            || matches!(label.as_str(), "on" | "off" | "each" | "never" | "none");
        Some(slug(&if bare { format!("{name} {label}") } else { label.clone() }))
    });
    std::iter::once(group.to_owned()).chain(values).collect::<Vec<_>>().join("-")
}

fn slug(text: &str) -> String {
    let plain = text.to_lowercase().replace("tls 1.", "tls1").replace('+', "and");
    let words = plain.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// The heading of a case: all of its values.
pub(super) fn title(labels: &BTreeMap<String, String>) -> String {
    let phrases = ORDER.iter().filter_map(|name| Some(phrase(name, labels.get(*name)?)));
    phrases.collect::<Vec<_>>().join(", ")
}

fn phrase(name: &str, label: &str) -> String {
    match (name, label) {
        ("version" | "key" | "cipher" | "exchange", _) => label.to_owned(),
        ("segments", "1") => "a hello in 1 segment".to_owned(),
        ("segments", _) => format!("a hello in {label} segments"),
        ("alpn", "none") => "no ALPN".to_owned(),
        ("alpn", _) => format!("ALPN {label}"),
        ("new key", "each") => "a new session each".to_owned(),
        ("new key", "never") => "one session for ever".to_owned(),
        ("new key", _) => format!("a new session {label}"),
        ("cores", "1") => "1 core".to_owned(),
        ("cores", _) => format!("{label} cores"),
        ("hosts", "1") => "1 host".to_owned(),
        ("hosts", _) => format!("{label} hosts"),
        ("requests", "keep-alive") => "keep-alive".to_owned(),
        ("requests", "1") => "1 request".to_owned(),
        ("requests", _) => format!("{label} requests"),
        ("connections", _) => format!("{label} connections"),
        ("backend", "tls") => "TLS to the backend".to_owned(),
        ("backend", "balanced") => "balanced over several".to_owned(),
        ("backend", _) => "plain backend".to_owned(),
        ("resumption", _) => format!("by {label}"),
        ("capacity", _) => format!("{label} of capacity"),
        ("object", _) => label.to_owned(),
        ("patience", _) => format!("clients leave after {label}"),
        ("sources", _) => format!("from {label} addresses"),
        ("beside", "handshakes") => "beside handshakes at 5 times the capacity".to_owned(),
        ("beside", "passing") => "beside handshakes at 5 times the capacity for half of the time".to_owned(),
        ("beside", "slow hellos") => {
            "beside handshakes at 5 times the capacity whose hellos take 3 s".to_owned()
        }
        ("beside", "hellos") => "beside hellos and no more, at 5 times the capacity".to_owned(),
        ("beside", _) => "beside one network at 20 times the capacity".to_owned(),
        _ => format!("{name} {label}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ciphers_as_tables_print_them() {
        assert_eq!(cipher("TLS_AES_128_GCM_SHA256"), "AES128-GCM-SHA256");
        assert_eq!(cipher("TLS_RSA_WITH_AES_256_CBC_SHA"), "AES256-CBC-SHA");
        assert_eq!(cipher("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"), "CHACHA20-POLY1305-SHA256");
    }

    #[test]
    fn sizes() {
        assert_eq!((size("4 KB"), size("107 B"), size("0 B")), (Ok(4096), Ok(107), Ok(0)));
        assert!(size("4 kB").is_err() && size("x").is_err() && size("").is_err());
    }

    #[test]
    fn names_have_what_is_swept() {
        let labels = BTreeMap::from([
            ("version".to_owned(), "TLS 1.3".to_owned()),
            ("new key".to_owned(), "every 100".to_owned()),
            ("cores".to_owned(), "2".to_owned()),
        ]);
        let swept = Swept::from(["new key", "cores"]);
        assert_eq!(id("keys", &labels, &swept), "keys-every-100-cores-2");
        assert_eq!(title(&labels), "TLS 1.3, a new session every 100, 2 cores");
    }
    #[test]
    fn asking_for_no_protocol_has_a_name_too() {
        let named = |protocol: &str| {
            let labels = BTreeMap::from([("alpn".to_owned(), protocol.to_owned())]);
            (id("full", &labels, &Swept::from(["alpn"])), title(&labels))
        };
        assert_eq!(named("h2"), ("full-h2".into(), "ALPN h2".into()));
        assert_eq!(named("http/1.1"), ("full-http-1.1".into(), "ALPN http/1.1".into()));
        assert_eq!(named("none"), ("full-alpn-none".into(), "no ALPN".into()));
    }
}
