//! Bytes in both directions: all of them, in order, with every kind of end, and without growing.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
    time::Duration,
};

use courser_testkit::{
    Behaviour, Courser, KeyType, OriginServer, body,
    client::{Client, Connection, Resume, Version},
    require,
};

use crate::stage::{
    Stage, assert_closed, backend, content, descriptors_at_rest, eventually, go_program, only_line, run,
};

const MEGABYTE: u64 = 1 << 20;

/// What all the sockets between a client and a backend hold on loopback when nobody reads is below this.
const ALL_SOCKETS: u64 = 64 * MEGABYTE;

#[test]
fn ten_megabytes_reach_curl_unchanged() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    if require("curl").is_none() {
        return;
    }
    let received = stage.folder.join("received");
    content(run(stage.curl(&courser, "/?s=10m").arg("--output").arg(&received)));
    let expected = stage.folder.write("expected", body(10 << 20));
    assert_eq!(sha256(&received), sha256(&expected));
    assert_closed(&only_line(&courser), "done", "none");
}

/// A client shows what it can decrypt: the first record has to come with TCP's first window, later ones are cheapest full.
#[test]
fn records_are_short_at_first_and_full_in_a_long_answer() {
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let script = "
tls = connect()
tls.sendall(b'GET /?s=4m HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')
records = [len(record) for record in iter(lambda: tls.recv(65536), b'')]
assert records[0] <= 4096 and sum(records[:4]) <= 16384, records[:4]
assert records.count(16384) > 100, records";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
}

#[test]
fn ten_megabytes_come_back_unchanged_after_a_half_close() {
    echoed(10 * MEGABYTE);
}

#[test]
fn a_gigabyte_comes_back_unchanged_after_a_half_close() {
    echoed(1024 * MEGABYTE);
}

#[test]
fn a_backend_may_end_first_and_still_listen() {
    let stage = Stage::new();
    let (address, received) = backend(|mut socket| {
        socket.write_all(b"all I have").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        read_all(socket).unwrap()
    });
    let courser = stage.serve(address);
    let script = "
tls = connect()
assert rest(tls) == b'all I have'
tls.sendall(b'late' * 100000)
tls.unwrap()";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    assert!(received.join().unwrap() == b"late".repeat(100_000));
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_backend_may_speak_first() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Greet(b"220 ready".into())).start();
    let courser = stage.serve(origin.backend());
    let Some(done) = stage.python(&courser, "print(connect().recv(100))") else { return };
    assert_eq!(content(done), "b'220 ready'");
}

#[test]
fn a_backend_that_closes_in_the_middle_is_passed_on_as_a_clean_end() {
    let stage = Stage::new();
    let (address, _served) = backend(|mut socket| {
        until_empty_line(&mut socket);
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").unwrap();
    });
    let courser = stage.serve(address);
    if require("curl").is_none() {
        return;
    }
    let curl = run(&mut stage.curl(&courser, "/"));
    assert_eq!((curl.status.code(), curl.stdout.as_str()), (Some(18), "half"), "{}", curl.stderr);
    assert_closed(&only_line(&courser), "done", "none");
}

#[test]
fn a_backend_that_resets_is_named_and_the_client_can_tell() {
    let stage = Stage::new();
    // A socket that is closed with bytes unread in it is reset.
    let (address, _served) = backend(|socket| socket.peek(&mut [0]).unwrap());
    let courser = stage.serve(address);
    let script = "
tls = connect()
tls.sendall(b'hello')
try:
    rest(tls)
    sys.exit('a clean end')
except (ssl.SSLEOFError, ConnectionResetError):
    pass";
    let Some(done) = stage.python(&courser, script) else { return };
    content(done);
    assert_closed(&only_line(&courser), "backend_reset", "backend");
}

/// Says something and ends the TCP connection without close_notify, then hears the answer.
const CUT_SHORT: &str = "
tls = connect()
tls.sendall(b'half a request')
raw(tls).shutdown(socket.SHUT_WR)
try:
    print(rest(tls))
except (ssl.SSLEOFError, ConnectionResetError):
    print('no answer')";

