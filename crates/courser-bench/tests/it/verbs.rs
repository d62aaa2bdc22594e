//! Verbs that load nothing: `primitives`, `overheads`, `origin`, `inspect`, `report`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use courser_testkit::{Fault, FaultyServer, Finished, Folder, Process, Signal, free_port, require};
use serde_json::Value;

fn bench(arguments: &[&str]) -> Process {
    Process::start(Command::new(env!("CARGO_BIN_EXE_courser-bench")).args(arguments))
}

fn finished(arguments: &[&str]) -> Finished {
    bench(arguments).finish()
}

/// The JSON that a verb prints.
fn document(arguments: &[&str]) -> Value {
    let run = finished(arguments);
    assert!(run.status.success(), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn primitives_prints_every_figure() {
    let document = document(&["primitives", "--time", "1ms", "--json"]);
    let figures = document["figures"].as_array().unwrap();
    assert!(figures.len() > 80, "{}", figures.len());
    assert!(figures.iter().all(|figure| figure["per_second"].as_f64().unwrap() > 0.0), "{figures:#?}");
    assert!(document["machine"]["crypto"]["aws-lc-rs"].as_str().unwrap().starts_with("AWS-LC "));
}

#[test]
fn primitives_prints_a_table_under_the_librarys_version() {
    let run = finished(&["primitives", "--time", "1ms"]);
    assert!(run.status.success() && run.stdout.starts_with("AWS-LC "), "{run:?}");
    for name in
        ["RSA-4096", "ECDSA P-256", "X25519MLKEM768 server", "ChaCha20-Poly1305 open", "HKDF-SHA-256 extract"]
    {
        assert!(run.stdout.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {run:?}");
    }
    assert_eq!(run.stderr, "", "no progress where nobody watches");
}

#[test]
fn overheads_has_a_row_for_each_suite_key_and_size() {
    let arguments = ["overheads", "--bytes", "1,20k", "--number", "4", "--json", "--suites"];
    let document =
        document(&[&arguments[..], &["TLS_AES_128_GCM_SHA256,ECDHE-RSA-AES128-GCM-SHA256"]].concat());
    let rows = document["rows"].as_array().unwrap();
    let text = |row: &Value| format!("{} {} {}", row["suite"], row["key"], row["bytes"]);
    let rows: Vec<String> = rows.iter().map(text).collect();
    let expected = [
        r#""TLS_AES_128_GCM_SHA256" "P-256" 1"#,
        r#""TLS_AES_128_GCM_SHA256" "P-256" 20480"#,
        r#""TLS_AES_128_GCM_SHA256" "RSA-2048" 1"#,
        r#""TLS_AES_128_GCM_SHA256" "RSA-2048" 20480"#,
        r#""TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" "RSA-2048" 1"#,
        r#""TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" "RSA-2048" 20480"#,
    ];
    assert_eq!(rows, expected);
}

#[test]
fn overheads_names_what_it_cannot_measure() {
    let run = finished(&["overheads", "--suites", "AES128-SHA"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(run.stderr.starts_with("error: AES128-SHA cannot be measured in one process"), "{run:?}");
}

#[test]
fn origin_serves_until_it_is_told_to_stop() {
    let mut origin = bench(&["origin", "--listen", "127.0.0.1:0", "--threads", "2"]);
    let lines = origin.wait_stdout("its threads", |lines| (lines.len() > 1).then(|| lines.to_vec()));
    let address: SocketAddr = lines[0].strip_prefix("listening on http://").unwrap().parse().unwrap();
    assert_eq!(lines[1].split(' ').count(), 3, "{lines:?}");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /?s=3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    origin.signal(Signal::SIGTERM);
    assert!(origin.wait().success());
    let last = "accepted 1 connections, answered 1 requests, refused 0 connections";
    assert_eq!(origin.stdout().last().unwrap(), last);
}

/// A slow client's hello comes in pieces.
#[test]
fn a_hello_is_sent_over_the_time_that_was_asked_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let _bench = bench(&["handshake", &address, "-c", "1", "--duration", "100ms", "--hello-over", "350ms"]);
    let (mut socket, _) = listener.accept().unwrap();
    let mut header = [0; 5];
    socket.read_exact(&mut header).unwrap();
    let began = Instant::now();
    let length = u16::from_be_bytes([header[3], header[4]]);
    socket.read_exact(&mut vec![0; length.into()]).unwrap();
    assert!(began.elapsed() > Duration::from_millis(250), "{:?}", began.elapsed());
}

/// The kernel counts the segments that came with data (`ss`, of iproute2).
#[test]
fn a_hello_is_sent_in_as_many_segments_as_were_asked_for() {
    let Some(ss) = require("ss") else { return };
    for asked in ["1", "2"] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let to = address.to_string();
        let _bench = bench(&["handshake", &to, "-c", "1", "--duration", "100ms", "--hello-segments", asked]);
        let (mut socket, _) = listener.accept().unwrap();
        let mut header = [0; 5];
        socket.read_exact(&mut header).unwrap();
        let length = u16::from_be_bytes([header[3], header[4]]);
        socket.read_exact(&mut vec![0; length.into()]).unwrap();
        let mut ss = Command::new(&ss);
        let shown = Process::start(ss.args(["-tinH", &format!("sport = :{}", address.port())])).finish();
        assert!(shown.stdout.contains(&format!("data_segs_in:{asked} ")), "{shown:?}");
    }
}

/// Connections that are kept rest between their requests.
#[test]
fn a_kept_connection_rests_as_long_as_it_was_asked_to() {
    let origin = bench(&["origin", "--listen", "127.0.0.1:0", "--threads", "1"]);
    let lines = origin.wait_stdout("its address", |lines| (!lines.is_empty()).then(|| lines.to_vec()));
    let url = lines[0].strip_prefix("listening on ").unwrap().to_owned() + "/";
    let times = ["--warm-up", "0", "--ramp-up", "0", "--duration", "1s", "--pause", "150ms"];
    // Not valid where the machine is busy, which changes no count.
    let run = finished(&[&["load", &url, "-c", "2", "--keepalive", "--json"][..], &times].concat());
    let run: Value = serde_json::from_str(&run.stdout).unwrap();
    let answered = run["runs"][0]["totals"]["requests"]["succeeded"].as_u64().unwrap();
    assert!((4..=14).contains(&answered), "{answered} requests of two connections in a second");
}

#[test]
fn origin_says_why_it_cannot_listen() {
    let run = finished(&["origin", "--listen", "8000"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let run = finished(&["origin", "--listen", &taken.local_addr().unwrap().to_string()]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(run.stderr.contains("cannot listen on 127.0.0.1:"), "{run:?}");
}

#[test]
fn inspect_tells_what_each_endpoint_negotiates() {
    let server = FaultyServer::start(Fault::None);
    let address = server.address().to_string();
    let run = finished(&["inspect", &address]);
    assert!(run.status.success() && run.stdout.starts_with(&format!("{address} (")), "{run:?}");
    assert!(
        run.stdout.lines().any(|line| line.contains("versions") && line.ends_with("TLSv1.3, TLSv1.2")),
        "{run:?}"
    );
    let document = document(&["inspect", "--json", &address]);
    let endpoint = &document["endpoints"][0];
    assert_eq!(
        (&endpoint["versions"][0]["version"], &endpoint["versions"][1]["version"]),
        (&"TLSv1.3".into(), &"TLSv1.2".into())
    );
    let suites = endpoint["versions"][0]["suites"].as_array().unwrap();
    assert!(suites.contains(&"TLS_AES_128_GCM_SHA256".into()), "{endpoint:#}");
    let resumptions = endpoint["resumptions"].as_array().unwrap();
    assert!(
        resumptions.iter().any(|tried| tried["by"] == "PSK" && tried["resumed"] == tried["attempts"]),
        "{endpoint:#}"
    );
    let hybrid = &endpoint["x25519mlkem768"];
    let bytes = |of: &str, what: &str| hybrid[of][what].as_u64().unwrap();
    let more = |what| bytes("bytes", what) - bytes("x25519_bytes", what);
    // ML-KEM-768's encapsulation key and ciphertext.
    assert_eq!((more("client_hello"), more("server_hello")), (1184, 1088), "{hybrid:#}");
    assert!(hybrid["time"]["median_s"].as_f64().unwrap() > 0.0, "{hybrid:#}");
    assert!(
        run.stdout.lines().any(|line| line.contains("X25519MLKEM768, time") && line.contains(" ms")),
        "{run:?}"
    );
}

#[test]
fn inspect_tells_an_endpoint_without_tls_and_one_that_is_not_there() {
    let plain = FaultyServer::start(Fault::PlainHttp);
    let run = finished(&["inspect", &plain.address().to_string()]);
    assert_eq!(run.status.code(), Some(5), "{run:?}");
    let (dead, live) = (format!("127.0.0.1:{}", free_port()), FaultyServer::start(Fault::None));
    let run = finished(&["inspect", &dead, &live.address().to_string()]);
    assert_eq!(run.status.code(), Some(4), "{run:?}");
    assert!(run.stdout.starts_with(&format!("{dead}: ")) && run.stdout.contains("TLSv1.3"), "{run:?}");
}

/// A record of a suite that the report's own tests keep.
const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../courser-report/tests/snapshots/primitives.json");

#[test]
fn report_draws_the_same_page_from_the_same_record() {
    let folder = Folder::new();
    let path = |name: &str| folder.join(name).display().to_string();
    let (first, second, csv, plots) = (path("a.html"), path("b.html"), path("a.csv"), path("plots"));
    let run = finished(&["report", SUITE, "-o", &first, "--csv", &csv, "--svg", &plots]);
    assert!(run.status.success() && run.stdout.is_empty() && run.stderr.contains(&first), "{run:?}");
    assert!(finished(&["report", SUITE, "--output", &second]).status.success());
    let page = std::fs::read_to_string(&first).unwrap();
    assert_eq!(page, std::fs::read_to_string(&second).unwrap());
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Primitives"), "{page}");
    assert!(std::fs::read_to_string(&csv).unwrap().contains("primitives,aes-128-gcm,openssl,"));
    let text = finished(&["report", SUITE]);
    assert!(text.stdout.contains("aes-128-gcm"), "{text:?}");
}

#[test]
fn report_writes_a_page_for_each_record_and_one_over_all() {
    let folder = Folder::new();
    let pages = folder.join("pages");
    let run = finished(&["report", SUITE, "--index", &pages.display().to_string()]);
    assert!(run.status.success() && run.stdout.is_empty() && run.stderr.contains("index.html"), "{run:?}");
    let index = std::fs::read_to_string(pages.join("index.html")).unwrap();
    assert!(index.contains("href=\"primitives.html\"") && pages.join("primitives.html").exists(), "{index}");
    let twice = finished(&["report", SUITE, SUITE, "--index", &pages.display().to_string()]);
    assert_eq!(twice.status.code(), Some(2), "{twice:?}");
}

#[test]
fn report_says_what_it_cannot_read_and_what_can() {
    let run_record = concat!(env!("CARGO_MANIFEST_DIR"), "/../courser-record/tests/fixtures/record-v1.json");
    let other = finished(&["report", run_record]);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(other.stderr.contains("`courser-bench show "), "{other:?}");
    let folder = Folder::new();
    let newer = folder.write(
        "newer.json",
        std::fs::read_to_string(SUITE).unwrap().replace("\"version\": 3", "\"version\": 4"),
    );
    let newer = finished(&["report", &newer.display().to_string()]);
    assert_eq!(newer.status.code(), Some(2), "{newer:?}");
    assert!(newer.stderr.contains("a record of version 4"), "{newer:?}");
}
