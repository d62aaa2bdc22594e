//! Each faulty server has the fault that its name promises, and no other.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    process::Command,
    time::Instant,
};

use courser_testkit::{
    Fault, FaultyServer, KeyType, Process,
    client::{Client, Profile, Resume, Terms, Version},
    faulty_server::{LATENESS, STALL},
    require,
};
use rustls::NamedGroup;

fn client(server: &FaultyServer, version: Version, resume: Resume) -> Client {
    let terms = Terms { version, key: KeyType::EcdsaP256, resume, profile: Profile::Common };
    Client::verifying(server.address(), terms, server.root())
}

/// Requests an object, closes as it should, and returns whether the connection was resumed.
fn exchange(client: &Client) -> io::Result<bool> {
    let mut connection = client.connect()?;
    connection.get(2000, true)?;
    Ok(connection.is_resumed())
}

#[test]
fn the_honest_server_serves_and_resumes_in_every_way() {
    let server = FaultyServer::start(Fault::None);
    let ways = [
        (Version::Tls12, Resume::SessionId),
        (Version::Tls12, Resume::Ticket),
        (Version::Tls13, Resume::Ticket),
    ];
    for (version, resume) in ways {
        let client = client(&server, version, resume);
        assert!(!exchange(&client).unwrap(), "{version:?} {resume:?}");
        assert!(exchange(&client).unwrap(), "{version:?} {resume:?}");
    }
    let counts = server.counts();
    assert_eq!((counts.accepted, counts.handshakes, counts.resumed, counts.answered), (6, 6, 3, 6));
    assert_eq!(counts.faults, 0);
}

#[test]
fn the_late_ones_are_late_with_the_first_answer_or_with_each() {
    for (fault, late) in [(Fault::Late, 1), (Fault::AlwaysLate, 2)] {
        let server = FaultyServer::start(fault);
        let mut connection = client(&server, Version::Tls13, Resume::Never).connect().unwrap();
        let started = Instant::now();
        connection.get(100, false).unwrap();
        connection.get(100, true).unwrap();
        assert!(started.elapsed() >= LATENESS * late, "{fault:?}");
        assert_eq!(server.counts().faults, u64::from(late), "{fault:?}");
    }
}

#[test]
fn every_two_thousandth_connection_is_dropped() {
    let server = FaultyServer::start(Fault::Drop);
    // The others need not be served to be counted.
    for _ in 1..2000 {
        drop(TcpStream::connect(server.address()).unwrap());
    }
    let client = client(&server, Version::Tls13, Resume::Never);
    let error = exchange(&client).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    exchange(&client).unwrap();
    assert_eq!((server.counts().accepted, server.counts().faults), (2001, 1));
}

#[test]
fn who_never_resumes_gives_no_tickets_either() {
    let server = FaultyServer::start(Fault::NeverResumes);
    for (version, resume) in [(Version::Tls12, Resume::SessionId), (Version::Tls12, Resume::Ticket)] {
        let client = client(&server, version, resume);
        assert!(!exchange(&client).unwrap() && !exchange(&client).unwrap(), "{resume:?}");
    }
    let client = client(&server, Version::Tls13, Resume::Ticket);
    let mut connection = client.connect().unwrap();
    connection.get(10, true).unwrap();
    assert_eq!(connection.tickets(), 0);
    assert!(!exchange(&client).unwrap());
    assert_eq!(server.counts().resumed, 0);
}

#[test]
fn a_false_resumption_is_followed_by_the_certificate() {
    let server = FaultyServer::start(Fault::FalseResumption);
    for resume in [Resume::SessionId, Resume::Ticket] {
        let client = client(&server, Version::Tls12, resume);
        assert!(!exchange(&client).unwrap(), "{resume:?}");
        let error = client.connect().unwrap_err().to_string();
        // That is what follows a ServerHello that resumes.
        assert!(error.contains("got Handshake when expecting ChangeCipherSpec"), "{resume:?}: {error}");
    }
    assert_eq!(server.counts().faults, 2);
}

