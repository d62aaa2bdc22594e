//! The stream of events: what comes, how many may watch, and that nobody waits for who does not read.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use courser_testkit::client::Version;
use courser_testkit::{OriginServer, PATIENCE, Process, require};
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::watched;
use crate::admin::url;
use crate::stage::{Stage, eventually};

/// As many as may be.
const STREAMS: usize = 12;

#[test]
fn curl_gets_the_state_and_then_what_changes() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = watched(stage.courser().backend(origin.backend())).start();
    let url = url(&courser);
    let Some(curl) = require("curl") else { return };
    let mut command = Command::new(curl);
    let stream = Process::start(command.args(["--silent", "--no-buffer", &format!("{url}/events")]));
    let events = |lines: &[String], name: &str| {
        let is_event = |pair: &[String]| pair[0] == format!("event: {name}");
        let pairs = lines.windows(2).filter(|pair| is_event(pair));
        let data = pairs.map(|pair| pair[1].strip_prefix("data: ").expect("data follows"));
        data.map(|data| serde_json::from_str(data).expect("it is JSON")).collect::<Vec<Value>>()
    };
    let state = stream.wait_stdout("the state", |lines| events(lines, "state").pop());
    assert_eq!((&state["schema"], &state["generation"]["number"]), (&1.into(), &1.into()), "{state}");
    stage.client(&courser, Version::Tls13).connect().unwrap().get(1000, true).unwrap();
    let change = stream.wait_stdout("the handshake", |lines| {
        let mut changes = events(lines, "change").into_iter();
        changes.find(|change| change["handshakes"]["full"] == 1)
    });
    assert_eq!(change["version"], Value::Null, "what stays is not sent again: {change}");
    assert_eq!(stream.wait_stdout("more", |lines| Some(events(lines, "state").len())), 1);
}

/// A client that asks for the stream, and the system's buffers for it, which hold a little.
fn ask(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(2048).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

/// The first line of an answer.
fn answer(stream: &TcpStream) -> String {
    let mut line = String::new();
    BufReader::with_capacity(16, stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

const OK: &str = "HTTP/1.1 200 OK";
const FULL: &str = "HTTP/1.1 503 Service Unavailable";

/// Twelve watch and do not read; the state is larger than what is held for them. They are let go, and others take their places.
#[test]
fn who_does_not_read_loses_its_place() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let backends = (1..800).map(|port| format!("127.0.0.1:{port}"));
    let mut setup = watched(stage.courser().backend(origin.backend()));
    for backend in backends {
        setup = setup.backend(backend);
    }
    let courser = setup.start();
    let url = url(&courser);
    let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
    let slow: Vec<_> = (0..STREAMS).map(|_| ask(address)).collect();
    assert!(slow.iter().all(|stream| answer(stream) == OK));
    assert_eq!(answer(&ask(address)), FULL);
    eventually("a place is free", || answer(&ask(address)) == OK);
    for mut stream in slow {
        let mut rest = Vec::new();
        // A reset is an end too.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.len() < 2_000_000, "{} bytes were held for it", rest.len());
    }
}

/// A hundred ask for streams; who is served over TLS, and who probes, does not notice.
#[test]
fn a_hundred_streams_are_in_nobodys_way() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let courser = watched(stage.courser().backend(origin.backend())).start();
    let url = url(&courser);
    let address: SocketAddr = url.strip_prefix("http://").unwrap().parse().unwrap();
    let streams: Vec<_> = (0..100).map(|_| ask(address)).collect();
    for _ in 0..20 {
        stage.client(&courser, Version::Tls13).connect().unwrap().get(1000, true).unwrap();
    }
    let answers: Vec<_> = streams.iter().map(answer).collect();
    let with = |status: &str| answers.iter().filter(|answer| *answer == status).count();
    assert_eq!((with(OK), with(FULL)), (STREAMS, 100 - STREAMS), "{answers:?}");
    let mut probe = TcpStream::connect(address).unwrap();
    probe.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert_eq!(answer(&probe), OK);
}
