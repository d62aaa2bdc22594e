//! Application data past the library, against the library's client with the library's ciphers.

use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use courser_session::PolicyHash;
use courser_testkit::client::Unverified;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::{ALL_VERSIONS, ClientConfig, ClientConnection};

use crate::failure::Failure;
use crate::records::{MAX_PLAINTEXT, State};
use crate::server::ServerConnection;
use crate::server_config::{ServerTlsConfig, ServerTlsSpec, SuiteOrder, Version};
use crate::sessions::Sessions;
use crate::{HandshakePlan, SessionOffer, names};

const X25519: u16 = 0x001d;
const TLS_AES_128_GCM: u16 = 0x1301;
const ECDHE_AES_128_GCM: u16 = 0xc02b;

/// All that an ECDSA certificate can serve: each cipher in each version.
const SUITES: [u16; 6] = [TLS_AES_128_GCM, 0x1302, 0x1303, ECDHE_AES_128_GCM, 0xc02c, 0xcca9];

/// Both ends, and what is on its way.
struct Pair {
    server: ServerConnection,
    client: ClientConnection,
    received: Vec<u8>,
    plaintext: Vec<u8>,
    outgoing: Vec<u8>,
}

impl Pair {
    /// After the handshake.
    fn connected(suite: u16) -> Self {
        let provider = CryptoProvider {
            cipher_suites: aws_lc_rs::ALL_CIPHER_SUITES
                .iter()
                .filter(|known| u16::from(known.suite()) == suite)
                .copied()
                .collect(),
            ..aws_lc_rs::default_provider()
        };
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(ALL_VERSIONS)
            .expect("they fit")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unverified::default()))
            .with_no_client_auth();
        let name = ServerName::try_from("courser.example").expect("a name");
        let client = ClientConnection::new(Arc::new(config), name).expect("it fits");
        let mut pair =
            Self { server: server(), client, received: vec![], plaintext: vec![], outgoing: vec![] };
        while pair.client.is_handshaking() {
            pair.upward(usize::MAX).expect("a good client");
            pair.downward();
        }
        pair.upward(usize::MAX).expect("a good client");
        pair.server.finish_handshake().expect("it is over");
        pair.downward();
        pair
    }

    /// What the client has to send arrives in parts of `length` bytes.
    fn upward(&mut self, length: usize) -> Result<State, Failure> {
        let mut bytes = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut bytes).expect("memory does not fail");
        }
        let mut state = State::Open;
        for part in bytes.chunks(length) {
            self.received.extend_from_slice(part);
            let progress =
                self.server.process(&mut self.received, &mut self.plaintext, &mut self.outgoing)?;
            self.received.drain(..progress.consumed);
            state = progress.state;
        }
        Ok(state)
    }

    /// What the server has to send arrives; returns the plaintext.
    fn downward(&mut self) -> Vec<u8> {
        let outgoing = std::mem::take(&mut self.outgoing);
        let (mut bytes, mut plaintext) = (&outgoing[..], Vec::new());
        while self.client.read_tls(&mut bytes).expect("memory does not fail") > 0 {
            self.client.process_new_packets().expect("a good server");
            // Until there is no more at present, which is an error to it.
            let _ = self.client.reader().read_to_end(&mut plaintext);
        }
        plaintext
    }

    fn send(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.server.send(data, &mut self.received, &mut self.outgoing)
    }

    /// Data of the client, in parts that arrive.
    fn say(&mut self, data: &[u8], length: usize) {
        for part in data.chunks(3 * MAX_PLAINTEXT) {
            self.client.writer().write_all(part).expect("memory does not fail");
            self.upward(length).expect("a good client");
        }
        assert!(std::mem::take(&mut self.plaintext) == data, "{} bytes", data.len());
    }
}

fn server() -> ServerConnection {
    let spec = ServerTlsSpec {
        versions: vec![Version::Tls12, Version::Tls13],
        suites: SUITES.into(),
        groups: vec![X25519],
        tickets: 1,
        ..ServerTlsSpec::default()
    };
    let sessions = Sessions { cache: None, ticketer: None, lifetime: Duration::from_secs(60) };
    let config = ServerTlsConfig::new(spec, &sessions).expect("known code points");
    let identity = crate::self_signed(&["courser.example".to_owned()]).expect("a key can be made");
    let policy = PolicyHash::builder("test", "test").finish();
    let plan = HandshakePlan::new(Arc::new(identity), policy, SessionOffer::Tickets);
    ServerConnection::new(&config, X25519, SuiteOrder::Configured, plan).expect("the config fits")
}

