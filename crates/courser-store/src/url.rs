//! Where a store is, as one line of configuration. Parsed once, into a value that cannot be wrong.
//!
//! No password is ever shown: not by `Display`, not by `Debug`, and not in an error, which quotes nothing of what may be
//! one.

mod error;
mod scheme;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use zeroize::Zeroizing;

pub use error::BadStoreUrl;
use scheme::{Kind, Scheme};
use text::{decode, encode};

/// The address of a store, its user and its password.
///
/// ```text
/// redis://[user[:password]@]host[:6379][/db]                       one server; rediss:// with TLS
/// redis-sentinel://[…@]host[:26379],host,…/master[/db]             whatever server the sentinels name; rediss-sentinel://
/// redis-cluster://[…@]host[:6379],host,…                           a cluster, found by any of its nodes; rediss-cluster://
/// redis+unix://[…@]/path/to/socket[?db=1]                          a server on this host
/// ```
///
/// `valkey` may stand for `redis` in each. IPv6 addresses are in brackets; what is special in a URL is percent-encoded in
/// user and password (RFC 3986, section 2.1).
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl {
    scheme: &'static Scheme,
    user: Option<String>,
    password: Option<Zeroizing<String>>,
    place: UrlAuthority,
    db: u16,
}

/// A server's name or address, and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UrlHost {
    /// A DNS name, an IPv4 address, or an IPv6 address without brackets.
    pub(crate) name: String,
    /// Its TCP port.
    pub(crate) port: u16,
}

/// Which servers, and how they belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UrlAuthority {
    Server(UrlHost),
    Socket(PathBuf),
    Sentinel { sentinels: Vec<UrlHost>, master: String },
    Cluster(Vec<UrlHost>),
}

impl StoreUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`BadStoreUrl`] names the part that is wrong, and what would be right.
    pub fn parse(url: &str) -> Result<Self, BadStoreUrl> {
        let (scheme, rest) = scheme::split(url)?;
        let (user_info, rest) = split_user_info(rest)?;
        let (user, password) = user_info.map_or(Ok((None, None)), read_user_info)?;
        let (place, db) = match scheme.kind {
            Kind::Socket => read_socket(rest)?,
            kind => read_network(scheme, kind, rest)?,
        };
        Ok(Self { scheme, user, password, place, db })
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.scheme.tls
    }

    /// Whether a password is part of the URL. One in a file is safer: a command line can be read by every user.
    pub fn has_password(&self) -> bool {
        self.password.is_some()
    }

    pub(crate) fn place(&self) -> &UrlAuthority {
        &self.place
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn password(&self) -> Option<&Zeroizing<String>> {
        self.password.as_ref()
    }

    pub(crate) fn db(&self) -> u16 {
        self.db
    }
}

/// The URL, without the password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name)?;
        if let Some(user) = &self.user {
            write!(f, "{}@", encode(user))?;
        }
        match &self.place {
            UrlAuthority::Server(host) => write!(f, "{host}")?,
            UrlAuthority::Socket(path) => f.write_str(&encode(&path.to_string_lossy()))?,
            UrlAuthority::Sentinel { sentinels, master } => {
                write!(f, "{}/{}", Hosts(sentinels), encode(master))?;
            }
            UrlAuthority::Cluster(nodes) => write!(f, "{}", Hosts(nodes))?,
        }
        match (&self.place, self.db) {
            (_, 0) => Ok(()),
            (UrlAuthority::Socket(_), db) => write!(f, "?db={db}"),
            (_, db) => write!(f, "/{db}"),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

impl fmt::Display for UrlHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

struct Hosts<'a>(&'a [UrlHost]);

impl fmt::Display for Hosts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(index, host)| {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{host}")
        })
    }
}

/// At the last `@` of all: what is before is never quoted, since a password may be in it.
fn split_user_info(rest: &str) -> Result<(Option<&str>, &str), BadStoreUrl> {
    let Some((user_info, rest)) = rest.rsplit_once('@') else { return Ok((None, rest)) };
    match user_info.chars().find(|&char| "/?#@,[] ".contains(char)) {
        None => Ok((Some(user_info), rest)),
        Some(special) => Err(BadStoreUrl::UserInfo { special }),
    }
}

type UserInfo = (Option<String>, Option<Zeroizing<String>>);

fn read_user_info(user_info: &str) -> Result<UserInfo, BadStoreUrl> {
    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (user_info, None),
    };
    let decoded = |text: &str| decode(text).ok_or(BadStoreUrl::UserInfo { special: '%' });
    let user = Some(user).filter(|user| !user.is_empty()).map(decoded).transpose()?;
    let password = password.filter(|password| !password.is_empty()).map(decoded).transpose()?;
    Ok((user, password.map(Zeroizing::new)))
}

