//! Processor time per received byte, in instructions: valgrind counts those of one function, in this program run again.

use std::io;
use std::path::Path;
use std::process::Command;

use courser_testkit::client::Version::{Tls12, Tls13};
use courser_testkit::client::hostile::{APPLICATION_DATA, HANDSHAKE, MAX_PLAINTEXT};
use courser_testkit::{Folder, require};

use super::{CERTIFICATE, CLIENT_KEY_EXCHANGE, FULL, KEY_UPDATE};
use crate::hostile::{MemoryServer, Pair, connected, halfway};

/// Names the input whose cost is counted.
const KIND: &str = "COURSER_ABUSE_KIND";

/// How much dearer a byte of full records, and a record of few bytes, may be than those of an honest client.
const MOST_TIMES: f64 = 3.0;

/// Wire bytes of an input, about: so many that what grows with their square would show, as far as they are taken.
const LENGTH: usize = 1 << 20;

/// An input, and the honest one that it is held to.
const KINDS: [(&str, &str); 5] = [
    ("fragments, padded", "data"),
    ("fragments in the handshake, padded", "data"),
    ("fragments", "data of one byte"),
    ("fragments in the handshake", "data of one byte"),
    ("fragments in the handshake of TLS 1.2", "data of one byte"),
];

#[test]
fn a_byte_of_no_message_costs_little_more_than_an_honest_one() {
    let Some(valgrind) = require("valgrind") else { return };
    let honest = ["data", "data of one byte"].map(|kind| (kind, count(&valgrind, kind)));
    for (kind, like) in KINDS {
        let (_, honest) = honest.iter().find(|(name, _)| *name == like).expect("both are counted");
        let cost = count(&valgrind, kind);
        // A record of few bytes costs what a record costs, to every receiver: there records are compared.
        let (unit, honest, cost) = match like {
            "data" => ("byte", honest.of_byte(), cost.of_byte()),
            _ => ("record", honest.of_record(), cost.of_record()),
        };
        println!("{kind}: {cost:.1} instructions per {unit}, {like}: {honest:.1}");
        assert!(
            cost <= MOST_TIMES * honest,
            "{kind}: {cost:.1} instructions per {unit}, {like}: {honest:.1}"
        );
    }
}

/// What was counted of one input.
struct Count {
    instructions: f64,
    bytes: f64,
    /// Bytes of one record.
    record: f64,
}

impl Count {
    fn of_byte(&self) -> f64 {
        self.instructions / self.bytes
    }

    fn of_record(&self) -> f64 {
        self.of_byte() * self.record
    }
}

/// Run by the test above, under valgrind.
#[test]
#[ignore = "the test beside it runs it under valgrind"]
fn receive_one_kind() {
    let Ok(kind) = std::env::var(KIND) else { return };
    let (mut pair, records) = input(&kind);
    let before = pair.stream().taken;
    // It ends where the server refuses.
    let _ = receive_all(pair.stream(), &records);
    println!("taken {}", pair.stream().taken - before);
    println!("record {}", records[0].len());
}

/// A connection and what it is sent.
fn input(kind: &str) -> (Pair, Vec<Vec<u8>>) {
    let endless = |message: [u8; 4]| message.into_iter().chain(std::iter::repeat(0));
    let (mut pair, content, message, padding) = match kind {
        "data" => (connected(Tls13), vec![7; MAX_PLAINTEXT], None, 0),
        "data of one byte" => (connected(Tls13), vec![7], None, 0),
        "fragments, padded" => (connected(Tls13), vec![0], Some(KEY_UPDATE), FULL),
        "fragments" => (connected(Tls13), vec![0], Some(KEY_UPDATE), 0),
        "fragments in the handshake, padded" => (halfway(Tls13), vec![0], Some(CERTIFICATE), FULL),
        "fragments in the handshake" => (halfway(Tls13), vec![0], Some(CERTIFICATE), 0),
        "fragments in the handshake of TLS 1.2" => (halfway(Tls12), vec![0], Some(CLIENT_KEY_EXCHANGE), 0),
        other => panic!("no such input: {other}"),
    };
    let mut bytes = message.map(endless);
    let (mut records, mut length) = (Vec::new(), 0);
    while length < LENGTH {
        let record = match bytes.as_mut().and_then(Iterator::next) {
            Some(byte) => pair.record(HANDSHAKE, &[byte], padding),
            None => pair.record(APPLICATION_DATA, &content, padding),
        };
        length += record.len();
        records.push(record);
    }
    (pair, records)
}

/// What is counted: one call for each read of a socket.
#[inline(never)]
fn receive_all(server: &mut MemoryServer, records: &[Vec<u8>]) -> io::Result<()> {
    use std::io::Write;
    // As a terminator's reads: as much as a buffer holds.
    for read in records.concat().chunks(MAX_PLAINTEXT) {
        server.write_all(read)?;
        server.plaintext.clear();
    }
    Ok(())
}

/// Receives one input under valgrind.
fn count(valgrind: &Path, kind: &str) -> Count {
    let folder = Folder::new();
    let out = folder.join("callgrind.out");
    let mut command = Command::new(valgrind);
    command.args(["--tool=callgrind", "--toggle-collect=*receive_all*"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(std::env::current_exe().expect("the program has a path")).env(KIND, kind);
    command.args(["abuse::cost::receive_one_kind", "--exact", "--ignored", "--nocapture"]);
    let run = command.output().expect("valgrind starts");
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    let number = |text: &str, name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.split_once(name))?.1;
        line.split_whitespace().next()?.parse().ok()
    };
    let counted = std::fs::read_to_string(out).expect("valgrind has written its counts");
    let instructions = number(&counted, "totals:").or_else(|| number(&counted, "summary:"));
    Count {
        instructions: instructions.expect("valgrind has counted"),
        bytes: number(&said, "taken ").expect("the test says what was taken"),
        record: number(&said, "record ").expect("the test says how long a record is"),
    }
}
