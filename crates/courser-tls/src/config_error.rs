//! Why settings, of a server or of a client, cannot be compiled.

use std::fmt;

/// Settings that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsConfigError {
    /// A suite that the library has not, by code point.
    UnknownSuite(u16),
    /// A group that the library has not, by code point.
    UnknownGroup(u16),
    /// A signature scheme that the library cannot verify, by code point.
    UnknownScheme(u16),
    /// A protocol version that the library has not, by code point.
    UnknownVersion(u16),
    /// No group at all.
    NoGroup,
    /// No version at all.
    NoVersion,
    /// What the chosen client engine cannot do.
    Unable(&'static str),
    /// A trusted root that is not a certificate.
    BadRoot(String),
    /// The library found that the parts do not fit together.
    Inconsistent(String),
}

impl fmt::Display for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownSuite(code) => write!(f, "cipher suite 0x{code:04x} is not supported"),
            Self::UnknownGroup(code) => write!(f, "key exchange group 0x{code:04x} is not supported"),
            Self::UnknownScheme(code) => write!(f, "signature scheme 0x{code:04x} is not supported"),
            Self::UnknownVersion(code) => write!(f, "protocol version 0x{code:04x} is not supported"),
            Self::NoGroup => f.write_str("no key exchange group"),
            Self::NoVersion => f.write_str("no protocol version"),
            Self::Unable(what) => f.write_str(what),
            Self::BadRoot(why) => write!(f, "a trusted root is not a certificate: {why}"),
            Self::Inconsistent(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for TlsConfigError {}