fn read_socket(rest: &str) -> Result<(UrlAuthority, u16), BadStoreUrl> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let db = match query {
        "" => 0,
        query => read_db(query.strip_prefix("db=").ok_or(BadStoreUrl::Query)?)?,
    };
    if path.len() < 2 || !path.starts_with('/') || path.contains('#') {
        return Err(BadStoreUrl::Path { given: path.to_owned() });
    }
    let decoded = decode(path).ok_or_else(|| BadStoreUrl::Path { given: path.to_owned() })?;
    Ok((UrlAuthority::Socket(decoded.into()), db))
}

fn read_network(scheme: &Scheme, kind: Kind, rest: &str) -> Result<(UrlAuthority, u16), BadStoreUrl> {
    if rest.contains(['?', '#']) {
        return Err(BadStoreUrl::Query);
    }
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let hosts = read_hosts(hosts, kind.default_port())?;
    let mut path = path.strip_suffix('/').unwrap_or(path).split('/').filter(|part| !part.is_empty());
    let place = match kind {
        Kind::Sentinel => {
            let master = path.next().and_then(decode).ok_or(BadStoreUrl::NoMaster)?;
            UrlAuthority::Sentinel { sentinels: hosts, master }
        }
        Kind::Cluster => UrlAuthority::Cluster(hosts),
        Kind::Server | Kind::Socket => UrlAuthority::Server(the_one(hosts, scheme)?),
    };
    let db = path.next().map_or(Ok(0), read_db)?;
    match path.next() {
        Some(given) => Err(BadStoreUrl::TooLong { given: given.to_owned() }),
        None if kind == Kind::Cluster && db != 0 => Err(BadStoreUrl::ClusterDb),
        None => Ok((place, db)),
    }
}

fn the_one(mut hosts: Vec<UrlHost>, scheme: &Scheme) -> Result<UrlHost, BadStoreUrl> {
    match (hosts.pop(), hosts.is_empty()) {
        (Some(host), true) => Ok(host),
        _ => Err(BadStoreUrl::ManyHosts { scheme: scheme.name }),
    }
}

fn read_hosts(hosts: &str, default_port: u16) -> Result<Vec<UrlHost>, BadStoreUrl> {
    hosts.split(',').map(|host| read_host(host, default_port)).collect()
}

/// `name`, `name:port`, `[v6]` or `[v6]:port`. What follows the colon is quoted in no error unless it is a number: where
/// the `@` was forgotten, it is a password.
fn read_host(given: &str, default_port: u16) -> Result<UrlHost, BadStoreUrl> {
    if given.parse::<Ipv6Addr>().is_ok() {
        return Err(BadStoreUrl::Brackets { given: given.to_owned() });
    }
    let (name, port) = match given.strip_prefix('[') {
        Some(rest) => read_bracketed(rest)?,
        None => given.split_once(':').map_or((given, None), |(name, port)| (name, Some(port))),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    match name {
        "" => Err(BadStoreUrl::NoHost),
        name if !name.bytes().all(is_name) => Err(BadStoreUrl::Host { given: name.to_owned() }),
        name => Ok(UrlHost { name: name.to_owned(), port: port.map_or(Ok(default_port), read_port)? }),
    }
}

/// What follows `[`.
fn read_bracketed(rest: &str) -> Result<(&str, Option<&str>), BadStoreUrl> {
    let (address, port) = rest.split_once(']').ok_or(BadStoreUrl::Host { given: "[".to_owned() })?;
    match port.strip_prefix(':') {
        _ if address.parse::<Ipv6Addr>().is_err() => Err(BadStoreUrl::Host { given: address.to_owned() }),
        None if !port.is_empty() => Err(BadStoreUrl::Port { given: None }),
        port => Ok((address, port)),
    }
}

fn read_port(given: &str) -> Result<u16, BadStoreUrl> {
    let digits = Some(given).filter(|given| given.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|&port| port != 0);
    port.ok_or_else(|| BadStoreUrl::Port { given: digits.map(str::to_owned) })
}

fn read_db(given: &str) -> Result<u16, BadStoreUrl> {
    let digits = given.bytes().all(|byte| byte.is_ascii_digit());
    given.parse().ok().filter(|_| digits).ok_or_else(|| BadStoreUrl::Db { given: given.to_owned() })
}
