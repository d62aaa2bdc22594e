//! What courser counts of itself, held to what the load engine counts: by kind, version, suite, group and scheme, exactly.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Courser, Folder, KeyType, OriginServer, Process, TestCa, skip};
use serde_json::Value;

/// Handshakes by version, suite, group and scheme; those that were resumed have no scheme.
type Counts = BTreeMap<[String; 4], u64>;

/// The client that is sent first, to see that there is somebody, makes a full handshake that the record leaves out.
const PROBE: u64 = 1;

#[test]
fn counters_are_what_the_load_engine_has_counted() {
    let program = Path::new(env!("CARGO_BIN_EXE_courser-bench")).with_file_name("courser");
    if !program.is_file() {
        skip("courser is not built");
        return;
    }
    let (folder, origin) = (Folder::new(), OriginServer::http());
    let setup =
        [KeyType::EcdsaP256, KeyType::Rsa2048].into_iter().fold(Courser::setup(program), |setup, key| {
            setup.cert(TestCa::new().localhost(key, &folder, &format!("{key:?}")))
        });
    let courser = setup
        .backend(origin.backend())
        .args(["--admin", "127.0.0.1:0", "--workers", "2", "--log", "off"])
        .start();
    let line = courser.wait_stderr_line("for operators and monitoring: http://");
    let admin = line.split("http://").nth(1).unwrap();
    let url = format!("https://{}/", courser.address());
    let mut expected = Counts::new();
    for flags in [
        &["--reuse", "4"][..],
        &["--reuse", "3", "--tls", "1.2", "--resume", "id", "--groups", "P-256"],
        &["--reuse", "2", "--tls", "1.2", "--schemes", "rsa_pss_rsae_sha256"],
        &[
            "--reuse",
            "1",
            "--tls",
            "1.3",
            "--suites",
            "TLS_CHACHA20_POLY1305_SHA256",
            "--groups",
            "X25519MLKEM768",
        ],
    ] {
        for (labels, count) in recorded(&url, flags) {
            let probe = if labels[3] == "none" { 0 } else { PROBE };
            *expected.entry(labels).or_default() += count + probe;
        }
    }
    assert!(expected.values().sum::<u64>() > 1000, "{expected:?}");
    assert_eq!(counted(admin), expected);
}

fn recorded(url: &str, flags: &[&str]) -> Counts {
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    let phases = ["--warm-up", "0", "--ramp-up", "0", "--duration", "2s", "--json", "--quiet"];
    let run = Process::start(command.args(["load", url, "-c", "4"]).args(flags).args(phases)).finish();
    assert!(matches!(run.status.code(), Some(0 | 3)), "{run:?}");
    let record: Value = serde_json::from_str(&run.stdout).unwrap();
    let run = &record["runs"][0];
    // The totals leave out what ends behind the steady window, the seconds do not. Of one load all that are full agree on the
    // same, as do all that are resumed.
    let seconds = run["seconds"].as_array().unwrap();
    let sum = |field: &str| seconds.iter().map(|second| second[field].as_u64().unwrap()).sum();
    let row = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap_or("none").to_owned();
        let count = sum(if row["handshake"] == "full" { "full" } else { "resumed" });
        (["version", "suite", "group", "scheme"].map(text), count)
    };
    run["totals"]["negotiated"].as_array().unwrap().iter().map(row).collect()
}

fn counted(admin: &str) -> Counts {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("courser_handshakes_negotiated_total{"));
    lines
        .map(|line| {
            let (labels, count) = line.rsplit_once("} ").unwrap();
            let value = |name: &str| {
                let rest = labels.split_once(&format!("{name}=\"")).unwrap().1;
                rest.split('"').next().unwrap().to_owned()
            };
            (["version", "suite", "group", "scheme"].map(value), count.parse().unwrap())
        })
        .collect()
}
