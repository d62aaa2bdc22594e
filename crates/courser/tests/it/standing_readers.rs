//! Logs whose reader stands still or has gone, or whose disk is full: clients are served all the same, what is lost is
//! counted and told, and the program ends when it is told to.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

use courser_testkit::{
    BlockedPipe, KeyType, OriginServer, Process, Signal,
    client::{Client, Resume, Version},
    free_port,
};
use serde_json::Value;

use crate::stage::{Stage, eventually, run_courser};
use crate::support::text;

/// How long the program may take from the end of its drain to its own, whatever stands still.
const LIMIT: Duration = Duration::from_secs(5);

/// More lines than a full pipe, the queue behind it and the worker itself hold.
const FLOOD: usize = 1000;

#[test]
fn a_reader_of_standard_error_that_stands_still_stops_nothing() {
    let (stage, origin, (mut pipe, writer)) = (Stage::new(), OriginServer::http(), BlockedPipe::new());
    // Each client makes the worker warn of the backend that refuses, before the other one serves it.
    let setup = stage.courser().backend(refusing()).backend(origin.backend());
    let mut process = setup.stderr(writer).launch();
    let client = client(announced(&mut pipe));
    pipe.fill();
    for _ in 0..20 {
        client.connect().unwrap().get(10, true).unwrap();
    }
    process.wait_stdout("connection log", |lines| (lines.len() >= 20).then_some(()));
    assert_eq!(ended(&mut process), Some(0));
}

#[test]
fn the_supervisor_and_its_questions_go_on_past_a_full_pipe() {
    let (stage, (mut pipe, writer)) = (Stage::new(), BlockedPipe::new());
    let control = stage.folder.join("control.sock");
    let setup = stage.courser().backend("127.0.0.1:9").arg("--control").arg(&control);
    let mut process = setup.stderr(writer).launch();
    announced(&mut pipe);
    pipe.fill();
    // Each reload is logged; signals that come together are one reload.
    eventually("lines are lost and counted", || {
        (0..100).for_each(|_| process.signal(Signal::SIGHUP));
        status(&control)["event_lines_lost"].as_u64() > Some(0)
    });
    assert!(table(&control).contains("of events lost"), "{}", table(&control));
    // What was said first comes first when the reader goes on, and then what is missing.
    pipe.wait_line("reload: generation 2 serves");
    let told = pipe.wait_line("events: ");
    assert!(told.contains("lines lost"), "{told}");
    assert_eq!(ended(&mut process), Some(0));
    let last = pipe.rest();
    assert!(last.iter().any(|line| line.contains("draining")), "{last:#?}");
}

#[test]
fn a_reader_of_the_connection_log_that_stands_still_stops_nothing() {
    let (stage, origin, (pipe, writer)) = (Stage::new(), OriginServer::http(), BlockedPipe::new());
    pipe.fill();
    let control = stage.folder.join("control.sock");
    let setup = stage.courser().backend(origin.backend()).arg("--control").arg(&control);
    let mut courser = setup.stdout(writer).start();
    (0..FLOOD).for_each(|_| knock(courser.address()));
    assert!(status(&control)["log_lines_lost"].as_u64() > Some(0));
    client(courser.address()).connect().unwrap().get(10, true).unwrap();
    courser.wait_stderr_line("connection log: ");
    assert_eq!(ended(&mut courser), Some(0));
    // In the end every line is told to be lost: the pipe has taken none.
    courser.wait_stderr("all lines", |lines| (lost(lines) == FLOOD as u64 + 1).then_some(()));
    assert_eq!(pipe.rest(), [""; 0]);
}

#[test]
fn lines_that_waited_for_their_reader_are_whole_and_in_order() {
    let (stage, (mut pipe, writer)) = (Stage::new(), BlockedPipe::new());
    pipe.fill();
    let mut courser = stage.courser().backend("127.0.0.1:9").stdout(writer).start();
    // More than the queue has places: a worker keeps what finds none.
    (0..300).for_each(|_| knock(courser.address()));
    for number in 1..=300 {
        let line = pipe.wait_line("{");
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(line["id"], format!("0-{number}"), "{line}");
    }
    assert_eq!(ended(&mut courser), Some(0));
}

