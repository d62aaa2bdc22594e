//! The name of the server that a client connects to.

use std::fmt;

use rustls::pki_types;

/// The name of a server: a DNS name, sent as server name indication (RFC 6066, section 3), or an IP address, which is
/// not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerName(pub(crate) pki_types::ServerName<'static>);

impl ServerName {
    /// Reads a DNS name or an IP address, without a port and without brackets.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let name = pki_types::ServerName::try_from(text.to_owned());
        name.map(Self).map_err(|_| NameError { text: text.to_owned() })
    }

    /// The DNS name, if it is one.
    pub fn dns(&self) -> Option<&str> {
        match &self.0 {
            pki_types::ServerName::DnsName(name) => Some(name.as_ref()),
            _ => None,
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_str())
    }
}

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    text: String,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a DNS name nor an IP address", self.text)
    }
}

impl std::error::Error for NameError {}
