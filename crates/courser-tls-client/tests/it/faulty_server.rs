//! Servers that break off, break the protocol, or speak no TLS: each failure is named for what it is.

mod exercise;

use std::fs;
use std::path::Path;

use courser_tls::{Failure, FailureKind, SessionOffer};
use courser_tls_client::{
    ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName,
};

use crate::server::{Pair, Server};

const TLS12: u16 = 0x0303;
const P256: u16 = 0x0017;

#[test]
fn an_answer_that_is_not_tls_is_quoted() {
    for answer in
        ["HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "220 ready\r\n"]
    {
        for size in [1, answer.len()] {
            let failure = receive(&mut connection(), answer.as_bytes(), size).expect_err("no TLS");
            assert_eq!(failure.kind, FailureKind::NotTls);
            let shown = &answer[..size.min(answer.lines().next().map_or(0, str::len))];
            assert!(failure.detail.contains(&format!("{shown:?}")), "{failure}");
        }
    }
}

#[test]
fn a_record_of_another_protocol_version_is_no_tls() {
    let failure = receive(&mut connection(), &[22, 2, 0, 0, 1, 0], 6).expect_err("SSL 2 is none");
    assert_eq!(failure.kind, FailureKind::NotTls);
}

#[test]
fn an_alert_keeps_its_name() {
    let failure = receive(&mut connection(), &[21, 3, 3, 0, 2, 2, 40], 1).expect_err("refused");
    assert_eq!((failure.kind, failure.alert()), (FailureKind::AlertReceived, Some("HandshakeFailure")));
}

#[test]
fn a_failed_connection_fails_again_alike() {
    let mut client = connection();
    let first = receive(&mut client, b"HTTP/1.1 400", 12).expect_err("no TLS");
    let mut outgoing = Vec::new();
    let again = client.process(&mut [22, 3, 3, 0, 0], &mut Vec::new(), &mut outgoing);
    assert_eq!(again, Err(first.clone()));
    assert_eq!(client.send(b"x", &mut [], &mut outgoing), Err(first));
    assert!(outgoing.is_empty(), "a peer without TLS gets no record");
}

#[test]
fn a_resumption_that_turns_into_a_full_handshake_is_called_false() {
    for (resume, session) in
        [(Resume::SessionId, SessionOffer::SessionId), (Resume::Ticket, SessionOffer::Tickets)]
    {
        for engine in [Engine::Lean, Engine::Real] {
            let config = config(engine, resume);
            let sessions = meet(&Server::new(TLS12, P256, session), &config);
            let mut client = client(&config, sessions);
            let mut hello = Vec::new();
            client.process(&mut [], &mut Vec::new(), &mut hello).expect("nothing has gone wrong yet");
            let failure =
                receive(&mut client, &promise_and_full_handshake(&hello), 7).expect_err("a false resumption");
            assert_eq!(failure.kind, FailureKind::FalseResumption, "{failure}");
        }
    }
}

#[test]
fn a_certificate_where_nothing_was_promised_is_no_lie() {
    let mut client = connection();
    let certificate = message(11, &[0, 0, 3, 0, 0, 0]);
    let failure = receive(&mut client, &certificate, certificate.len()).expect_err("no hello");
    assert_eq!(failure.kind, FailureKind::Protocol);
}

#[test]
fn the_corpus_of_the_fuzz_target_breaks_nothing() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/client");
    let files: Vec<_> = fs::read_dir(corpus).expect("the corpus is committed").collect();
    assert!(files.len() > 10, "the corpus is there");
    for file in files {
        exercise::client(&fs::read(file.expect("a file").path()).expect("readable"));
    }
}

/// A ServerHello that repeats the client's session ID, and then a certificate.
fn promise_and_full_handshake(hello: &[u8]) -> Vec<u8> {
    let id = &hello[5 + 4 + 2 + 32..][..33];
    assert_eq!(id[0], 32, "a session is offered");
    let extended_master_secret = [0, 4, 0, 23, 0, 0];
    let body = [&[3, 3][..], &[7; 32], id, &[0xc0, 0x2b, 0], &extended_master_secret].concat();
    [message(2, &body), message(11, &[0, 0, 3, 0, 0, 0])].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).expect("short");
    [&[22, 3, 3, 0, length + 4, kind, 0, 0, length][..], body].concat()
}

fn config(engine: Engine, resume: Resume) -> ClientTlsConfig {
    let spec =
        ClientTlsSpec { versions: vec![TLS12], groups: vec![P256], resume, ..ClientTlsSpec::default() };
    ClientTlsConfig::new(engine, &spec).expect("the engine can do it")
}

fn client(config: &ClientTlsConfig, sessions: ClientSessions) -> ClientConnection {
    let name = ServerName::parse("server.example").expect("a name");
    ClientConnection::new(config, &name, sessions).expect("the config fit")
}

fn connection() -> ClientConnection {
    client(&config(Engine::Lean, Resume::Never), ClientSessions::default())
}

/// An honest connection; returns the client's sessions.
fn meet(server: &Server, config: &ClientTlsConfig) -> ClientSessions {
    let mut pair = Pair::new(client(config, ClientSessions::default()), server.connection());
    while pair.client.handshake_info().is_none() {
        pair.client_turn().expect("a good server");
        pair.server_turn().expect("a good client");
    }
    pair.client.into_sessions()
}

/// Hands `bytes` on in pieces of `size`.
fn receive(client: &mut ClientConnection, bytes: &[u8], size: usize) -> Result<(), Failure> {
    let mut received = Vec::new();
    for piece in bytes.chunks(size) {
        received.extend_from_slice(piece);
        let progress = client.process(&mut received, &mut Vec::new(), &mut Vec::new())?;
        received.drain(..progress.consumed);
    }
    Ok(())
}