#[test]
fn data_of_any_length_passes_under_each_suite() {
    for suite in SUITES {
        let mut pair = Pair::connected(suite);
        for length in [1, 2, 1000, MAX_PLAINTEXT - 1, MAX_PLAINTEXT, MAX_PLAINTEXT + 1, 100_000] {
            let data: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            for cut in [usize::MAX, 7_777, 40_000] {
                pair.say(&data, cut);
            }
            pair.send(&data).expect("the connection is open");
            assert!(pair.downward() == data, "{:?}: {length} bytes", names::suite(suite));
        }
        assert!(pair.server.ciphers.goes_past_the_library(), "{:?}", names::suite(suite));
        pair.client.send_close_notify();
        assert_eq!(pair.upward(usize::MAX), Ok(State::PeerClosed));
    }
}

/// The library ends a connection after some dozens without data between them, and sees none of the data.
#[test]
fn key_updates_with_data_between_them_never_end_a_connection() {
    let mut pair = Pair::connected(TLS_AES_128_GCM);
    for _ in 0..100 {
        pair.client.refresh_traffic_keys().expect("TLS 1.3");
        pair.upward(usize::MAX).expect("it is legal");
        pair.say(b"request", usize::MAX);
        pair.say(b"another", usize::MAX);
        pair.send(b"answer").expect("the connection is open");
        assert_eq!(pair.downward(), b"answer");
    }
}

#[test]
fn a_key_is_replaced_before_it_has_sealed_too_much() {
    let mut pair = Pair::connected(TLS_AES_128_GCM);
    pair.send(b"first").expect("the connection is open");
    let limit = pair.server.ciphers.limit_seals(5);
    for _ in 0..3 * limit {
        pair.send(b"answer").expect("the connection is open");
        if pair.server.ciphers.seals() == 1 {
            pair.server.ciphers.limit_seals(5);
        }
        assert!(pair.server.ciphers.seals() <= limit);
    }
    let all = [b"first".to_vec(), b"answer".repeat(usize::try_from(3 * limit).unwrap())].concat();
    assert!(pair.downward() == all);
    pair.say(b"a client follows", usize::MAX);
}

/// The rest of what was read at once goes on under the next key.
#[test]
fn a_key_is_replaced_between_records_that_are_sealed_together() {
    let mut pair = Pair::connected(TLS_AES_128_GCM);
    pair.send(b"first").expect("the connection is open");
    let data: Vec<u8> = (0..10 * MAX_PLAINTEXT).map(|at| u8::try_from(at % 251).unwrap()).collect();
    for left in 1..8 {
        pair.server.ciphers.limit_seals(left);
        pair.send(&data).expect("the connection is open");
        assert!(pair.server.ciphers.seals() <= 10, "no new key, where {left} were left");
        assert!(pair.downward().ends_with(&data), "{left} were left");
    }
}

/// TLS 1.2 has one key for a connection.
#[test]
fn a_connection_of_tls12_ends_before_its_key_has_sealed_too_much() {
    let mut pair = Pair::connected(ECDHE_AES_128_GCM);
    pair.send(b"first").expect("the connection is open");
    let limit = pair.server.ciphers.limit_seals(5);
    let sent = (0..10).take_while(|_| pair.send(b"answer").is_ok()).count();
    assert!((2..5).contains(&sent), "{sent}");
    assert!(pair.server.ciphers.seals() <= limit);
}

#[test]
fn a_wrong_byte_anywhere_in_a_record_ends_the_connection_with_one_alert() {
    for suite in SUITES {
        for at in [5, 12, 13, 20, 28] {
            let mut pair = Pair::connected(suite);
            pair.say(b"good", usize::MAX);
            pair.say(b"good", usize::MAX);
            pair.client.writer().write_all(b"bad").expect("memory does not fail");
            let mut record = Vec::new();
            pair.client.write_tls(&mut record).expect("memory does not fail");
            let Some(byte) = record.get_mut(at) else { continue };
            *byte ^= 1;
            let failed = pair.server.process(&mut record, &mut pair.plaintext, &mut pair.outgoing);
            assert!(failed.is_err() && pair.plaintext.is_empty());
            let alert = &pair.outgoing;
            assert_eq!(alert.len(), 5 + usize::from(u16::from_be_bytes([alert[3], alert[4]])));
            pair.client.read_tls(&mut &pair.outgoing[..]).expect("memory does not fail");
            let error = pair.client.process_new_packets().unwrap_err();
            assert!(matches!(error, rustls::Error::AlertReceived(_)), "{error}");
        }
    }
}

#[test]
fn what_cannot_be_sealed_is_not_left_in_the_clear() {
    let mut pair = Pair::connected(TLS_AES_128_GCM);
    pair.say(b"good", usize::MAX);
    let mut wrong = vec![23, 3, 3, 0, 20];
    wrong.extend([0; 20]);
    assert!(pair.server.process(&mut wrong, &mut pair.plaintext, &mut pair.outgoing).is_err());
    let alert = pair.outgoing.clone();
    assert!(pair.send(b"a secret answer").is_err());
    assert_eq!(pair.outgoing, alert);
}