#[test]
fn an_end_without_close_notify_is_logged_and_the_backend_gets_a_fin() {
    let stage = Stage::new();
    let (address, received) = backend(|mut socket| {
        let received = read_all(&socket);
        socket.write_all(b"an answer").unwrap();
        received
    });
    let courser = stage.serve(address);
    let Some(done) = stage.python(&courser, CUT_SHORT) else { return };
    assert_eq!(content(done), "b'an answer'");
    assert_eq!(received.join().unwrap().unwrap(), b"half a request");
    assert_closed(&only_line(&courser), "truncated", "client");
    courser.wait_stderr_line("cut short");
}

#[test]
fn a_client_that_leaves_without_a_word_is_no_truncation_however_it_leaves() {
    let stage = Stage::new();
    let (address, _) = backend(|socket| read_all(&socket));
    let courser = stage.serve(address);
    let leave = "
tls = connect()
raw(tls).shutdown(socket.SHUT_WR)
print(rest(tls))";
    let Some(done) = stage.python(&courser, leave) else { return };
    assert_eq!(content(done), "b''");
    assert_closed(&only_line(&courser), "closed_after_handshake", "none");
    assert!(courser.stderr().iter().all(|line| !line.contains("cut short")));
}

#[test]
fn an_end_without_close_notify_resets_the_backend_where_that_is_set() {
    let stage = Stage::new();
    let (address, received) = backend(|socket| read_all(&socket));
    let courser = stage.courser().backend(address).args(["--on-truncation", "reset"]).start();
    let Some(done) = stage.python(&courser, CUT_SHORT) else { return };
    assert_eq!(content(done), "no answer");
    assert_eq!(received.join().unwrap().unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_closed(&only_line(&courser), "truncated", "client");
}

#[test]
fn an_idle_connection_gets_a_clean_end() {
    let stage = Stage::new();
    let origin = OriginServer::setup(Behaviour::Silent).start();
    let courser = stage.courser().backend(origin.backend()).args(["--idle-timeout", "300ms"]).start();
    let Some(done) = stage.python(&courser, "assert rest(connect()) == b''") else { return };
    content(done);
    assert_closed(&only_line(&courser), "idle_timeout", "none");
}

#[test]
fn a_client_that_does_not_read_stops_the_backend() {
    let stage = Stage::new();
    let (address, sent) = backend(|mut socket| write_until_full(&mut socket));
    let courser = stage.serve(address);
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    let before = courser.memory().rss;
    let sent = sent.join().unwrap();
    assert!(sent < ALL_SOCKETS, "{sent} bytes were taken from the backend");
    assert_within(&courser, before, 8 * MEGABYTE);
    assert_eq!(io::copy(&mut client.stream(), &mut io::sink()).unwrap(), sent);
}

#[test]
fn a_backend_that_does_not_read_stops_the_client() {
    let stage = Stage::new();
    let (address, served) = backend(|socket| socket);
    let courser = stage.serve(address);
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    let _kept_open = served.join().unwrap();
    let before = courser.memory().rss;
    let (sent, _rest) = write_records_until_full(&mut client);
    assert!(sent < ALL_SOCKETS, "{sent} bytes were taken from the client");
    assert_within(&courser, before, 8 * MEGABYTE);
}

#[test]
fn both_directions_may_be_full_at_once() {
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let mut client = stage.client(&courser, Version::Tls13).connect().unwrap();
    let mut socket = client.socket().try_clone().unwrap();
    let (sent, rest) = write_records_until_full(&mut client);
    // Now the client reads, and with it everything has to come into motion again.
    let writer = thread::spawn(move || socket.write_all(&rest).unwrap());
    let mut received = vec![0; 1 << 16];
    let mut count = 0;
    while count < sent {
        count += client.stream().read(&mut received).unwrap() as u64;
    }
    writer.join().unwrap();
    assert_eq!(count, sent);
}

#[test]
fn an_idle_connection_holds_no_buffer() {
    const CONNECTIONS: u64 = 300;
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let client = stage.client(&courser, Version::Tls13);
    let open = |_| {
        let mut connection = client.connect().unwrap();
        connection.get(100_000, false).unwrap();
        connection
    };
    let _first: Vec<_> = (0..50).map(open).collect();
    let before = courser.memory().rss;
    let _more: Vec<_> = (0..CONNECTIONS).map(open).collect();
    // One buffer in either direction would be 36 KiB.
    assert_within(&courser, before, CONNECTIONS * 30 * 1024);
}

#[test]
fn ten_thousand_connections_lose_no_byte_and_leak_no_descriptor() {
    const LANES: usize = 4;
    const EACH: usize = 2500;
    let stage = Stage::new();
    let origin = OriginServer::http();
    let courser = stage.serve(origin.backend());
    let descriptors = descriptors_at_rest(&courser, &stage.client(&courser, Version::Tls13));
    let lane = |lane: usize| {
        let client = Client::new(courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Ticket);
        for number in 0..EACH {
            // `get` compares every byte.
            client.connect().unwrap().get((number * 7 + lane) % 3000, true).unwrap();
        }
    };
    thread::scope(|scope| (0..LANES).for_each(|number| drop(scope.spawn(move || lane(number)))));
    let lines = courser.connections_json(1 + LANES * EACH);
    assert!(
        lines.iter().all(|line| line["close_reason"] == "done"),
        "{:#?}",
        lines.iter().find(|line| line["close_reason"] != "done")
    );
    eventually("descriptors are given back", || courser.descriptors() == descriptors);
}

/// Has a client in Go send `size` bytes to an echo and end its side, and compare what comes back by hash.
fn echoed(size: u64) {
    static JUDGE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let Some(judge) = JUDGE.get_or_init(|| go_program("echo", include_str!("judges/echo.go"))) else {
        return;
    };
    let stage = Stage::new();
    let origin = OriginServer::echo();
    let courser = stage.serve(origin.backend());
    let mut command = Command::new(judge);
    command.arg(courser.address().to_string()).arg(&stage.root).arg(size.to_string());
    content(run(&mut command));
    let line = only_line(&courser);
    assert_closed(&line, "done", "none");
    assert_eq!((line["bytes_in"].as_u64(), line["bytes_out"].as_u64()), (Some(size), Some(size)));
}

fn sha256(file: &Path) -> String {
    let said = content(run(Command::new("sha256sum").arg(file)));
    said.split(' ').next().unwrap().to_owned()
}

fn read_all(mut socket: impl Read) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    socket.read_to_end(&mut received)?;
    Ok(received)
}

