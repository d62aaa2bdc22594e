//! What strangers send: each kind of it has its alert, its end reason and no consequence for anybody else.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use courser_testkit::{
    OriginServer, PATIENCE, Process,
    client::{Connection, Version},
    require,
};
use rustls::ClientConnection;

use crate::stage::{Stage, assert_closed, content, descriptors_at_rest, eventually, only_line, run};

const UNEXPECTED_MESSAGE: u8 = 10;
const RECORD_OVERFLOW: u8 = 22;
const DECODE_ERROR: u8 = 50;
const PROTOCOL_VERSION: u8 = 70;

/// A client that does not stop talking when it is refused: longer than any buffer that could hide a reset.
static CHATTER: [u8; 256 * 1024] = [b'x'; 256 * 1024];

#[test]
fn garbage_is_not_tls() {
    refused(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], UNEXPECTED_MESSAGE, "not_tls");
}

#[test]
fn plain_http_gets_a_tls_alert() {
    refused(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", UNEXPECTED_MESSAGE, "not_tls");
}

#[test]
fn curl_without_tls_is_told_so() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let Some(curl) = require("curl") else { return };
    let answer = stage.folder.join("answer");
    let url = format!("http://{}/", courser.address());
    content(run(Command::new(curl).args(["--silent", "--http0.9", &url, "--output"]).arg(&answer)));
    assert_eq!(std::fs::read(answer).unwrap(), [21, 3, 3, 0, 2, 2, UNEXPECTED_MESSAGE]);
    let line = only_line(&courser);
    assert_closed(&line, "not_tls", "client");
    assert_eq!(line["detail"], "plain HTTP, not TLS");
}

#[test]
fn a_proxy_header_that_nobody_asked_for_is_refused() {
    refused(b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n", UNEXPECTED_MESSAGE, "unexpected_proxy_header");
}

#[test]
fn an_sslv2_hello_is_named() {
    // Length, message 1, version 0.2, one cipher, no session, a challenge of 16 bytes.
    let hello = [&[0x80, 0x1c, 1, 0, 2, 0, 3, 0, 0, 0, 16, 7, 0, 0xc0][..], &[9; 16]].concat();
    refused(&hello, PROTOCOL_VERSION, "sslv2_hello");
}

#[test]
fn a_record_without_content_is_refused() {
    refused(&[22, 3, 1, 0, 0], UNEXPECTED_MESSAGE, "zero_length_record");
}

#[test]
fn an_oversized_record_is_refused() {
    refused(&[22, 3, 1, 0x40, 1, 1, 0], RECORD_OVERFLOW, "oversized_record");
}

#[test]
fn a_hello_over_64_kilobytes_is_refused() {
    let header = [22, 3, 1, 0x40, 0, 1, 1, 0, 0];
    refused(&header, DECODE_ERROR, "hello_too_long");
}

#[test]
fn application_data_instead_of_a_hello_is_refused() {
    refused(&[23, 3, 3, 0, 1, 0], UNEXPECTED_MESSAGE, "malformed_hello");
}

#[test]
fn a_hello_that_contradicts_itself_is_refused() {
    // A session ID of 255 bytes in a message of 40.
    let message = [&[1, 0, 0, 40, 3, 3][..], &[0; 32], &[255, 0, 0, 0, 0, 0]].concat();
    refused(&record(&message), DECODE_ERROR, "malformed_hello");
}

#[test]
fn a_client_that_gives_up_with_an_alert_gets_no_answer() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    assert_eq!(converse(courser.address(), &[21, 3, 1, 0, 2, 2, 80]).unwrap().1, b"");
    assert_closed(&only_line(&courser), "malformed_hello", "client");
}

#[test]
fn a_hello_of_60_kilobytes_is_understood() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let Some(openssl) = require("openssl") else { return };
    let protocols = vec!["p".repeat(249); 240].join(",");
    let mut client = Command::new(openssl);
    client.args([
        "s_client",
        "-brief",
        "-verify_return_error",
        "-servername",
        "localhost",
        "-alpn",
        &protocols,
    ]);
    client.arg("-CAfile").arg(&stage.root).arg("-connect").arg(courser.address().to_string());
    assert!(run(&mut client).stderr.contains("CONNECTION ESTABLISHED"));
    assert_eq!(only_line(&courser)["session"], "full");
}

#[test]
fn a_client_that_never_speaks_is_let_go() {
    let stage = Stage::new();
    let courser = stage.courser().backend("127.0.0.1:9").args(["--handshake-timeout", "200ms"]).start();
    assert_eq!(converse(courser.address(), b"").unwrap().1, b"");
    assert_closed(&only_line(&courser), "hello_timeout", "client");
}

