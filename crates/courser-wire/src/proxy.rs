//! The PROXY protocol: how a backend learns who called. "Section" below means one of HAProxy's specification,
//! `doc/proxy-protocol.txt`, as it was numbered in the edition of 2020-03-05. The fields for group, signature
//! scheme and client certificate (0x26 to 0x28) came with the editions of 2025 and 2026.
//!
//! Writes and reads one header at the front of a connection. It does not guess: whether a header is expected,
//! and of which version, is a matter of configuration, because a client that may choose can forge its address
//! (section 5).

pub mod v1;

pub mod v2;

mod crc32c;

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// Who called, and where. `Addresses<'static>` does for everything but unix sockets, whose paths are borrowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Addresses<'a> {
    /// A TCP connection. The two may be of different families or IPv4 in the clothes of IPv6: IPv4 is written if
    /// both are IPv4 at heart, IPv6 otherwise. Flow label and scope are not part of any header.
    Ip {
        /// The client's end.
        source: SocketAddr,
        /// The end it connected to.
        destination: SocketAddr,
    },
    /// A unix stream socket: paths as in `sun_path`, without zeros at the end, 108 bytes at most. Empty without
    /// a name, with a zero in front if abstract.
    Unix {
        /// The client's end.
        source: &'a [u8],
        /// The end it connected to.
        destination: &'a [u8],
    },
    /// Unknown, or withheld.
    #[default]
    Unspecified,
}

/// Why bytes are no PROXY header. Whoever sent them is to be cut off (sections 2.1 and 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// They begin in another way: the peer does not speak this version of the protocol.
    Signature,
    /// Version 1: no CR LF within 107 bytes, or a LF without CR.
    LineEnd,
    /// Version 1: a protocol other than TCP4, TCP6 and UNKNOWN.
    Protocol,
    /// Version 1: an address or a port is missing, of the wrong family or not in canonical form.
    Address,
    /// Version 2: another version is given.
    Version(u8),
    /// Version 2: a command other than LOCAL and PROXY.
    Command(u8),
    /// Version 2: an address family or a transport that is not assigned.
    Family(u8),
    /// Version 2: the header ends within the addresses.
    ShortAddresses,
    /// Version 2: the field of this type ends too early, or within itself.
    ShortField(u8),
    /// Version 2: the field of this type is not text, as it has to be.
    NotText(u8),
    /// Version 2: the field of this type comes twice, and there is no telling which one is meant.
    Repeated(u8),
    /// Version 2: the checksum is not that of the header.
    Checksum,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature => f.write_str("no PROXY header of the expected version"),
            Self::LineEnd => f.write_str("PROXY line does not end as it has to"),
            Self::Protocol => f.write_str("PROXY line names an unknown protocol"),
            Self::Address => f.write_str("PROXY line holds an address that is none"),
            Self::Version(version) => write!(f, "PROXY header of version {version}, not 2"),
            Self::Command(command) => write!(f, "unknown PROXY command {command}"),
            Self::Family(family) => write!(f, "unknown PROXY address family {family:#04x}"),
            Self::ShortAddresses => f.write_str("PROXY header ends within the addresses"),
            Self::ShortField(kind) => write!(f, "PROXY field {kind:#04x} is too short"),
            Self::NotText(kind) => write!(f, "PROXY field {kind:#04x} is not text"),
            Self::Repeated(kind) => write!(f, "PROXY field {kind:#04x} comes twice"),
            Self::Checksum => f.write_str("PROXY header does not match its checksum"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Two addresses of one family.
enum Pair {
    V4(SocketAddrV4, SocketAddrV4),
    V6(SocketAddrV6, SocketAddrV6),
}

impl Pair {
    fn of(source: SocketAddr, destination: SocketAddr) -> Self {
        match (source.ip().to_canonical(), destination.ip().to_canonical()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                Self::V4(SocketAddrV4::new(from, source.port()), SocketAddrV4::new(to, destination.port()))
            }
            _ => Self::V6(promote(source), promote(destination)),
        }
    }
}

fn promote(address: SocketAddr) -> SocketAddrV6 {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    SocketAddrV6::new(ip, address.port(), 0, 0)
}