fn until_empty_line(socket: &mut TcpStream) {
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        received.extend(byte);
    }
}

/// How long a socket that takes nothing counts as full. A machine that is slower than this makes the tests weaker,
/// not wrong.
const FULL: Duration = Duration::from_millis(500);

/// Writes until nothing more is taken, and returns how much was.
fn write_until_full(socket: &mut TcpStream) -> u64 {
    socket.set_write_timeout(Some(FULL)).unwrap();
    let block = [b'x'; 1 << 16];
    let mut sent = 0;
    while sent < 4 * ALL_SOCKETS
        && let Ok(count) = socket.write(&block)
    {
        sent += count as u64;
    }
    sent
}

/// As [`write_until_full`], over TLS: how much plaintext was sent, and the bytes of it that the socket did not take.
pub(crate) fn write_records_until_full(client: &mut Connection) -> (u64, Vec<u8>) {
    let mut socket = client.socket().try_clone().unwrap();
    socket.set_write_timeout(Some(FULL)).unwrap();
    let mut sent = 0;
    while sent < 4 * ALL_SOCKETS {
        let mut records = Vec::new();
        client.tls().writer().write_all(&[b'x'; 1 << 14]).unwrap();
        client.tls().write_tls(&mut records).unwrap();
        sent += 1 << 14;
        while !records.is_empty() {
            match socket.write(&records) {
                Ok(count) => drop(records.drain(..count)),
                Err(_) => {
                    socket.set_write_timeout(None).unwrap();
                    return (sent, records);
                }
            }
        }
    }
    (sent, Vec::new())
}

/// Asserts that the terminator's memory has not grown by more than `limit` bytes.
#[track_caller]
fn assert_within(courser: &Courser, before: u64, limit: u64) {
    let grown = courser.memory().rss.saturating_sub(before);
    assert!(grown <= limit, "memory has grown by {} KiB", grown / 1024);
}
