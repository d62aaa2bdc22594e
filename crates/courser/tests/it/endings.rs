//! How connections end as the two sides see it: whether the backend may take what it got for the whole request, and
//! whether the client gets what the backend had to say.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use courser_testkit::client::hostile::HostileClient;
use courser_testkit::client::{Client, Version};
use courser_testkit::{Courser, Signal, client::Connection, require};
use socket2::SockRef;

use crate::relay::write_records_until_full;
use crate::stage::{Stage, assert_closed, backend, eventually, only_line};

/// What a backend sees at the end of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// FIN: that was all.
    Fin,
    /// RST: that was not all.
    Reset,
}

/// What was said before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The client was in the middle of a request.
    HalfARequest,
    /// The backend has answered, and the connection rests.
    AnAnswer,
}

type End = fn(Connection, &mut Courser);
type Row = (&'static str, &'static [&'static str], End, (&'static str, &'static str), View, View);

/// Every way to end, what the log says, and what the backend sees after half a request and after an answer.
const ENDS: &[Row] = &[
    ("close_notify", &[], |client, _| client.close().unwrap(), ("done", "none"), View::Fin, View::Fin),
    ("a bare FIN", &[], bare_fin, ("truncated", "client"), View::Fin, View::Fin),
    (
        "a bare FIN, refused",
        &["--on-truncation", "reset"],
        bare_fin,
        ("truncated", "client"),
        View::Reset,
        View::Reset,
    ),
    ("a reset", &[], reset, ("client_reset", "client"), View::Reset, View::Reset),
    ("a wrong byte", &[], wrong_byte, ("bad_record", "client"), View::Reset, View::Reset),
    ("an alert", &[], fatal_alert, ("client_alert", "client"), View::Reset, View::Reset),
    (
        "the idle timeout",
        &["--idle-timeout", "300ms"],
        |client, _| until_closed(client),
        ("idle_timeout", "none"),
        View::Reset,
        View::Fin,
    ),
    (
        "the greatest age",
        &["--max-connection-age", "500ms"],
        |client, _| until_closed(client),
        ("max_connection_age", "courser"),
        View::Reset,
        View::Fin,
    ),
    (
        "the drain deadline",
        &["--drain-timeout", "300ms"],
        |client, courser| {
            courser.signal(Signal::SIGTERM);
            until_closed(client);
        },
        ("shutdown", "courser"),
        View::Reset,
        View::Fin,
    ),
    (
        "a second SIGTERM",
        &["--drain-timeout", "1h"],
        |client, courser| {
            courser.signal(Signal::SIGTERM);
            courser.wait_stderr_line("draining");
            courser.signal(Signal::SIGTERM);
            until_closed(client);
        },
        ("shutdown", "courser"),
        View::Reset,
        View::Fin,
    ),
];

#[test]
fn only_an_orderly_end_looks_like_one_to_the_backend() {
    let stage = Stage::new();
    for (what, flags, end, log, after_half, after_answer) in ENDS {
        for (before, expected) in [(Before::HalfARequest, after_half), (Before::AnAnswer, after_answer)] {
            let (address, seen) = observer();
            let mut courser = stage.courser().backend(address).args(*flags).start();
            let client = said(&stage.client(&courser, Version::Tls13), before);
            if before == Before::HalfARequest {
                assert_eq!(seen.recv().unwrap(), Seen::Said("half"), "{what}");
            }
            end(client, &mut courser);
            assert_eq!(seen.recv().unwrap(), Seen::End(*expected), "{what} after {before:?}");
            let line = only_line(&courser);
            assert_eq!(
                (line["close_reason"].as_str(), line["cause"].as_str()),
                (Some(log.0), Some(log.1)),
                "{what}"
            );
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Said(&'static str),
    End(View),
}

/// A backend that answers `ask` and tells when half a request has come, and how it ends.
fn observer() -> (String, Receiver<Seen>) {
    let (tell, seen) = channel();
    let (address, _) = backend(move |mut socket| {
        let mut received = Vec::new();
        loop {
            let mut bytes = [0; 100];
            match socket.read(&mut bytes) {
                Ok(0) => return drop(tell.send(Seen::End(View::Fin))),
                Ok(read) => received.extend(&bytes[..read]),
                Err(_) => return drop(tell.send(Seen::End(View::Reset))),
            }
            match &received[..] {
                b"half" => drop(tell.send(Seen::Said("half"))),
                b"ask" => socket.write_all(b"answer").unwrap(),
                _ => {}
            }
        }
    });
    (address, seen)
}

fn said(client: &Client, before: Before) -> Connection {
    let mut connection = client.connect().unwrap();
    match before {
        Before::HalfARequest => connection.stream().write_all(b"half").unwrap(),
        Before::AnAnswer => {
            connection.stream().write_all(b"ask").unwrap();
            connection.stream().read_exact(&mut [0; 6]).unwrap();
        }
    }
    connection
}

fn bare_fin(client: Connection, _: &mut Courser) {
    client.socket().shutdown(Shutdown::Write).unwrap();
    until_closed(client);
}

fn reset(client: Connection, _: &mut Courser) {
    SockRef::from(client.socket()).set_linger(Some(Duration::ZERO)).unwrap();
    drop(client);
}

fn wrong_byte(client: Connection, _: &mut Courser) {
    client.socket().write_all(&[&[23, 3, 3, 0, 30][..], &[7; 30]].concat()).unwrap();
    until_closed(client);
}

/// The library alerts about a record that it cannot open.
fn fatal_alert(mut client: Connection, _: &mut Courser) {
    let garbage = [&[23, 3, 3, 0, 30][..], &[7; 30]].concat();
    client.tls().read_tls(&mut &garbage[..]).unwrap();
    client.tls().process_new_packets().unwrap_err();
    let mut alert = Vec::new();
    client.tls().write_tls(&mut alert).unwrap();
    client.socket().write_all(&alert).unwrap();
    until_closed(client);
}

fn until_closed(client: Connection) {
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = client.socket().read_to_end(&mut rest);
    drop(client);
}

const ANSWER: &[u8] =
    b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge";

/// More than all sockets between the two hold.
const UPLOAD: usize = 64 << 20;

/// Reads a little of an upload, answers, and closes with the rest unread: a reset follows the answer.
fn refuse_upload(mut socket: TcpStream) {
    socket.read_exact(&mut [0; 1000]).unwrap();
    socket.write_all(ANSWER).unwrap();
}

#[test]
fn an_early_answer_is_delivered() {
    let stage = Stage::new();
    let (address, _) = backend(refuse_upload);
    let courser = stage.serve(address);
    assert_eq!(upload(&stage.client(&courser, Version::Tls13)), ANSWER);
    let line = only_line(&courser);
    assert!(
        ["backend_reset", "backend_closed_early"].contains(&line["close_reason"].as_str().unwrap()),
        "{line}"
    );
    assert_eq!(line["bytes_out"], ANSWER.len());
}

#[test]
fn an_early_answer_of_a_backend_that_ends_in_order_has_a_clean_end() {
    let stage = Stage::new();
    let (address, _) = backend(|mut socket| {
        socket.read_exact(&mut [0; 1000]).unwrap();
        socket.write_all(ANSWER).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
    });
    let courser = stage.serve(address);
    assert_eq!(upload(&stage.client(&courser, Version::Tls13)), ANSWER);
    let line = only_line(&courser);
    assert_eq!(line["bytes_out"], ANSWER.len(), "{line}");
}

#[test]
fn an_early_answer_over_a_unix_socket_is_delivered_too() {
    let stage = Stage::new();
    let path = stage.folder.join("backend.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.read_exact(&mut [0; 1000]).unwrap();
        socket.write_all(ANSWER).unwrap();
    });
    let courser = stage.serve(format!("unix:{}", path.display()));
    assert_eq!(upload(&stage.client(&courser, Version::Tls13)), ANSWER);
}

/// Sends until nothing more is taken, as many clients do, then reads: what comes.
fn upload(client: &Client) -> Vec<u8> {
    let mut connection = client.connect().unwrap();
    let block = [b'x'; 1 << 14];
    for _ in 0..UPLOAD / block.len() {
        // A reset shows when it is read.
        if connection.stream().write_all(&block).is_err() {
            break;
        }
    }
    let mut socket = connection.socket().try_clone().unwrap();
    let mut answer = Vec::new();
    while connection.tls().read_tls(&mut socket).expect("the client is not reset") > 0 {
        let state = connection.tls().process_new_packets().unwrap();
        let mut part = vec![0; state.plaintext_bytes_to_read()];
        connection.tls().reader().read_exact(&mut part).unwrap();
        answer.extend(part);
        if state.peer_has_closed() {
            break;
        }
    }
    answer
}

#[test]
fn a_client_that_has_ended_waits_for_its_answer_so_long_and_no_longer() {
    let stage = Stage::new();
    let (address, _hung) = backend(|socket| {
        let mut all = Vec::new();
        (&socket).read_to_end(&mut all).unwrap();
        thread::park();
    });
    let courser = stage.courser().backend(address).args(["--client-fin-timeout", "300ms"]).start();
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    client.stream().write_all(b"ask").unwrap();
    client.tls().send_close_notify();
    client.stream().flush().unwrap();
    until_closed(client);
    assert_closed(&only_line(&courser), "client_fin_timeout", "backend");
}

/// Records without content, and key updates, are received and lead to nothing: they keep no half-closed connection open.
#[test]
fn a_client_cannot_keep_a_connection_open_that_its_backend_has_ended() {
    let stage = Stage::new();
    let (address, _) = backend(|socket| socket.shutdown(Shutdown::Write).map(|()| socket));
    let courser = stage.courser().backend(address).args(["--backend-fin-timeout", "500ms"]).start();
    let mut client = HostileClient::connect(&stage.client(&courser, Version::Tls13)).unwrap();
    client.send_data(b"ask").unwrap();
    let line = loop {
        // Fewer than would be refused.
        let _ = client.send_data(b"");
        if let [line] = &courser.stdout()[..] {
            break line.clone();
        }
        thread::sleep(Duration::from_millis(100));
    };
    assert!(line.contains("backend_fin_timeout"), "{line}");
}

#[test]
fn a_long_answer_to_a_client_that_has_ended_is_not_cut() {
    let stage = Stage::new();
    let (address, _) = backend(|mut socket| -> io::Result<()> {
        socket.read_to_end(&mut Vec::new())?;
        // Longer in all than the timeout, byte by byte.
        for _ in 0..8 {
            socket.write_all(b"x")?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    let courser = stage.courser().backend(address).args(["--client-fin-timeout", "500ms"]).start();
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    client.stream().write_all(b"ask").unwrap();
    client.tls().send_close_notify();
    let mut answer = Vec::new();
    client.stream().read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"xxxxxxxx");
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_busy_connection_becomes_no_older_than_it_may() {
    let stage = Stage::new();
    let (address, _) = backend(|mut socket| while socket.write_all(&[b'x'; 1 << 16]).is_ok() {});
    let courser = stage.courser().backend(address).args(["--max-connection-age", "500ms"]).start();
    let client = stage.client(&courser, Version::Tls13).connect().unwrap();
    until_closed(client);
    assert_closed(&only_line(&courser), "max_connection_age", "courser");
}

/// A backend may say something (100 Continue, for one) while most of the request is still on its way.
#[test]
fn a_request_that_was_cut_off_behind_an_interim_answer_is_reset() {
    let stage = Stage::new();
    let (go_on, told) = channel();
    let (address, seen) = backend(move |mut socket| {
        told.recv().unwrap();
        socket.write_all(b"!").unwrap();
        told.recv().unwrap();
        io::copy(&mut socket, &mut io::sink())
    });
    let courser =
        stage.courser().backend(address).args(["--idle-timeout", "3s", "--tcp-user-timeout", "1h"]).start();
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    let _ = write_records_until_full(&mut client);
    go_on.send(()).unwrap();
    assert_closed(&only_line(&courser), "idle_timeout", "none");
    go_on.send(()).unwrap();
    assert_eq!(seen.join().unwrap().unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[test]
fn what_comes_behind_our_close_notify_breaks_nothing() {
    for record in [&[23, 3, 3, 0, 30][..], &[22, 3, 3, 0, 30], &[99, 3, 3, 0, 30]] {
        let stage = Stage::new();
        let (address, _) = backend(|socket| socket.shutdown(Shutdown::Write).map(|()| socket));
        let courser = stage.serve(address);
        let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
        client.stream().write_all(b"ask").unwrap();
        assert_eq!(client.stream().read(&mut [0]).unwrap(), 0);
        client.socket().write_all(&[record, &[7; 30]].concat()).unwrap();
        assert_closed(&only_line(&courser), "bad_record", "client");
    }
}

#[test]
fn the_kernel_watches_both_peers() {
    let stage = Stage::new();
    let Some(ss) = require("ss") else { return };
    let (address, kept) = backend(|socket| socket);
    let courser = stage.courser().backend(address).args(["--tcp-keepalive", "1s"]).start();
    let _client = stage.client(&courser, Version::Tls13).connect().unwrap();
    let backend = kept.join().unwrap();
    let timers = |filter: String| {
        let run = std::process::Command::new(&ss).args(["-H", "-t", "-n", "-o", &filter]).output().unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    let is_kept = |timers: &str| timers.contains("timer:(keepalive,");
    eventually("the client's socket has a keepalive", || {
        is_kept(&timers(format!("sport = :{}", courser.address().port())))
    });
    eventually("the backend's socket has a keepalive", || {
        is_kept(&timers(format!("dport = :{}", backend.local_addr().unwrap().port())))
    });
}
