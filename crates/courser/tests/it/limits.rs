//! What happens at the limits: too many connections, no descriptors left, being told to stop, bursts.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    process::Command,
};

use courser_testkit::{
    Courser, KeyType, OriginServer, Process, Signal,
    client::{Client, Connection, Resume, Version},
    require,
};
use serde_json::Value;

use crate::stage::{Stage, assert_closed, eventually, only_line};

#[test]
fn connections_beyond_the_limit_wait_and_are_served() {
    const LIMIT: usize = 2;
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser().backend(origin.backend()).args(["--max-connections", "2"]).start();
    let client = stage.client(&courser, Version::Tls13);
    let inside: Vec<_> = (0..LIMIT).map(|_| opened(&client)).collect();
    // These are in the kernel's queue: connected, and without an answer.
    let queued: Vec<_> = (0..6).map(|_| TcpStream::connect(courser.address()).unwrap()).collect();
    assert_eq!(origin.accepted(), LIMIT as u64);
    inside.into_iter().for_each(|connection| connection.close().unwrap());
    for socket in queued {
        Connection::complete(client.session(), socket).unwrap().get(10, true).unwrap();
    }
    assert!(most_at_once(&courser.connections_json(LIMIT + 6)) <= LIMIT);
}

/// The kernel gives each worker clients as it likes: no worker's clients may wait while the process has room, and all
/// wait when it has none.
#[test]
fn the_limit_is_one_for_all_workers_and_told() {
    const LIMIT: usize = 8;
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.courser_of(4).backend(origin.backend()).args(["--max-connections", "8"]).start();
    let client = stage.client(&courser, Version::Tls13);
    for round in 1..=3 {
        let inside: Vec<_> = (0..LIMIT).map(|_| opened(&client)).collect();
        assert_eq!(inside.len(), LIMIT);
        let waiting = TcpStream::connect(courser.address()).unwrap();
        waiting.set_nonblocking(true).unwrap();
        courser.wait_stderr(&format!("the limit is told {round} times"), |lines| {
            let told = lines.iter().filter(|line| line.contains("as many as max_connections allows")).count();
            (told == round).then_some(())
        });
        assert!(waiting.peek(&mut [0]).is_err(), "it waits");
        waiting.set_nonblocking(false).unwrap();
        inside.into_iter().for_each(|connection| connection.close().unwrap());
        Connection::complete(client.session(), waiting).unwrap().get(10, true).unwrap();
        courser.wait_stderr(&format!("its end is told {round} times"), |lines| {
            let told = lines.iter().filter(|line| line.contains("clients wait no more")).count();
            (told == round).then_some(())
        });
    }
    assert!(most_at_once(&courser.connections_json(3 * (LIMIT + 1))) <= LIMIT);
}

#[test]
fn without_descriptors_it_rests_and_recovers() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let Some(prlimit) = require("prlimit") else { return };
    let mut command = Command::new(prlimit);
    command.args(["--nofile=40:40", env!("CARGO_BIN_EXE_courser"), "serve", "--max-connections", "1000"]);
    command.args(["--listen", "127.0.0.1:0", "--workers", "1", "--backend", origin.backend()]);
    let process = Process::start(command.arg("--cert").arg(&stage.certificate));
    let address = process.wait_stderr_line("listening on").split("listening on ").nth(1).unwrap().to_owned();
    let address = address.split(' ').next().unwrap().parse().unwrap();
    let client = Client::new(address, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let crowd: Vec<_> = (0..60).map(|_| TcpStream::connect(address).unwrap()).collect();
    let warning = process.wait_stderr_line("cannot accept");
    assert!(warning.contains("Too many open files"), "{warning}");
    drop(crowd);
    client.connect().unwrap().get(10, true).unwrap();
}

