//! What a terminator said of its client: the PROXY header, kept as it came.

use std::net::SocketAddr;

use courser_wire::proxy::v2::{self, Command, ProxyHeader, Ssl};
use courser_wire::proxy::{Addresses, Malformed, v1};
use serde_json::{Value, json};

/// A PROXY header of either version.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AcceptProxy {
    header: Box<[u8]>,
    /// The client's address, if it was told.
    pub(super) source: Option<SocketAddr>,
}

/// What the front of a connection is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// It may become a header.
    Undecided,
    /// No header.
    Other,
    /// A header, of so many bytes.
    Header(AcceptProxy, usize),
}

impl AcceptProxy {
    /// Looks for a header at the front of `received`.
    pub(super) fn read(received: &[u8]) -> Result<Front, Malformed> {
        let found = match v1::parse(received) {
            Ok(found) => found,
            Err(Malformed::Signature) => match v2::parse(received) {
                Ok(found) => found.map(|(parsed, length)| (parsed.addresses, length)),
                Err(Malformed::Signature) => return Ok(Front::Other),
                Err(malformed) => return Err(malformed),
            },
            Err(malformed) => return Err(malformed),
        };
        let Some((addresses, length)) = found else { return Ok(Front::Undecided) };
        let source = if let Addresses::Ip { source, .. } = addresses { Some(source) } else { None };
        Ok(Front::Header(Self { header: received[..length].into(), source }, length))
    }

    /// As it was received.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.header
    }

    /// As JSON.
    fn json(&self) -> Value {
        if let Ok(Some((addresses, _))) = v1::parse(&self.header) {
            return json!({ "version": 1, "addresses": addresses_of(&addresses) });
        }
        match v2::parse(&self.header) {
            Ok(Some((parsed, _))) => fields(&parsed),
            // It was read once already.
            _ => Value::Null,
        }
    }
}

/// What is known of a caller: the peer of the connection, and what it announced.
pub(super) fn peer(peer: Option<SocketAddr>, announced: Option<&AcceptProxy>) -> Vec<u8> {
    let json = json!({ "peer": peer, "proxy": announced.map(AcceptProxy::json) });
    format!("{json}\n").into_bytes()
}

fn fields(announced: &ProxyHeader<'_>) -> Value {
    json!({
        "version": 2,
        "command": if announced.command == Command::Local { "local" } else { "proxy" },
        "addresses": addresses_of(&announced.addresses),
        "alpn": announced.alpn.map(text),
        "authority": announced.authority,
        "unique_id": announced.unique_id.map(hex),
        "ssl": announced.ssl.as_ref().map(ssl),
        "crc32c": announced.crc32c,
    })
}

fn addresses_of(addresses: &Addresses<'_>) -> Value {
    match addresses {
        Addresses::Ip { source, destination } => json!({ "source": source, "destination": destination }),
        Addresses::Unix { source, destination } => {
            json!({ "source": text(source), "destination": text(destination) })
        }
        Addresses::Unspecified => Value::Null,
    }
}

fn ssl(ssl: &Ssl<'_>) -> Value {
    json!({
        "over_tls": ssl.over_tls,
        "certificate_on_connection": ssl.certificate_on_connection,
        "certificate_in_session": ssl.certificate_in_session,
        "verify": ssl.verify,
        "version": ssl.version,
        "common_name": ssl.common_name,
        "cipher": ssl.cipher,
        "signature_algorithm": ssl.signature_algorithm,
        "key_algorithm": ssl.key_algorithm,
        "group": ssl.group,
        "signature_scheme": ssl.signature_scheme,
        "client_certificate": ssl.client_certificate.map(hex),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Two lower-case digits for each byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_decided_as_soon_as_it_can_be() {
        let front = |received: &[u8]| AcceptProxy::read(received).unwrap();
        for undecided in [b"".as_slice(), b"P", b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n", b"\r\n"] {
            assert_eq!(front(undecided), Front::Undecided, "{undecided:?}");
        }
        for other in [b"G".as_slice(), b"PO", b"\r\nGET", b"\x16\x03\x01"] {
            assert_eq!(front(other), Front::Other, "{other:?}");
        }
        assert!(AcceptProxy::read(b"PROXY TCP4 nonsense\r\n").is_err());
    }

    #[test]
    fn both_versions_are_told() {
        let json = |header: &[u8]| match AcceptProxy::read(header) {
            Ok(Front::Header(announced, length)) if length == header.len() => announced.json(),
            other => panic!("{other:?}"),
        };
        let addresses = json!({ "source": "192.0.2.1:7", "destination": "192.0.2.2:443" });
        let first = json(b"PROXY TCP4 192.0.2.1 192.0.2.2 7 443\r\n");
        assert_eq!(first, json!({ "version": 1, "addresses": addresses }));

        let mut header = Vec::new();
        let source = "192.0.2.1:7".parse().unwrap();
        let destination = "192.0.2.2:443".parse().unwrap();
        let ssl = Ssl { over_tls: true, version: Some("TLSv1.3"), ..Ssl::default() };
        let sent = ProxyHeader {
            addresses: Addresses::Ip { source, destination },
            authority: Some("a\"b"),
            alpn: Some(b"h2"),
            ssl: Some(ssl),
            ..ProxyHeader::default()
        };
        v2::write(&sent, &mut header).unwrap();
        let second = json(&header);
        assert_eq!((&second["version"], &second["addresses"]), (&json!(2), &addresses));
        assert_eq!((&second["authority"], &second["alpn"]), (&json!("a\"b"), &json!("h2")));
        assert_eq!(second["ssl"]["version"], json!("TLSv1.3"));
    }
}