#[test]
fn bytes_that_trickle_do_not_lengthen_the_deadline() {
    let stage = Stage::new();
    let courser = stage.courser().backend("127.0.0.1:9").args(["--handshake-timeout", "300ms"]).start();
    let hello = hello_of(&mut stage.client(&courser, Version::Tls13).session());
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    // At this pace the hello would take seconds; the reads, which wait for the server to close, set the pace.
    let cut = hello.iter().any(|byte| socket.write_all(&[*byte]).is_err() || has_ended(&mut socket));
    assert!(cut, "the hello was let in, byte by byte");
    assert_closed(&only_line(&courser), "hello_timeout", "client");
}

#[test]
fn a_client_that_stops_within_the_handshake_is_let_go() {
    let stage = Stage::new();
    let courser = stage.courser().backend("127.0.0.1:9").args(["--handshake-timeout", "200ms"]).start();
    let hello = hello_of(&mut stage.client(&courser, Version::Tls13).session());
    let (_socket, answer) = converse(courser.address(), &hello).unwrap();
    assert_eq!(answer[0], 22, "the server's part of the handshake");
    assert_closed(&only_line(&courser), "handshake_timeout", "client");
}

#[test]
fn a_hello_may_be_split_at_any_byte_over_tcp_segments() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let client = stage.client(&courser, Version::Tls13);
    let mut halves: Vec<(ClientConnection, TcpStream, Vec<u8>)> = Vec::new();
    for cut in 1.. {
        let mut tls = client.session();
        let mut hello = hello_of(&mut tls);
        if cut == hello.len() {
            break;
        }
        let rest = hello.split_off(cut);
        let mut socket = TcpStream::connect(courser.address()).unwrap();
        socket.write_all(&hello).unwrap();
        halves.push((tls, socket, rest));
    }
    // The one worker takes connections in the order of their arrival: once it has served this one, it has read the
    // first halves of all the others.
    client.connect().unwrap().get(10, true).unwrap();
    for (tls, mut socket, rest) in halves {
        socket.write_all(&rest).unwrap();
        Connection::complete(tls, socket).unwrap().get(10, true).unwrap();
    }
}

#[test]
fn a_hello_may_be_split_at_any_byte_over_records() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let client = stage.client(&courser, Version::Tls13);
    let length = hello_of(&mut client.session()).len() - RECORD_HEADER;
    for cut in 1..length {
        let mut tls = client.session();
        let hello = hello_of(&mut tls);
        let (first, second) = hello[RECORD_HEADER..].split_at(cut);
        let mut socket = TcpStream::connect(courser.address()).unwrap();
        socket.write_all(&[record(first), record(second)].concat()).unwrap();
        Connection::complete(tls, socket).unwrap().get(10, true).unwrap();
    }
}

#[test]
fn a_hello_in_records_of_one_byte_is_understood() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    for version in [Version::Tls12, Version::Tls13] {
        let mut tls = stage.client(&courser, version).session();
        let hello = hello_of(&mut tls);
        let records: Vec<u8> = hello[RECORD_HEADER..].iter().flat_map(|byte| record(&[*byte])).collect();
        let mut socket = TcpStream::connect(courser.address()).unwrap();
        socket.write_all(&records).unwrap();
        Connection::complete(tls, socket).unwrap().get(10, true).unwrap();
    }
}

#[test]
fn a_client_that_closes_at_once_is_a_probe() {
    closed_after(|_, _| {}, "probe", "client");
}

#[test]
fn a_client_that_closes_within_its_hello_is_named() {
    let half = |tls: &mut ClientConnection, socket: &mut TcpStream| {
        socket.write_all(&hello_of(tls)[..50]).unwrap();
    };
    closed_after(half, "closed_in_hello", "client");
}

#[test]
fn a_client_that_closes_within_the_handshake_is_named() {
    let hello_and_answer = |tls: &mut ClientConnection, socket: &mut TcpStream| {
        socket.write_all(&hello_of(tls)).unwrap();
        socket.read_exact(&mut [0; 100]).unwrap();
    };
    closed_after(hello_and_answer, "closed_in_handshake", "client");
}

#[test]
fn a_client_that_resets_is_named() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let script = "
import struct
plain = socket.create_connection(('127.0.0.1', int(os.environ['PORT'])))
plain.send(bytes([22, 3, 1]))
plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
plain.close()";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    assert_closed(&only_line(&courser), "client_reset", "client");
}

#[test]
fn garbage_after_the_handshake_gets_an_alert() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let script = "
tls = connect()
tls.sendall(b'x')
tls.recv(1)
raw(tls).sendall(b'garbage' * 10000)
try:
    rest(tls)
    sys.exit('no alert')
except ssl.SSLError as error:
    print(error.reason)";
    let Some(done) = stage.python(&courser, script) else { return };
    let alert = content(done);
    assert!(alert.contains("ALERT"), "{alert}");
    assert_closed(&only_line(&courser), "bad_record", "client");
}

