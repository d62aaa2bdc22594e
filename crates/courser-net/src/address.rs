//! Where to listen or to connect.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::linux::net::SocketAddrExt;
use std::path::PathBuf;

/// A local or remote endpoint of a byte stream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// TCP over IPv4 or IPv6.
    Ip(SocketAddr),
    /// A unix socket in the file system.
    Unix(PathBuf),
    /// A unix socket in Linux's abstract namespace (unix(7)), without its leading NUL.
    Abstract(String),
}

impl Address {
    pub(crate) fn to_socket2(&self) -> io::Result<socket2::SockAddr> {
        match self {
            Self::Ip(address) => Ok((*address).into()),
            Self::Unix(path) => socket2::SockAddr::unix(path),
            Self::Abstract(name) => {
                // Checked by std first, which knows the length limit; socket2 takes the bytes after a leading NUL.
                std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                socket2::SockAddr::unix(format!("\0{name}"))
            }
        }
    }

    pub(crate) fn domain(&self) -> socket2::Domain {
        match self {
            Self::Ip(SocketAddr::V4(_)) => socket2::Domain::IPV4,
            Self::Ip(SocketAddr::V6(_)) => socket2::Domain::IPV6,
            Self::Unix(_) | Self::Abstract(_) => socket2::Domain::UNIX,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Abstract(name) => write!(f, "abstract:{name}"),
        }
    }
}