#[test]
fn it_ends_when_told_to_though_both_logs_stand_still() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let ((mut events, stderr), (log, stdout)) = (BlockedPipe::new(), BlockedPipe::new());
    let setup = stage.courser().backend(origin.backend()).args(["--drain-timeout", "1h"]);
    let mut process = setup.stdout(stdout).stderr(stderr).launch();
    let address = announced(&mut events);
    events.fill();
    log.fill();
    let mut open = client(address).connect().unwrap();
    open.get(10, false).unwrap();
    process.signal(Signal::SIGTERM);
    eventually("new clients are refused", || TcpStream::connect(address).is_err());
    open.get(10, false).unwrap();
    open.close().unwrap();
    let drained = Instant::now();
    assert_eq!(process.wait().code(), Some(0));
    assert!(drained.elapsed() < LIMIT, "{:?}", drained.elapsed());
}

#[test]
fn a_full_disk_costs_lines_and_nothing_else() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let lines = lines_of_one_that_cannot_write(full);
    assert!(lines.iter().any(|line| line.contains("No space left on device")), "{lines:#?}");
}

#[test]
fn a_reader_of_the_connection_log_that_has_gone_costs_lines_and_nothing_else() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let lines = lines_of_one_that_cannot_write(OwnedFd::from(writer).into());
    assert!(lines.iter().any(|line| line.contains("Broken pipe")), "{lines:#?}");
}

/// Serves a hundred clients with a standard output that takes nothing; what it says on standard error.
fn lines_of_one_that_cannot_write(stdout: File) -> Vec<String> {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let control = stage.folder.join("control.sock");
    let setup = stage.courser().backend(origin.backend()).arg("--control").arg(&control);
    let mut courser = setup.stdout(stdout).start();
    (0..99).for_each(|_| knock(courser.address()));
    client(courser.address()).connect().unwrap().get(10, true).unwrap();
    eventually("every line is counted", || status(&control)["log_lines_lost"] == 100);
    assert!(table(&control).contains("100 lines of connections"), "{}", table(&control));
    courser.wait_stderr_line("connection log: ");
    assert_eq!(ended(&mut courser), Some(0));
    courser.wait_stderr("all lines", |lines| (lost(lines) == 100).then(|| lines.to_vec()))
}

/// Tells it to end and waits until it has, within the limit; no connection is open.
#[track_caller]
fn ended(process: &mut Process) -> Option<i32> {
    let told = Instant::now();
    let status = process.stop();
    assert!(told.elapsed() < LIMIT, "{:?}", told.elapsed());
    status.code()
}

/// The address in the line on standard error, of which one line more comes.
fn announced(events: &mut BlockedPipe) -> SocketAddr {
    let line = events.wait_line("listening on ");
    let address = line.split("listening on ").nth(1).and_then(|rest| rest.split(' ').next());
    address.unwrap().parse().unwrap()
}

fn client(address: SocketAddr) -> Client {
    Client::new(address, Version::Tls13, KeyType::EcdsaP256, Resume::Never)
}

/// A client that speaks no TLS: the cheapest way to a line in the log.
fn knock(address: SocketAddr) {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"who is there?").unwrap();
    // Refused with or without a word.
    let _ = client.read_to_end(&mut Vec::new());
}

fn refusing() -> String {
    format!("127.0.0.1:{}", free_port())
}

fn status(control: &Path) -> Value {
    let asked = run_courser(&["fleet", "status", "--json", "--control", text(control)]);
    serde_json::from_str(&asked.stdout).unwrap_or_else(|error| panic!("{error}: {asked:?}"))
}

fn table(control: &Path) -> String {
    run_courser(&["fleet", "status", "--control", text(control)]).stdout
}

/// How many lines of the connection log are told to be lost.
fn lost(events: &[String]) -> u64 {
    let told = events.iter().filter_map(|line| line.split_once("connection log: "));
    told.map(|(_, rest)| rest.split(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}
