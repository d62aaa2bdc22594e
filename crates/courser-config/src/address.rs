//! Addresses as they are written: where to listen, and where backends are.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Where clients arrive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// `*:443`: every address, IPv6 and IPv4 in one socket (`[::]` without `IPV6_V6ONLY`), or IPv4 alone
    /// where the system has no IPv6.
    Any {
        /// 0 lets the system choose.
        port: u16,
    },
    /// `192.0.2.1:443` or `[2001:db8::1]:443`. `[::]` is IPv6 alone.
    Ip(SocketAddr),
    /// `unix:/run/courser.sock`.
    Unix(PathBuf),
    /// `abstract:courser`, in Linux's abstract namespace, without the leading zero byte.
    Abstract(String),
    /// `systemd` for every socket passed by socket activation, `systemd:web` for those of that name
    /// (`FileDescriptorName=`, sd_listen_fds_with_names(3)).
    Systemd(Option<String>),
}

/// Where plaintext goes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum BackendAddress {
    /// `10.0.0.3:80` or `[2001:db8::3]:80`; the port is not 0.
    Ip(SocketAddr),
    /// `app.internal:8080`, to be resolved.
    Name {
        /// A host name in lower case.
        host: String,
        /// Not 0.
        port: u16,
    },
    /// `unix:/run/app.sock`.
    Unix(PathBuf),
    /// `abstract:app`, in Linux's abstract namespace, without the leading zero byte.
    Abstract(String),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(f, "*:{port}"),
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "abstract:{name}"),
            Self::Systemd(None) => f.write_str("systemd"),
            Self::Systemd(Some(name)) => write!(f, "systemd:{name}"),
        }
    }
}

impl fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Name { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "abstract:{name}"),
        }
    }
}
