//! The schemes that a store may be named by.

use super::error::BadStoreUrl;

/// What the first word of a URL means.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Server,
    Socket,
    Sentinel,
    Cluster,
}

impl Kind {
    /// As the servers themselves have it.
    pub(super) fn default_port(self) -> u16 {
        if self == Self::Sentinel { 26379 } else { 6379 }
    }
}

const SCHEMES: [Scheme; 15] = [
    plain("redis", Kind::Server),
    tls("rediss", Kind::Server),
    plain("redis-sentinel", Kind::Sentinel),
    tls("rediss-sentinel", Kind::Sentinel),
    plain("redis-cluster", Kind::Cluster),
    tls("rediss-cluster", Kind::Cluster),
    plain("redis+unix", Kind::Socket),
    plain("valkey", Kind::Server),
    tls("valkeys", Kind::Server),
    plain("valkey-sentinel", Kind::Sentinel),
    tls("valkeys-sentinel", Kind::Sentinel),
    plain("valkey-cluster", Kind::Cluster),
    tls("valkeys-cluster", Kind::Cluster),
    plain("valkey+unix", Kind::Socket),
    plain("unix", Kind::Socket),
];

const fn plain(name: &'static str, kind: Kind) -> Scheme {
    Scheme { name, kind, tls: false }
}

const fn tls(name: &'static str, kind: Kind) -> Scheme {
    Scheme { name, kind, tls: true }
}

/// The scheme, and what follows `://`.
pub(super) fn split(url: &str) -> Result<(&'static Scheme, &str), BadStoreUrl> {
    let is_scheme = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    let end = url.find(|char| !is_scheme(char)).unwrap_or(url.len());
    let (word, rest) = url.split_at(end);
    let known = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(word));
    match (known, rest.strip_prefix("://")) {
        (Some(scheme), Some(rest)) => Ok((scheme, rest)),
        (None, Some(_)) => Err(BadStoreUrl::Scheme { given: format!("{word}://"), nearest: nearest(word) }),
        // `redis:/host` and the like. Of anything else nothing is quoted: the word may be a password.
        (Some(scheme), None) if rest.starts_with(':') => {
            let slashes: String = rest[1..].chars().take_while(|&char| char == '/').collect();
            Err(BadStoreUrl::Scheme { given: format!("{word}:{slashes}"), nearest: scheme.name })
        }
        _ => Err(BadStoreUrl::NoScheme),
    }
}

/// The first scheme that takes the fewest changes.
fn nearest(word: &str) -> &'static str {
    let distance = |scheme: &&Scheme| strsim::damerau_levenshtein(scheme.name, &word.to_ascii_lowercase());
    SCHEMES.iter().min_by_key(distance).map_or("redis", |scheme| scheme.name)
}