#[test]
fn openssl_takes_the_false_resumption_for_what_it_is() {
    let Some(openssl) = require("openssl") else { return };
    let server = FaultyServer::start(Fault::FalseResumption);
    let address = server.address().to_string();
    let arguments = ["s_client", "-connect", &address, "-tls1_2", "-reconnect"];
    let finished = Process::start(Command::new(openssl).args(arguments)).finish();
    assert!(finished.stderr.contains("unexpected message"), "{}", finished.stderr);
    assert!(server.counts().faults > 0);
}

#[test]
fn the_reset_comes_after_a_whole_handshake() {
    let server = FaultyServer::start(Fault::ResetAfterFinished);
    for version in [Version::Tls12, Version::Tls13] {
        let mut connection = client(&server, version, Resume::Never).connect().unwrap();
        let error = connection.get(10, true).unwrap_err();
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        assert!(kinds.contains(&error.kind()), "{version:?}: {error}");
    }
    assert_eq!((server.counts().handshakes, server.counts().faults), (2, 2));
}

#[test]
fn another_share_is_asked_for_whatever_was_sent() {
    let server = FaultyServer::start(Fault::HelloRetry);
    let groups = [NamedGroup::X25519, NamedGroup::secp256r1];
    for share in groups {
        let client = Client::with_share(server.address(), &groups, share);
        let mut connection = client.connect().unwrap();
        connection.get(10, true).unwrap();
        let agreed = connection.handshake_info();
        assert!(agreed.retried && agreed.group != Some(share), "{share:?}: {agreed:?}");
    }
    let only = Client::with_share(server.address(), &groups[..1], groups[0]);
    assert!(!only.connect().unwrap().handshake_info().retried);
    assert_eq!(server.counts().faults, 2);
}

#[test]
fn every_tenth_connection_is_stalled() {
    let server = FaultyServer::start(Fault::Stall);
    let client = client(&server, Version::Tls13, Resume::Never);
    for _ in 1..10 {
        exchange(&client).unwrap();
    }
    assert_eq!(server.counts().faults, 0);
    let started = Instant::now();
    exchange(&client).unwrap();
    assert!(started.elapsed() >= STALL);
    assert_eq!(server.counts().faults, 1);
}

/// All that comes after a request for 100 bytes, and how it ended.
fn raw_answer(server: &FaultyServer) -> (String, io::Result<usize>) {
    let mut connection = client(server, Version::Tls13, Resume::Never).connect().unwrap();
    connection.stream().write_all(b"GET /?s=100 HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let end = connection.stream().read_to_end(&mut answer);
    (String::from_utf8(answer).unwrap(), end)
}

#[test]
fn wrong_answers_are_wrong_in_one_thing() {
    let object = String::from_utf8(courser_testkit::body(100)).unwrap();
    let head =
        |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let (answer, end) = raw_answer(&FaultyServer::start(Fault::ShortBody));
    assert_eq!(answer, head(50) + &object[..50]);
    end.unwrap();
    let (answer, end) = raw_answer(&FaultyServer::start(Fault::WrongByte));
    assert_eq!(answer, head(100) + &object[..50] + "?" + &object[51..]);
    end.unwrap();
    let (answer, end) = raw_answer(&FaultyServer::start(Fault::Truncate));
    assert_eq!(answer, head(100) + &object[..50]);
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "no close_notify");
}

#[test]
fn plain_http_is_what_it_is() {
    let server = FaultyServer::start(Fault::PlainHttp);
    let mut socket = TcpStream::connect(server.address()).unwrap();
    let mut tls = client(&server, Version::Tls13, Resume::Never).session();
    tls.write_tls(&mut socket).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!((server.counts().handshakes, server.counts().faults), (0, 1));
}

#[test]
fn the_silent_one_closes_after_the_client_and_says_nothing() {
    let server = FaultyServer::start(Fault::Silent);
    let mut socket = TcpStream::connect(server.address()).unwrap();
    client(&server, Version::Tls13, Resume::Never).session().write_tls(&mut socket).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert_eq!((answer.len(), server.counts().faults), (0, 1));
}

#[test]
fn dropping_a_server_ends_its_connections() {
    let server = FaultyServer::start(Fault::Silent);
    let mut socket = TcpStream::connect(server.address()).unwrap();
    socket.write_all(b"x").unwrap();
    drop(server);
    // The end or a reset, as the byte was read or not; but no wait.
    let _ = socket.read(&mut [0]);
}