#[test]
fn a_record_that_was_tampered_with_gets_bad_record_mac() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let script = "
tls = connect()
tls.sendall(b'x')
tls.recv(1)
raw(tls).sendall(bytes([23, 3, 3, 0, 40]) + bytes(40))
try:
    rest(tls)
    sys.exit('no alert')
except ssl.SSLError as error:
    print(error.reason)";
    let Some(done) = stage.python(&courser, script) else { return };
    assert_eq!(content(done), "SSLV3_ALERT_BAD_RECORD_MAC");
    assert_closed(&only_line(&courser), "bad_record", "client");
}

#[test]
fn renegotiation_is_refused() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let Some(openssl) = require("openssl") else { return };
    let mut client = Command::new(openssl);
    client.args(["s_client", "-tls1_2", "-connect", &courser.address().to_string()]);
    // The letter is the command to ask for it.
    let said = Process::start_with_input(&mut client, "R\n").finish().stderr;
    assert!(said.contains("RENEGOTIATING") && said.contains("no renegotiation"), "{said}");
    assert_eq!(courser.connections(1).len(), 1);
}

#[test]
fn a_flood_of_key_updates_is_stopped() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    client.stream().write_all(b"x").unwrap();
    client.stream().read_exact(&mut [0]).unwrap();
    for _ in 0..100 {
        client.tls().refresh_traffic_keys().unwrap();
    }
    let told = client.stream().read(&mut [0]).unwrap_err().to_string();
    assert!(told.contains("UnexpectedMessage"), "{told}");
    let line = only_line(&courser);
    assert_closed(&line, "bad_record", "client");
    assert!(line["detail"].as_str().unwrap().contains("KeyUpdate"), "{line}");
}

#[test]
fn nothing_of_it_leaks_descriptors_or_ends_the_process() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let mut courser =
        stage.courser().backend(origin.backend()).args(["--handshake-timeout", "200ms"]).start();
    let client = stage.client(&courser, Version::Tls12);
    let descriptors = descriptors_at_rest(&courser, &client);
    let hello = hello_of(&mut client.session());
    let inputs: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        &[22, 3, 1, 0, 0],
        &[22, 3, 1, 0xff, 0xff],
        &[22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff],
        &[0x80, 0x1c, 1, 0, 2],
        &hello[..100],
        &hello,
    ];
    for _ in 0..20 {
        for input in inputs {
            let mut socket = TcpStream::connect(courser.address()).unwrap();
            socket.write_all(input).unwrap();
        }
    }
    let lines = courser.connections_json(1 + inputs.len() * 20);
    assert!(lines[1..].iter().all(|line| line["cause"] == "client"), "{lines:#?}");
    eventually("descriptors are given back", || courser.descriptors() == descriptors);
    assert!(courser.is_running() && courser.stderr().iter().all(|line| !line.contains("panicked")));
    client.connect().unwrap().get(10, true).unwrap();
}

/// Sends `bytes`, alone and with much behind them, and asserts that exactly this alert comes back, that no reset
/// follows it, which other systems than Linux would let swallow the alert, and that the log says `close_reason`.
#[track_caller]
fn refused(bytes: &[u8], alert: u8, end: &str) {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    for (lines, more) in [(1, &b""[..]), (2, &CHATTER)] {
        let (socket, answer) = converse(courser.address(), &[bytes, more].concat()).unwrap();
        assert_eq!(answer, [21, 3, 3, 0, 2, 2, alert], "with {} bytes behind it", more.len());
        socket.shutdown(Shutdown::Write).unwrap();
        for line in courser.connections_json(lines) {
            assert_closed(&line, end, "client");
        }
        assert!(socket.take_error().unwrap().is_none(), "reset, with {} bytes behind it", more.len());
    }
}

/// Sends `bytes` and reads to the end: the socket, and everything that the server has said.
fn converse(address: SocketAddr, bytes: &[u8]) -> io::Result<(TcpStream, Vec<u8>)> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(bytes)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    Ok((socket, answer))
}

/// Does `before` on a new connection, closes it in order, and asserts what the log says.
#[track_caller]
fn closed_after(before: impl FnOnce(&mut ClientConnection, &mut TcpStream), reason: &str, cause: &str) {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let mut socket = TcpStream::connect(courser.address()).unwrap();
    before(&mut stage.client(&courser, Version::Tls13).session(), &mut socket);
    socket.shutdown(Shutdown::Write).unwrap();
    assert_closed(&only_line(&courser), reason, cause);
}

fn has_ended(socket: &mut TcpStream) -> bool {
    match socket.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn hello_of(tls: &mut ClientConnection) -> Vec<u8> {
    let mut hello = Vec::new();
    tls.write_tls(&mut hello).unwrap();
    hello
}

const RECORD_HEADER: usize = 5;

/// A handshake record.
fn record(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[22, 3, 1][..], &length, content].concat()
}
