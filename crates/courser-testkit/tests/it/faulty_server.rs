//! Each liar lies as it says, and in nothing else.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    process::Command,
    time::Instant,
};

use courser_testkit::{
    Fault, KeyType, Liar, Process,
    client::{Client, Resume, Version},
    faulty_server::{LATENESS, STALL},
    require,
};
use rustls::NamedGroup;

fn client(liar: &Liar, version: Version, resume: Resume) -> Client {
    Client::verifying(liar.address(), version, KeyType::EcdsaP256, resume, liar.root())
}

/// A connection that asks for an object, closes as it should, and says whether it was resumed.
fn exchange(client: &Client) -> io::Result<bool> {
    let mut connection = client.connect()?;
    connection.get(2000, true)?;
    Ok(connection.is_resumed())
}

#[test]
fn the_honest_server_serves_and_resumes_in_every_way() {
    let liar = Liar::start(Fault::None);
    let ways = [
        (Version::Tls12, Resume::SessionId),
        (Version::Tls12, Resume::Ticket),
        (Version::Tls13, Resume::Ticket),
    ];
    for (version, resume) in ways {
        let client = client(&liar, version, resume);
        assert!(!exchange(&client).unwrap(), "{version:?} {resume:?}");
        assert!(exchange(&client).unwrap(), "{version:?} {resume:?}");
    }
    let counts = liar.counts();
    assert_eq!((counts.accepted, counts.handshakes, counts.resumed, counts.answered), (6, 6, 3, 6));
    assert_eq!(counts.lies, 0);
}

#[test]
fn the_late_ones_are_late_with_the_first_answer_or_with_each() {
    for (fault, late) in [(Fault::Late, 1), (Fault::LateEach, 2)] {
        let liar = Liar::start(fault);
        let mut connection = client(&liar, Version::Tls13, Resume::Never).connect().unwrap();
        let begun = Instant::now();
        connection.get(100, false).unwrap();
        connection.get(100, true).unwrap();
        assert!(begun.elapsed() >= LATENESS * late, "{fault:?}");
        assert_eq!(liar.counts().lies, u64::from(late), "{fault:?}");
    }
}

#[test]
fn every_two_thousandth_connection_is_dropped() {
    let liar = Liar::start(Fault::Drops);
    // The others need not be served to be counted.
    for _ in 1..2000 {
        drop(TcpStream::connect(liar.address()).unwrap());
    }
    let client = client(&liar, Version::Tls13, Resume::Never);
    let error = exchange(&client).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{error}");
    exchange(&client).unwrap();
    assert_eq!((liar.counts().accepted, liar.counts().lies), (2001, 1));
}

#[test]
fn who_never_resumes_gives_no_tickets_either() {
    let liar = Liar::start(Fault::NeverResumes);
    for (version, resume) in [(Version::Tls12, Resume::SessionId), (Version::Tls12, Resume::Ticket)] {
        let client = client(&liar, version, resume);
        assert!(!exchange(&client).unwrap() && !exchange(&client).unwrap(), "{resume:?}");
    }
    let client = client(&liar, Version::Tls13, Resume::Ticket);
    let mut connection = client.connect().unwrap();
    connection.get(10, true).unwrap();
    assert_eq!(connection.tickets(), 0);
    assert!(!exchange(&client).unwrap());
    assert_eq!(liar.counts().resumed, 0);
}

#[test]
fn a_false_resumption_is_followed_by_the_certificate() {
    let liar = Liar::start(Fault::FalseResumption);
    for resume in [Resume::SessionId, Resume::Ticket] {
        let client = client(&liar, Version::Tls12, resume);
        assert!(!exchange(&client).unwrap(), "{resume:?}");
        let error = client.connect().unwrap_err().to_string();
        // That is what follows a ServerHello that resumes.
        assert!(error.contains("got Handshake when expecting ChangeCipherSpec"), "{resume:?}: {error}");
    }
    assert_eq!(liar.counts().lies, 2);
}

