//! Whom to ask.

use std::fmt;

use courser_tls_client::{NameError, ServerName};

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedEndpoint {
    /// DNS name or IP address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Server name to ask for instead of the host (RFC 6066, section 3).
    pub name: Option<String>,
}

impl InspectedEndpoint {
    /// Reads `host:port`, `[address]:port`, or a host alone, whose port is 443 then.
    ///
    /// # Errors
    /// When there is no host, or the port is not a number up to 65535.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let (host, port) = split(text).ok_or_else(|| TargetError { text: text.to_owned() })?;
        Ok(Self { host: host.to_owned(), port, name: None })
    }

    /// The name that is asked for; with an IP address the server is not told one.
    pub(super) fn server_name(&self) -> Result<ServerName, NameError> {
        ServerName::parse(self.name.as_deref().unwrap_or(&self.host))
    }
}

fn split(text: &str) -> Option<(&str, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None if text.matches(':').count() == 1 => text.split_at(text.find(':')?),
        None => (text, ""),
    };
    let port = if port.is_empty() { 443 } else { port.strip_prefix(':')?.parse().ok()? };
    (!host.is_empty()).then_some((host, port))
}

impl fmt::Display for InspectedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A text that names no endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetError {
    text: String,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no endpoint: write host:port", self.text)
    }
}

impl std::error::Error for TargetError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_read_and_shown_alike() {
        for (text, shown) in [
            ("a.test", "a.test:443"),
            ("a.test:8443", "a.test:8443"),
            ("[::1]:9", "[::1]:9"),
            ("::1", "[::1]:443"),
        ] {
            assert_eq!(InspectedEndpoint::parse(text).unwrap().to_string(), shown);
        }
        for text in ["", ":443", "a.test:", "a.test:x", "a.test:65536", "[::1", "[::1]9"] {
            assert!(InspectedEndpoint::parse(text).is_err(), "{text}");
        }
    }
}
