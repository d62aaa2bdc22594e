//! Processor time of the program for what one client sends, in instructions counted by valgrind, next to an honest client
//! that sends as many records of the same size.

use std::path::Path;

use courser_testkit::client::Client;
use courser_testkit::client::Version::Tls13;
use courser_testkit::client::hostile::{APPLICATION_DATA, HANDSHAKE, MAX_PLAINTEXT};
use courser_testkit::{Behaviour, Folder, OriginServer, require};

use super::{FULL, Hostile, begun, endless};
use crate::stage::Stage;

/// How much dearer than an honest client.
const MOST_TIMES: f64 = 3.0;

/// Full records of one connection: so many that what grows with their square would show.
const FULL_RECORDS: usize = 500;
/// Records of one byte.
const SHORT_RECORDS: usize = 20_000;

#[test]
fn what_one_client_sends_costs_little_more_than_what_an_honest_one_sends() {
    let Some(valgrind) = require("valgrind") else { return };
    let idle = instructions(&valgrind, "nothing");
    let cost = |kind| instructions(&valgrind, kind) - idle;
    let (full, short) = (cost("data"), cost("data of one byte"));
    for (kind, honest) in [
        ("fragments, padded", full),
        ("fragments in the handshake, padded", full),
        ("fragments", short),
        ("a hello in records of one byte", short),
    ] {
        let cost = cost(kind);
        let told = format!("{kind}: {cost} instructions, honest: {honest}");
        println!("{told}");
        assert!(cost <= MOST_TIMES * honest, "{told}");
    }
}

/// Instructions of the whole program for one client.
fn instructions(valgrind: &Path, kind: &str) -> f64 {
    let (stage, origin, folder) =
        (Stage::new(), OriginServer::setup(Behaviour::Silent).start(), Folder::new());
    let out = folder.join("callgrind.out");
    let tool = format!("--callgrind-out-file={}", out.display());
    let under = [valgrind.to_str().expect("its path is text"), "--quiet", "--tool=callgrind", &tool];
    let setup = stage.courser().backend(origin.backend()).args(["--handshake-timeout", "60s"]);
    let mut courser = setup.under(&under).start();
    if kind != "nothing" {
        let client = stage.client(&courser, Tls13);
        send(&client, kind);
        let _ = courser.connections(1);
    }
    courser.stop();
    let counted = std::fs::read_to_string(out).expect("valgrind has written its counts");
    let total = counted.lines().find_map(|line| line.strip_prefix("totals: ")).expect("it ends with them");
    total.trim().parse().expect("a number")
}

/// Sends it, or as much of it as is taken, and closes.
fn send(client: &Client, kind: &str) {
    let connected = |client| Hostile::connect(client).unwrap();
    let (mut client, message, length, padding, count) = match kind {
        "data" => (connected(client), None, MAX_PLAINTEXT, 0, FULL_RECORDS),
        "data of one byte" => (connected(client), None, 1, 0, SHORT_RECORDS),
        "fragments, padded" => (connected(client), Some(24), 1, FULL, FULL_RECORDS),
        "fragments in the handshake, padded" => (begun(client), Some(11), 1, FULL, FULL_RECORDS),
        "fragments" => (connected(client), Some(24), 1, 0, SHORT_RECORDS),
        "a hello in records of one byte" => {
            (Hostile::unkeyed(Hostile::socket(client).unwrap()), Some(1), 1, 0, SHORT_RECORDS)
        }
        other => panic!("no such input: {other}"),
    };
    let mut bytes = message.map(endless);
    for _ in 0..count {
        let sent = match bytes.as_mut().and_then(Iterator::next) {
            Some(byte) => client.send_padded(HANDSHAKE, &[byte], padding),
            None => client.send(APPLICATION_DATA, &vec![7; length]),
        };
        if sent.is_err() {
            return;
        }
    }
    if message.is_none() {
        client.send_close_notify().unwrap();
        assert!(client.receive_all().unwrap().data.is_empty());
    }
}
