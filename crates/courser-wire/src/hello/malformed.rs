//! The ways in which a ClientHello can be wrong.

use std::fmt;

use crate::alert::Description;

/// Why bytes are not a ClientHello. A field is called by its name in the RFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Malformed {
    /// The bytes end within the field.
    Truncated(&'static str),
    /// Bytes are left over behind the field's content.
    Trailing(&'static str),
    /// The field's length is none it may have: odd, zero or too great.
    BadLength(&'static str),
    /// An extension comes twice (RFC 8446 section 4.2).
    DuplicateExtension(u16),
    /// `pre_shared_key` is not the last extension (RFC 8446 section 4.2.11).
    PreSharedKeyNotLast,
    /// The server name is not what a host may be called.
    ServerName,
    /// More than one server name of the type host name (RFC 6066 section 3).
    SeveralServerNames,
}

impl Malformed {
    /// The alert for it (RFC 8446 section 6.2).
    pub const fn alert(self) -> Description {
        match self {
            Self::Truncated(_) | Self::Trailing(_) | Self::BadLength(_) => Description::DecodeError,
            Self::DuplicateExtension(_)
            | Self::PreSharedKeyNotLast
            | Self::ServerName
            | Self::SeveralServerNames => Description::IllegalParameter,
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated(field) => write!(f, "ClientHello ends within {field}"),
            Self::Trailing(field) => write!(f, "bytes are left over in {field}"),
            Self::BadLength(field) => write!(f, "{field} has a length it may not have"),
            Self::DuplicateExtension(kind) => write!(f, "extension {kind} comes twice"),
            Self::PreSharedKeyNotLast => f.write_str("pre_shared_key is not the last extension"),
            Self::ServerName => f.write_str("server_name is no host name"),
            Self::SeveralServerNames => f.write_str("server_name holds several host names"),
        }
    }
}

impl std::error::Error for Malformed {}
