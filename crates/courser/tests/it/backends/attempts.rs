//! Attempts that cannot succeed at once: what is waited for, for how long, and for whom.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use courser_testkit::client::{Connection, Version};
use courser_testkit::network::{enter_namespace, sh};
use courser_testkit::{OriginServer, body};
use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::stage::{Stage, Stuck, assert_closed, content, only_line};

#[test]
fn a_unix_backend_whose_queue_is_full_is_waited_for() {
    let stage = Stage::new();
    let full = FullQueue::new(&stage.folder.join("app.sock"));
    let courser = stage.serve(full.backend());
    let client = stage.client(&courser, Version::Tls13);
    let mut connection = client.connect().unwrap();
    // The one worker has gone on to another client: it has tried for the first one.
    let _another = client.connect().unwrap();
    full.serve_http();
    connection.get(1000, true).unwrap();
    drop(connection);
    let line = &courser.connections_json(1)[0];
    assert_closed(line, "done", "none");
}

#[test]
fn a_client_that_has_said_all_it_will_still_gets_its_answer() {
    let stage = Stage::new();
    let full = FullQueue::new(&stage.folder.join("app.sock"));
    let courser = stage.serve(full.backend());
    let serving = thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let script = "
tls = connect()
tls.sendall(b'GET /?s=10 HTTP/1.0\\r\\n\\r\\n')
raw(tls).shutdown(socket.SHUT_WR)
try:
    answer = rest(tls)
except ssl.SSLEOFError:
    pass
assert b'200' in answer, answer";
            stage.python(&courser, script)
        });
        // A second client's handshake takes the worker past the first one's attempt, or begins before it: either is fine.
        let _another = stage.client(&courser, Version::Tls13).connect().unwrap();
        full.serve_http();
        asking.join().unwrap()
    });
    if let Some(done) = serving {
        content(done);
    }
}

#[test]
fn a_full_queue_is_passed_over_where_another_backend_has_room() {
    let stage = Stage::new();
    let full = FullQueue::new(&stage.folder.join("app.sock"));
    let origin = OriginServer::http();
    let courser = stage.courser().backend(full.backend()).backend(origin.backend()).start();
    let client = stage.client(&courser, Version::Tls13);
    for _ in 0..4 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    assert_eq!(origin.accepted(), 4);
}

#[test]
fn a_queue_that_stays_full_is_told_as_that() {
    let stage = Stage::new();
    let full = FullQueue::new(&stage.folder.join("app.sock"));
    let courser = stage.courser().backend(full.backend()).args(["--connect-timeout", "200ms"]).start();
    assert!(stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).is_err());
    let line = only_line(&courser);
    assert_closed(&line, "no_backend", "backend");
    assert!(line["detail"].as_str().unwrap().contains("accept queue stayed full"), "{line}");
}

#[test]
fn attempts_end_when_the_client_has_gone() {
    let stage = Stage::new();
    let stuck = [Stuck::new(), Stuck::new()];
    // One attempt alone takes longer than the test waits for the line.
    let courser = stuck.iter().fold(stage.courser(), |setup, stuck| setup.backend(stuck.address()));
    let courser = courser.args(["--connect-timeout", "60s"]).start();
    reset(stage.client(&courser, Version::Tls13).connect().unwrap());
    let line = only_line(&courser);
    assert_closed(&line, "client_reset", "client");
    assert_eq!(line["retries"], 0, "{line}");
}

#[test]
fn waiting_for_a_full_queue_ends_when_the_client_has_gone() {
    let stage = Stage::new();
    let full = FullQueue::new(&stage.folder.join("app.sock"));
    let courser = stage.courser().backend(full.backend()).args(["--connect-timeout", "60s"]).start();
    reset(stage.client(&courser, Version::Tls13).connect().unwrap());
    assert_closed(&only_line(&courser), "client_reset", "client");
}

#[test]
fn a_lack_of_local_ports_is_no_fault_of_the_backends() {
    if !enter_namespace("backends::attempts::a_lack_of_local_ports_is_no_fault_of_the_backends") {
        return;
    }
    let stage = Stage::new();
    let (short, other) = (TcpListener::bind("127.0.0.1:0").unwrap(), OriginServer::http());
    let short_of = short.local_addr().unwrap();
    let courser = stage.serve(short_of.to_string());
    let both = stage.courser().backend(short_of.to_string()).backend(other.backend()).start();
    // Three ports for each remote address, of which those towards the one backend are taken.
    sh("echo 61001 61003 > /proc/sys/net/ipv4/ip_local_port_range");
    let taken: Vec<_> = (0..4).map_while(|_| TcpStream::connect(short_of).ok()).collect();
    assert!(!taken.is_empty() && TcpStream::connect(short_of).is_err(), "{taken:?}");
    assert!(stage.client(&courser, Version::Tls13).connect().unwrap().get(10, true).is_err());
    let line = only_line(&courser);
    assert_closed(&line, "no_local_port", "courser");
    let detail = line["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("no local port left towards {short_of}")), "{line}");
    stage.client(&both, Version::Tls13).connect().unwrap().get(10, true).unwrap();
}

/// Ends a connection with RST (socket(7), SO_LINGER with zero).
fn reset(connection: Connection) {
    SockRef::from(connection.socket()).set_linger(Some(Duration::ZERO)).unwrap();
    drop(connection);
}

/// A unix socket that listens and has as many connections in its queue as fit.
struct FullQueue {
    listener: Socket,
    path: String,
    _queued: Vec<Socket>,
}

impl FullQueue {
    fn new(path: &Path) -> Self {
        let (listener, address) = (stream(), SockAddr::unix(path).unwrap());
        listener.bind(&address).unwrap();
        listener.listen(0).unwrap();
        let connect = |_| {
            let socket = stream();
            socket.set_nonblocking(true).unwrap();
            socket.connect(&address).ok().map(|()| socket)
        };
        let queued = (0..8).map_while(connect).collect();
        Self { listener, path: path.display().to_string(), _queued: queued }
    }

    fn backend(&self) -> String {
        format!("unix:{}", self.path)
    }

    /// Begins to accept; answers each request with a thousand bytes.
    fn serve_http(&self) {
        let listener = self.listener.try_clone().unwrap();
        thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                thread::spawn(move || answer(socket.into()));
            }
        });
    }
}

fn answer(mut socket: UnixStream) -> io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        request.extend(byte);
    }
    socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n")?;
    socket.write_all(&body(1000))
}

fn stream() -> Socket {
    Socket::new(Domain::UNIX, Type::STREAM, None).unwrap()
}