#[test]
fn openssl_takes_the_false_resumption_for_what_it_is() {
    let Some(openssl) = require("openssl") else { return };
    let liar = Liar::start(Fault::FalseResumption);
    let address = liar.address().to_string();
    let arguments = ["s_client", "-connect", &address, "-tls1_2", "-reconnect"];
    let finished = Process::start(Command::new(openssl).args(arguments)).finish();
    assert!(finished.stderr.contains("unexpected message"), "{}", finished.stderr);
    assert!(liar.counts().lies > 0);
}

#[test]
fn the_reset_comes_after_a_whole_handshake() {
    let liar = Liar::start(Fault::ResetAfterFinished);
    for version in [Version::Tls12, Version::Tls13] {
        let mut connection = client(&liar, version, Resume::Never).connect().unwrap();
        let error = connection.get(10, true).unwrap_err();
        let kinds = [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        assert!(kinds.contains(&error.kind()), "{version:?}: {error}");
    }
    assert_eq!((liar.counts().handshakes, liar.counts().lies), (2, 2));
}

#[test]
fn another_share_is_asked_for_whatever_was_sent() {
    let liar = Liar::start(Fault::HelloRetry);
    let groups = [NamedGroup::X25519, NamedGroup::secp256r1];
    for share in groups {
        let client = Client::with_share(liar.address(), &groups, share);
        let mut connection = client.connect().unwrap();
        connection.get(10, true).unwrap();
        let agreed = connection.agreed();
        assert!(agreed.retried && agreed.group != Some(share), "{share:?}: {agreed:?}");
    }
    let only = Client::with_share(liar.address(), &groups[..1], groups[0]);
    assert!(!only.connect().unwrap().agreed().retried);
    assert_eq!(liar.counts().lies, 2);
}

#[test]
fn every_tenth_connection_is_stalled() {
    let liar = Liar::start(Fault::Stalls);
    let client = client(&liar, Version::Tls13, Resume::Never);
    for _ in 1..10 {
        exchange(&client).unwrap();
    }
    assert_eq!(liar.counts().lies, 0);
    let begun = Instant::now();
    exchange(&client).unwrap();
    assert!(begun.elapsed() >= STALL);
    assert_eq!(liar.counts().lies, 1);
}

/// All that comes after a request for 100 bytes, and how it ended.
fn raw_answer(liar: &Liar) -> (String, io::Result<usize>) {
    let mut connection = client(liar, Version::Tls13, Resume::Never).connect().unwrap();
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
    let (answer, end) = raw_answer(&Liar::start(Fault::ShortBody));
    assert_eq!(answer, head(50) + &object[..50]);
    end.unwrap();
    let (answer, end) = raw_answer(&Liar::start(Fault::WrongByte));
    assert_eq!(answer, head(100) + &object[..50] + "?" + &object[51..]);
    end.unwrap();
    let (answer, end) = raw_answer(&Liar::start(Fault::Truncates));
    assert_eq!(answer, head(100) + &object[..50]);
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "no close_notify");
}

#[test]
fn plain_http_is_what_it_is() {
    let liar = Liar::start(Fault::PlainHttp);
    let mut socket = TcpStream::connect(liar.address()).unwrap();
    let mut tls = client(&liar, Version::Tls13, Resume::Never).session();
    tls.write_tls(&mut socket).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!((liar.counts().handshakes, liar.counts().lies), (0, 1));
}

#[test]
fn the_silent_one_closes_after_the_client_and_says_nothing() {
    let liar = Liar::start(Fault::Silent);
    let mut socket = TcpStream::connect(liar.address()).unwrap();
    client(&liar, Version::Tls13, Resume::Never).session().write_tls(&mut socket).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    assert_eq!((answer.len(), liar.counts().lies), (0, 1));
}

#[test]
fn dropping_a_liar_ends_its_connections() {
    let liar = Liar::start(Fault::Silent);
    let mut socket = TcpStream::connect(liar.address()).unwrap();
    socket.write_all(b"x").unwrap();
    drop(liar);
    // The end or a reset, as the byte was read or not; but no wait.
    let _ = socket.read(&mut [0]);
}
