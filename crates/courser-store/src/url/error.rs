//! What is wrong with a store's URL. Nothing that may be a password is in it.

use std::fmt;

/// Which part of a URL is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`given` is the part as it was written, the rest is said by Display")]
pub enum BadStoreUrl {
    /// It does not begin with a scheme.
    NoScheme,
    /// The scheme is none of ours.
    Scheme { given: String, nearest: &'static str },
    /// User or password have a character that must be encoded.
    UserInfo { special: char },
    /// A host is missing.
    NoHost,
    /// No name, no address.
    Host { given: String },
    /// An IPv6 address without brackets.
    Brackets { given: String },
    /// No port: the number, if it is one.
    Port { given: Option<String> },
    /// Several hosts where there is one.
    ManyHosts { scheme: &'static str },
    /// A sentinel's master is not named.
    NoMaster,
    /// No number of a database.
    Db { given: String },
    /// A cluster has one database.
    ClusterDb,
    /// The path has too many parts.
    TooLong { given: String },
    /// No path of a socket.
    Path { given: String },
    /// `?` or `#`, which mean nothing here.
    Query,
}

impl fmt::Display for BadStoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoScheme => f.write_str("no scheme; write redis://host or rediss://host"),
            Self::Scheme { given, nearest } => {
                write!(f, "{given} is no scheme of a session store; did you mean {nearest}://?")
            }
            Self::UserInfo { special: '%' } => {
                f.write_str("in user or password, a % without two hexadecimal digits; write % itself as %25")
            }
            Self::UserInfo { special } => {
                let code = u32::from(*special);
                write!(f, "in user or password, a {special:?}; write it as %{code:02X}")
            }
            Self::NoHost => f.write_str("no host; write redis://host or redis://host:6379"),
            Self::Host { given } => {
                write!(f, "{given:?} is no host; write a name, an IPv4 address, or [IPv6]")
            }
            Self::Brackets { given } => {
                write!(f, "{given} is an IPv6 address; write it in brackets: [{given}]")
            }
            Self::Port { given } => {
                let given = given.as_deref().unwrap_or("what follows the host's colon");
                write!(f, "{given} is no port; write a number from 1 to 65535")
            }
            Self::ManyHosts { scheme } => {
                write!(
                    f,
                    "{scheme}:// has one host; for several use {scheme}-cluster:// or {scheme}-sentinel://"
                )
            }
            Self::NoMaster => {
                f.write_str("the name of the master is missing; write …/mymaster after the hosts")
            }
            Self::Db { given } => write!(f, "{given:?} is no database; write a number, as in /0"),
            Self::ClusterDb => f.write_str("a cluster has database 0 alone; leave the database out"),
            Self::TooLong { given } => write!(f, "{given:?} is too much; the database's number is the end"),
            Self::Path { given } => {
                write!(f, "{given:?} is no path of a socket; write redis+unix:///run/redis/redis.sock")
            }
            Self::Query => f.write_str("a ? or # means nothing here; in user and password write %3F and %23"),
        }
    }
}

impl std::error::Error for BadStoreUrl {}
