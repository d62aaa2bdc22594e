//! The client's end against the library's server.

use std::net::IpAddr;
use std::sync::Arc;

use courser_session::UnixSeconds;
use courser_testkit::{Issued, KeyType, Leaf, TestCa};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::*;
use crate::authorities::Authorities;
use crate::identity::Identity;
use crate::records::State;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

fn authorities(ca: &TestCa) -> Verify {
    Verify::Authorities(vec![Authorities::from_pem(ca.root_pem().as_bytes()).unwrap()])
}

fn compiled(verify: Verify) -> BackendTlsConfig {
    let spec = BackendTlsSpec { verify, name: BackendName::Own, identity: None, revocation: None };
    BackendTlsConfig::new(spec).unwrap()
}

/// A server of its own, with its own ticket key.
fn server(issued: &Issued, version: &'static SupportedProtocolVersion) -> Arc<ServerConfig> {
    let chain = CertificateDer::pem_slice_iter(issued.chain_pem.as_bytes()).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    Arc::new(config)
}

/// A connection's handshake, and an answer of the server, which brings the tickets.
fn handshake(
    client: &mut BackendConnection,
    server: &Arc<ServerConfig>,
) -> Result<BackendHandshakeInfo, Failure> {
    let mut server = ServerConnection::new(Arc::clone(server)).unwrap();
    let (mut received, mut plaintext, mut sent, mut info) = (Vec::new(), Vec::new(), Vec::new(), None);
    let mut is_answered = false;
    loop {
        let progress = client.process(&mut received, &mut plaintext, &mut sent)?;
        received.drain(..progress.consumed);
        if progress.state == State::Open {
            info = info.or(client.finish_handshake());
            if !plaintext.is_empty() {
                assert_eq!(plaintext, b"answer");
                return Ok(info.expect("the handshake is over"));
            }
        }
        let mut out = std::mem::take(&mut sent);
        while !out.is_empty() {
            let taken = server.read_tls(&mut &out[..]).unwrap();
            out.drain(..taken);
            server.process_new_packets().unwrap();
        }
        if !server.is_handshaking() && !std::mem::replace(&mut is_answered, true) {
            std::io::Write::write_all(&mut server.writer(), b"answer").unwrap();
        }
        while server.wants_write() {
            server.write_tls(&mut received).unwrap();
        }
    }
}

fn connect(tls: &BackendTls, to: &Arc<ServerConfig>) -> Result<BackendHandshakeInfo, Failure> {
    handshake(&mut tls.connect(None, None).unwrap(), to)
}

#[test]
fn each_wrong_certificate_is_refused_with_its_reason() {
    let (ca, stranger) = (TestCa::new(), TestCa::named("stranger"));
    let leaf = || Leaf::new(KeyType::EcdsaP256);
    let cases = [
        (ca.issue(&leaf()), authorities(&ca), None),
        (ca.issue(&leaf().names(["other.example"])), authorities(&ca), Some("wrong name: ")),
        (ca.issue(&leaf().expired()), authorities(&ca), Some("expired: ")),
        (ca.issue(&leaf().not_yet_valid()), authorities(&ca), Some("not valid yet: ")),
        (stranger.issue(&leaf()), authorities(&ca), Some("unknown authority: ")),
        (ca.issue(&leaf()), Verify::Pins(vec![[7; 32]]), Some("wrong key: ")),
        (ca.issue(&leaf().of_client("localhost")), authorities(&ca), Some("not accepted: ")),
        (stranger.issue(&leaf().expired()), Verify::Off, None),
    ];
    for (issued, verify, wanted) in cases {
        let tls = compiled(verify).of_server(Some("localhost"));
        for version in VERSIONS {
            let result = connect(&tls, &server(&issued, version));
            match (&result, wanted) {
                (Ok(info), None) => assert!(!info.resumed),
                (Err(failure), Some(wanted)) => {
                    assert!(failure.detail.contains(wanted), "{failure}, not {wanted}");
                    assert_eq!(failure.kind, FailureKind::Certificate);
                }
                _ => panic!("{result:?}, not {wanted:?}"),
            }
        }
    }
}