#[test]
fn sigterm_lets_open_connections_finish() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let mut courser = stage.serve(origin.backend());
    let address = courser.address();
    let client = stage.client(&courser, Version::Tls13);
    let mut open = opened(&client);
    courser.signal(Signal::SIGTERM);
    courser.wait_stderr_line("draining");
    eventually("new clients are refused", || {
        TcpStream::connect(address).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
    open.get(100_000, false).unwrap();
    assert!(courser.is_running());
    open.close().unwrap();
    assert_eq!(courser.wait().code(), Some(0));
    assert_closed(&served(&courser), "done", "none");
}

#[test]
fn draining_has_a_deadline() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let mut courser = stage.courser().backend(origin.backend()).args(["--drain-timeout", "300ms"]).start();
    let open = opened(&stage.client(&courser, Version::Tls13));
    assert_eq!(courser.stop().code(), Some(3));
    assert_closed(&only_line(&courser), "shutdown", "courser");
    courser.wait_stderr_line("drain timeout");
    courser.wait_stderr_line("connections cut off: 1");
    drop(open);
}

#[test]
fn a_second_sigterm_stops_at_once() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let mut courser = stage.courser().backend(origin.backend()).args(["--drain-timeout", "1h"]).start();
    let open = opened(&stage.client(&courser, Version::Tls13));
    courser.signal(Signal::SIGTERM);
    courser.wait_stderr_line("draining");
    assert_eq!(courser.stop().code(), Some(3));
    assert_closed(&only_line(&courser), "shutdown", "courser");
    courser.wait_stderr_line("connections cut off: 1");
    drop(open);
}

#[test]
fn sigterm_without_connections_ends_every_worker() {
    let stage = Stage::new();
    let mut courser = stage.courser_of(4).backend("127.0.0.1:9").start();
    assert_eq!(courser.stop().code(), Some(0));
}

#[test]
fn a_burst_of_handshakes_does_not_starve_an_established_connection() {
    const BURST: usize = 300;
    let stage = Stage::with(KeyType::Rsa2048);
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let client = stage.client(&courser, Version::Tls13);
    let mut established = client.connect().unwrap();
    echo(&mut established);
    let mut burst: Vec<_> = (0..BURST).map(|_| TcpStream::connect(courser.address()).unwrap()).collect();
    let hello = hello(&client);
    for socket in &mut burst {
        socket.write_all(&hello).unwrap();
        socket.set_nonblocking(true).unwrap();
    }
    // How many exchanges the established connection gets in until the last of the burst has its answer.
    let mut exchanges = 0;
    while !burst.is_empty() {
        echo(&mut established);
        exchanges += 1;
        burst.retain_mut(|socket| socket.read(&mut [0; 16]).is_err());
    }
    // Served in a row, the burst would let in one, or two where it is still arriving.
    assert!(exchanges > 5, "{exchanges} exchanges during {BURST} handshakes");
}

/// A connection that is relayed: its first page has come.
fn opened(client: &Client) -> Connection {
    let mut connection = client.connect().unwrap();
    connection.get(10, false).unwrap();
    connection
}

fn echo(connection: &mut Connection) {
    connection.stream().write_all(b"?").unwrap();
    connection.stream().read_exact(&mut [0]).unwrap();
}

fn hello(client: &Client) -> Vec<u8> {
    let mut hello = Vec::new();
    client.session().write_tls(&mut hello).unwrap();
    hello
}

/// The line of the connection that was served, among those that met the closing door.
fn served(courser: &Courser) -> Value {
    let parse = |line: &String| serde_json::from_str::<Value>(line).unwrap();
    let with_answer = |line: &Value| line["bytes_out"] != 0;
    courser.wait_stdout("a line with an answer", |lines| lines.iter().map(parse).find(with_answer))
}

/// How many of these connections were open at the same time at most, by the times in the log (milliseconds, so that
/// an end and a beginning in the same one count as in order).
fn most_at_once(lines: &[Value]) -> usize {
    let begin = |line: &Value| milliseconds(line["time"].as_str().unwrap());
    let end = |line: &Value| begin(line) + line["total_us"].as_u64().unwrap() / 1000;
    let open_at = |time: u64| lines.iter().filter(|line| begin(line) <= time && time + 1 < end(line)).count();
    lines.iter().map(|line| open_at(begin(line))).max().unwrap()
}

/// Since midnight, of `2026-01-31T12:34:56.789Z`.
fn milliseconds(time: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| time[range].parse::<u64>().unwrap();
    ((number(11..13) * 60 + number(14..16)) * 60 + number(17..19)) * 1000 + number(20..23)
}
