//! What real programs sent: see `tests/captured/README.md` for which, and how it was taken.

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;

use courser_wire::hello::{ClientHello, TLS12, TLS13};
use courser_wire::proxy::v2::{self, Command, ProxyHeader, Ssl};
use courser_wire::proxy::{Addresses, v1};
use courser_wire::record::{Assembly, NotHello, assemble};

use crate::exercise;

/// Names of all captures, without the suffix.
pub(crate) fn names() -> Vec<String> {
    let paths = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let captures = paths.filter(|path| path.extension().is_some_and(|suffix| suffix == "bin"));
    captures.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = directory().join(name).with_extension("bin");
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The message's body in a capture of a hello.
pub(crate) fn body(name: &str) -> Vec<u8> {
    match assemble(&read(name), exercise::LIMIT) {
        Ok(Assembly::Complete(body)) => body.into_owned(),
        other => panic!("{name}: {other:?}"),
    }
}

fn directory() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captured"))
}

const X25519: u16 = 29;
const P256: u16 = 23;
const X25519_MLKEM768: u16 = 0x11ec;

/// Which client, the highest version it offers, its ALPN, its groups with a share (GREASE left out), how many
/// suites (GREASE left out) and the length of the ticket it sends along.
type Facts = (&'static str, u16, &'static [&'static [u8]], &'static [u16], usize, Option<usize>);

const CLIENTS: [Facts; 12] = [
    ("openssl", TLS13, &[b"h2", b"http/1.1"], &[X25519], 31, Some(0)),
    ("openssl-psk", TLS13, &[], &[X25519], 31, Some(0)),
    ("openssl-ticket", TLS12, &[], &[], 28, Some(176)),
    ("openssl-id", TLS12, &[], &[], 28, None),
    ("curl", TLS13, &[b"h2", b"http/1.1"], &[X25519], 31, None),
    ("gnutls", TLS13, &[b"h2"], &[P256, X25519], 29, Some(0)),
    ("python", TLS13, &[], &[X25519], 18, Some(0)),
    ("node", TLS13, &[b"http/1.1"], &[X25519], 59, Some(0)),
    ("go", TLS13, &[b"h2"], &[X25519_MLKEM768, X25519], 13, None),
    ("chrome", TLS13, &[b"h2", b"http/1.1"], &[X25519_MLKEM768, X25519], 15, Some(0)),
    ("firefox", TLS13, &[b"h2", b"http/1.1"], &[X25519_MLKEM768, X25519, P256], 17, Some(0)),
    ("safari", TLS13, &[b"h2", b"http/1.1"], &[X25519_MLKEM768, X25519], 20, None),
];

#[test]
fn clients_are_understood() {
    use courser_wire::hello::is_grease;
    for (name, version, alpn, shares, suites, ticket) in CLIENTS {
        let body = body(name);
        let hello = ClientHello::parse(&body).unwrap();
        assert_eq!(hello.server_name, Some("www.example.org"), "{name}");
        assert_eq!(hello.offers_tls13(), version == TLS13, "{name}");
        assert_eq!(hello.alpn.iter().collect::<Vec<_>>(), alpn, "{name}");
        let groups: Vec<u16> = hello.key_shares.groups().filter(|&group| !is_grease(group)).collect();
        assert_eq!(groups, shares, "{name}");
        assert!(hello.groups.contains(P256), "{name}");
        assert_eq!(hello.cipher_suites.without_grease().count(), suites, "{name}");
        assert_eq!(hello.session_ticket.map(<[u8]>::len), ticket, "{name}");
        assert!(hello.extended_master_secret, "{name}");
        // Browsers grease it where they have no key for the name.
        assert_eq!(hello.ech, ["chrome", "firefox"].contains(&name), "{name}");
        assert!(hello.signature_schemes.unwrap().contains(0x0403), "{name} verifies ECDSA with P-256");
    }
}

#[test]
fn only_browsers_send_grease() {
    for (name, expected) in [("chrome", 1), ("safari", 1), ("firefox", 0), ("openssl", 0), ("go", 0)] {
        let body = body(name);
        let hello = ClientHello::parse(&body).unwrap();
        assert_eq!(hello.groups.len() - hello.groups.without_grease().count(), expected, "{name}");
    }
}

#[test]
fn a_resumed_tls13_hello_offers_its_ticket_and_early_data() {
    let body = body("openssl-psk");
    let hello = ClientHello::parse(&body).unwrap();
    assert_eq!(hello.psk_identities.iter().count(), 1);
    // 32 bytes name a session that the server kept, as OpenSSL does to see replays.
    assert_eq!(hello.psk_identities.iter().next().map(<[u8]>::len), Some(32));
    assert_eq!(hello.psk_key_exchange_modes, Some(&[1][..]));
    assert!(hello.early_data);
}

#[test]
fn a_session_id_is_offered_without_a_ticket() {
    let body = body("openssl-id");
    let hello = ClientHello::parse(&body).unwrap();
    assert_eq!((hello.session_id.len(), hello.session_ticket), (32, None));
}

#[test]
fn a_client_may_name_no_host() {
    let body = body("openssl-noname");
    let hello = ClientHello::parse(&body).unwrap();
    assert_eq!((hello.server_name, hello.session_id.len()), (None, 0));
    assert_eq!((hello.offers_tls13(), hello.legacy_version), (false, TLS12));
}

#[test]
fn an_old_client_offers_its_old_version() {
    let body = body("openssl-tls10");
    let hello = ClientHello::parse(&body).unwrap();
    assert_eq!((hello.legacy_version, hello.signature_schemes), (0x0301, None));
    assert!(!hello.offers_tls13());
    assert_eq!(hello.server_name, Some("old.example.org"));
}

#[test]
fn a_hello_over_three_records_is_joined() {
    let received = read("openssl-split");
    let Ok(Assembly::Complete(Cow::Owned(body))) = assemble(&received, exercise::LIMIT) else {
        panic!("not joined");
    };
    let hello = ClientHello::parse(&body).unwrap();
    assert_eq!(hello.alpn.iter().count(), 60);
    assert!(hello.alpn.contains(b"protocol-059"));
    assert_eq!(hello.server_name, Some("www.example.org"));
}

#[test]
fn lines_of_real_senders_are_read() {
    let lines = [
        ("haproxy-v1-tcp4", "127.0.0.5:40001", "127.0.0.1:52901", 44),
        ("haproxy-v1-tcp6", "[::1]:40002", "[::1]:46279", 32),
        ("nginx-v1-tcp4", "127.0.0.5:40005", "127.0.0.1:46279", 44),
        ("nginx-v1-tcp6", "[::1]:40006", "[::1]:46279", 32),
    ];
    for (name, source, destination, length) in lines {
        let received = read(name);
        let addresses = ip(source, destination);
        assert_eq!(v1::parse(&received), Ok(Some((addresses, length))), "{name}");
        let mut line = Vec::new();
        v1::write(&addresses, &mut line);
        assert_eq!(line, received[..length], "{name}: written to the letter");
    }
    assert_eq!(v1::parse(&read("haproxy-v1-unknown")), Ok(Some((Addresses::Unspecified, 15))));
}

#[test]
fn a_binary_header_of_haproxy_is_read_and_written_to_the_letter() {
    let received = read("haproxy-v2-tcp4");
    let (parsed, consumed) = v2::parse(&received).unwrap().unwrap();
    let addresses = ip("127.0.0.5:40003", "127.0.0.1:46279");
    assert_eq!(parsed, ProxyHeader { addresses, ..ProxyHeader::default() });
    assert_eq!(consumed, 28);
    let mut written = Vec::new();
    v2::write(&parsed, &mut written).unwrap();
    assert_eq!(written, received[..28]);
}

#[test]
fn what_haproxy_tells_of_a_tls_client_is_read() {
    let received = read("haproxy-v2-tls");
    let (parsed, consumed) = v2::parse(&received).unwrap().unwrap();
    let expected = ProxyHeader {
        command: Command::Proxy,
        addresses: ip("[::1]:60052", "[::1]:46279"),
        alpn: Some(b"h2"),
        authority: Some("www.example.org"),
        unique_id: Some(b"00000000000000000000000000000001:EA94-0000"),
        ssl: Some(Ssl {
            over_tls: true,
            certificate_on_connection: true,
            certificate_in_session: true,
            verify: 0,
            version: Some("TLSv1.3"),
            common_name: Some("client.example"),
            cipher: Some("TLS_AES_256_GCM_SHA384"),
            signature_algorithm: Some("ecdsa-with-SHA256"),
            key_algorithm: Some("EC256"),
            ..Ssl::default()
        }),
        crc32c: true,
    };
    assert_eq!(parsed, expected);
    assert_eq!(received[consumed..], *b"x\n", "the client's own bytes follow");
}

#[test]
fn what_haproxy_tells_of_a_plain_client_is_read() {
    let received = read("haproxy-v2-plain");
    let header = v2::parse(&received).unwrap().unwrap().0;
    assert_eq!(header.addresses, ip("127.0.0.5:40004", "127.0.0.1:46279"));
    // HAProxy says 0 where there is no certificate at all.
    assert_eq!(header.ssl, Some(Ssl { verify: 0, ..Ssl::default() }));
    assert!(header.crc32c);
}

#[test]
fn health_checks_and_unix_clients_of_haproxy_are_local() {
    for (name, length) in [("haproxy-v2-local", 23), ("haproxy-v2-unix", 16)] {
        let received = read(name);
        let (parsed, consumed) = v2::parse(&received).unwrap().unwrap();
        assert_eq!((parsed.command, consumed), (Command::Local, length), "{name}");
    }
}

#[test]
fn a_header_where_a_hello_belongs_is_called_by_its_name() {
    for name in names().iter().filter(|name| name.starts_with("haproxy") || name.starts_with("nginx")) {
        assert_eq!(assemble(&read(name), exercise::LIMIT), Err(NotHello::ProxyHeader), "{name}");
    }
}

#[test]
fn every_capture_holds_what_has_to_hold() {
    for name in names() {
        let bytes = read(&name);
        exercise::client_hello(&bytes);
        exercise::proxy_v1(&bytes);
        exercise::proxy_v2(&bytes);
    }
}

fn ip(source: &str, destination: &str) -> Addresses<'static> {
    Addresses::Ip { source: source.parse().unwrap(), destination: destination.parse().unwrap() }
}