#[test]
fn a_pin_is_of_the_key_and_one_of_several_is_enough() {
    let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256).expired());
    let key = webpki::EndEntityCert::try_from(&issued.certificate).unwrap().subject_public_key_info();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &key);
    let pins = vec![[7; 32], digest.as_ref().try_into().unwrap()];
    let tls = compiled(Verify::Pins(pins)).of_server(None);
    connect(&tls, &server(&issued, VERSIONS[1])).unwrap();
}

#[test]
fn an_address_is_looked_for_among_the_addresses_of_the_certificate() {
    let ca = TestCa::new();
    let config = compiled(authorities(&ca));
    let issued = server(&ca.issue(&Leaf::new(KeyType::EcdsaP256)), VERSIONS[1]);
    for (own, good) in [("127.0.0.1", true), ("::1", true), ("127.0.0.2", false)] {
        assert!(own.parse::<IpAddr>().is_ok());
        let result = connect(&config.of_server(Some(own)), &issued);
        assert_eq!(result.is_ok(), good, "{own}: {result:?}");
    }
    assert!(config.needs_name(), "a unix socket has none to verify");
}

#[test]
fn each_server_of_one_name_is_resumed_by_its_own_tickets() {
    let ca = TestCa::new();
    let config = compiled(authorities(&ca));
    for version in VERSIONS {
        let issued = ca.issue(&Leaf::new(KeyType::EcdsaP256));
        let servers: [_; 4] =
            std::array::from_fn(|_| (config.of_server(Some("localhost")), server(&issued, version)));
        let connections = (0..400).map(|turn| connect(&servers[turn % 4].0, &servers[turn % 4].1).unwrap());
        assert_eq!(connections.filter(|info| info.resumed).count(), 396);
    }
}

#[test]
fn nothing_is_resumed_once_the_certificates_have_expired() {
    let ca = TestCa::new();
    for version in VERSIONS {
        let tls = compiled(authorities(&ca)).of_server(Some("localhost"));
        let server = server(&ca.issue(&Leaf::new(KeyType::EcdsaP256)), version);
        let resumed = || connect(&tls, &server).unwrap().resumed;
        assert_eq!([resumed(), resumed()], [false, true]);
        tls.sessions.verified_until(&tls.name, UnixSeconds(1_700_000_000));
        assert_eq!([resumed(), resumed()], [false, true]);
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_it() {
    let ca = TestCa::new();
    let ours = ca.issue(&Leaf::new(KeyType::EcdsaP256).of_client("courser"));
    let identity = Identity::from_pem(ours.chain_pem.as_bytes(), ours.key_pem.as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(ca.root()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let issued = ca.issue(&Leaf::new(KeyType::EcdsaP256));
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![issued.certificate.clone()], key)
        .unwrap();
    let spec = BackendTlsSpec {
        verify: authorities(&ca),
        name: BackendName::Fixed("localhost".to_owned()),
        identity: Some(Arc::new(identity)),
        revocation: None,
    };
    let tls = BackendTlsConfig::new(spec).unwrap().of_server(None);
    connect(&tls, &Arc::new(config)).unwrap();
}

#[test]
fn an_answer_that_is_not_tls_is_quoted() {
    let tls = compiled(Verify::Off).of_server(None);
    let mut connection = tls.connect(None, None).unwrap();
    let mut process = |bytes: &[u8]| {
        let mut incoming = bytes.to_vec();
        connection.process(&mut incoming, &mut Vec::new(), &mut Vec::new())
    };
    process(b"").unwrap();
    let failure = process(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert_eq!(failure.kind, FailureKind::NotTls);
    assert!(failure.detail.contains("HTTP/1.1 400 Bad Request"), "{failure}");
}
