//! Processor time per record, in instructions: valgrind counts those of one function, in this program run again. Full
//! records are held to full ones and short ones to short ones, so that a record stands for its bytes.

use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use courser_testkit::client::Version::{Tls12, Tls13};
use courser_testkit::client::hostile::{APPLICATION_DATA, HANDSHAKE, MAX_PLAINTEXT};
use courser_testkit::{Folder, require};

use super::{CERTIFICATE, CLIENT_KEY_EXCHANGE, FULL, KEY_UPDATE};
use crate::hostile::{MemoryServer, Pair, connected, halfway};

/// Names the input whose cost is counted.
const KIND: &str = "COURSER_ABUSE_KIND";

/// How much dearer a record may be than one of the same size that an honest client sends.
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
fn a_record_of_no_message_costs_little_more_than_an_honest_one() {
    let Some(valgrind) = require("valgrind") else { return };
    let honest = ["data", "data of one byte"].map(|kind| (kind, count(&valgrind, kind)));
    for (kind, like) in KINDS {
        let honest = honest.iter().find(|(name, _)| *name == like).expect("both are counted").1;
        let cost = count(&valgrind, kind);
        let message = format!("{kind}: {cost:.0} instructions per record, {like}: {honest:.0}");
        println!("{message}");
        assert!(cost <= MOST_TIMES * honest, "{message}");
    }
}

/// Run by the test above, under valgrind.
#[test]
#[ignore = "the test beside it runs it under valgrind"]
fn receive_one_kind() {
    let Ok(kind) = std::env::var(KIND) else { return };
    let (mut pair, records) = input(&kind);
    let (before, length) = (pair.stream().taken, records[0].len());
    // It ends where the server refuses.
    let _ = receive_all(pair.stream(), &records.concat());
    println!("taken {}", (pair.stream().taken - before).div_ceil(length));
}

/// A connection and what it is sent, records of one length.
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
fn receive_all(server: &mut MemoryServer, bytes: &[u8]) -> io::Result<()> {
    // As a terminator's reads: as much as a buffer holds.
    for read in bytes.chunks(MAX_PLAINTEXT) {
        server.write_all(read)?;
        server.plaintext.clear();
    }
    Ok(())
}

/// Instructions per record that was taken.
fn count(valgrind: &Path, kind: &str) -> f64 {
    let folder = Folder::new();
    let out = folder.join("callgrind.out");
    let mut command = Command::new(valgrind);
    command.args(["--tool=callgrind", "--toggle-collect=*receive_all*"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    command.arg(std::env::current_exe().expect("the program has a path")).env(KIND, kind);
    command.args(["abuse::cost::receive_one_kind", "--exact", "--ignored", "--nocapture"]);
    let run = command.output().expect("valgrind starts");
    let output = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{output}\n{}", String::from_utf8_lossy(&run.stderr));
    let number = |text: &str, name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.split_once(name))?.1;
        line.split_whitespace().next()?.parse().ok()
    };
    let counted = std::fs::read_to_string(out).expect("valgrind has written its counts");
    let instructions = number(&counted, "totals:").or_else(|| number(&counted, "summary:"));
    let taken = number(&output, "taken ").expect("the test says what was taken");
    instructions.expect("valgrind has counted") / taken
}
