//! A client that stops in the middle of a message after the handshake.

use std::io::Cursor;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use courser_testkit::client::Unverified;
use courser_tls::State;
use rustls::crypto::aws_lc_rs::{cipher_suite::TLS13_AES_128_GCM_SHA256, default_provider, kx_group::X25519};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ConnectionTrafficSecrets};

use crate::exercise;

/// First byte of a KeyUpdate (RFC 8446, section 4.6.3); its length and content stay out.
const KEY_UPDATE: u8 = 24;

/// Content type of handshake messages.
const HANDSHAKE: u8 = 22;

#[test]
fn what_is_sent_meanwhile_is_sent_all_the_same() {
    let (mut server, mut client) = (exercise::connection(), client());
    let (mut received, mut plaintext, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
    let mut state = State::Handshaking;
    while state == State::Handshaking {
        while client.wants_write() {
            client.write_tls(&mut received).expect("memory does not fail");
        }
        let progress = server.process(&mut received, &mut plaintext, &mut outgoing).expect("a good client");
        received.drain(..progress.consumed);
        state = progress.state;
        deliver(&mut client, &mut outgoing);
    }
    let mut received = sealed(client, &[KEY_UPDATE]);
    let progress =
        server.process(&mut received, &mut plaintext, &mut outgoing).expect("half a message is no error");
    received.drain(..progress.consumed);
    for _ in 0..2 {
        server.send(b"the answer", &mut received, &mut outgoing).expect("the connection is open");
    }
    server.send_close_notify(&mut received, &mut outgoing).expect("the connection is open");
    assert!(outgoing.len() > 2 * b"the answer".len() && plaintext.is_empty());
}

fn deliver(client: &mut ClientConnection, outgoing: &mut Vec<u8>) {
    let mut bytes = Cursor::new(std::mem::take(outgoing));
    while client.read_tls(&mut bytes).expect("memory does not fail") > 0 {
        client.process_new_packets().expect("a good server");
    }
}

fn client() -> ClientConnection {
    let provider = rustls::crypto::CryptoProvider {
        cipher_suites: vec![TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![X25519],
        ..default_provider()
    };
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("they fit")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified::default()))
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    ClientConnection::new(Arc::new(config), ServerName::try_from("fuzz.example").expect("a name"))
        .expect("it fits")
}

/// A record with part of a handshake message, under the client's keys (RFC 8446, sections 5.2 and 5.3).
fn sealed(client: ClientConnection, fragment: &[u8]) -> Vec<u8> {
    #[allow(deprecated, reason = "its replacement is for connections without buffers")]
    let secrets = client.dangerous_extract_secrets().expect("the configuration allows it");
    let (sequence, ConnectionTrafficSecrets::Aes128Gcm { key, iv }) = secrets.tx else {
        panic!("another suite")
    };
    let mut nonce: [u8; 12] = iv.as_ref().try_into().expect("12 bytes");
    nonce[4..].iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, mask)| *byte ^= mask);
    let mut content = [fragment, &[HANDSHAKE]].concat();
    let length = u16::try_from(content.len() + AES_128_GCM.tag_len()).expect("short").to_be_bytes();
    let header = [23, 3, 3, length[0], length[1]];
    let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key.as_ref()).expect("16 bytes"));
    key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(header), &mut content)
        .expect("room");
    [&header[..], &content].concat()
}
