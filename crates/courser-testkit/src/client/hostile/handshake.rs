//! The handshake up to where the client would answer the server's first flight, made by the library, and the secrets
//! that it has come to. What the client would send is parsed and held back.

use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{ClientConnection, KeyLog, ProtocolVersion};

use super::keys::{Keys, Suite};
use super::{CHANGE_CIPHER_SPEC, HANDSHAKE, HEADER, read_record};
use crate::client::Client;

/// Where the library leaves the server's random bytes: behind record header, message header and version of ServerHello.
const SERVER_RANDOM: std::ops::Range<usize> = 11..43;

/// Type of a ServerHello (RFC 8446, section 4).
const SERVER_HELLO: u8 = 2;

/// What the library would send now, as messages without records.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    /// All messages before Finished: none, or Certificate and CertificateVerify; in TLS 1.2 ClientKeyExchange too.
    pub messages: Vec<u8>,
    /// Finished, with its header.
    pub finished: Vec<u8>,
}

/// What a handshake has come to.
pub(super) struct Opening {
    pub(super) version: ProtocolVersion,
    pub(super) flight: Flight,
    /// For what is left of the handshake; TLS 1.2 has none.
    pub(super) handshake: Option<Keys>,
    /// For what comes behind Finished, and in TLS 1.2 Finished itself.
    pub(super) write: Keys,
    pub(super) read: Keys,
}

/// Begins a handshake over `stream`. The server's records are read one by one, so that none is lost to the library
/// that comes behind its first flight.
pub(super) fn open(client: &Client, stream: &mut (impl Read + Write)) -> io::Result<Opening> {
    let secrets = Arc::new(Secrets::default());
    let mut config = (*client.config).clone();
    config.key_log = Arc::clone(&secrets) as _;
    let mut tls = ClientConnection::new(Arc::new(config), client.name.clone()).map_err(io::Error::other)?;
    let (mut own, mut server_random) = (Vec::new(), Vec::new());
    tls.write_tls(stream)?;
    while own.is_empty() {
        let record = read_record(stream)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if server_random.is_empty() && record.get(HEADER) == Some(&SERVER_HELLO) {
            server_random = record[SERVER_RANDOM].to_vec();
        }
        tls.read_tls(&mut &record[..])?;
        tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        // In TLS 1.3 a change_cipher_spec is ready before the flight is.
        if tls.protocol_version() != Some(ProtocolVersion::TLSv1_3) || !tls.is_handshaking() {
            while tls.wants_write() {
                tls.write_tls(&mut own)?;
            }
        }
    }
    let version = tls.protocol_version().expect("the server has answered");
    let suite = Suite::of(tls.negotiated_cipher_suite().expect("the server has chosen").suite());
    Ok(match version {
        ProtocolVersion::TLSv1_3 => tls13(&secrets, suite, &own),
        _ => tls12(&secrets, suite, &own, &server_random),
    })
}

fn tls13(secrets: &Secrets, suite: Suite, own: &[u8]) -> Opening {
    let keys = |label| Keys::tls13(suite, secrets.get(label).1);
    let mut messages = Vec::new();
    let mut opened = keys("CLIENT_HANDSHAKE_TRAFFIC_SECRET");
    for record in records(own).filter(|record| record[0] != CHANGE_CIPHER_SPEC) {
        messages.extend(opened.open(record).expect("the library sealed it with these keys").1);
    }
    let finished = messages.split_off(last_message(&messages));
    Opening {
        version: ProtocolVersion::TLSv1_3,
        flight: Flight { messages, finished },
        handshake: Some(keys("CLIENT_HANDSHAKE_TRAFFIC_SECRET")),
        write: keys("CLIENT_TRAFFIC_SECRET_0"),
        read: keys("SERVER_TRAFFIC_SECRET_0"),
    }
}

fn tls12(secrets: &Secrets, suite: Suite, own: &[u8], server_random: &[u8]) -> Opening {
    let (client_random, master) = secrets.get("CLIENT_RANDOM");
    let keys = || Keys::tls12(suite, &master, &client_random, server_random);
    let (mut messages, mut finished) = (Vec::new(), Vec::new());
    let mut encrypted = false;
    let [mut opened, _] = keys();
    for record in records(own) {
        match (record[0], encrypted) {
            (HANDSHAKE, false) => messages.extend_from_slice(&record[HEADER..]),
            (HANDSHAKE, true) => {
                finished = opened.open(record).expect("the library sealed it with these keys").1;
            }
            _ => encrypted = true,
        }
    }
    let [write, read] = keys();
    Opening {
        version: ProtocolVersion::TLSv1_2,
        flight: Flight { messages, finished },
        handshake: None,
        write,
        read,
    }
}

/// Whole records, with their headers.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let length = HEADER + usize::from(u16::from_be_bytes([*bytes.get(3)?, *bytes.get(4)?]));
        let record;
        (record, bytes) = bytes.split_at_checked(length)?;
        Some(record)
    })
}

/// Where the last of these messages begins.
fn last_message(messages: &[u8]) -> usize {
    let (mut last, mut next) = (0, 0);
    while next < messages.len() {
        last = next;
        next += super::message_length(&messages[next..]).expect("the library writes whole messages");
    }
    last
}

/// What the library logs of one connection.
#[derive(Debug, Default)]
struct Secrets(Mutex<Vec<Entry>>);

#[derive(Debug)]
struct Entry {
    label: String,
    client_random: Vec<u8>,
    secret: Vec<u8>,
}

impl Secrets {
    /// The client's random bytes and the secret of this label.
    fn get(&self, label: &str) -> (Vec<u8>, Vec<u8>) {
        let logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = logged.iter().find(|entry| entry.label == label).expect("the library logs every secret");
        (entry.client_random.clone(), entry.secret.clone())
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let (client_random, secret) = (client_random.to_vec(), secret.to_vec());
        let entry = Entry { label: label.to_owned(), client_random, secret };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }
}
