//! `delay` and `system-check`: what surrounds a measurement.

use std::net::SocketAddr;
use std::process::Command;

use courser_testkit::{Fault, FaultyServer, Process};
use serde_json::Value;

use crate::support::{AT_ONCE, Judged, finished, url};

/// Microseconds of the round trip that is put in.
const RTT_US: f64 = 80_000.0;

/// A relay to a server, and where it listens.
fn relay(to: SocketAddr) -> (Process, SocketAddr) {
    let to = to.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    let process = Process::start(command.args(["delay", "--to", &to, "--rtt", "80ms"]));
    let line = process.wait_stdout("where it listens", |lines| lines.first().cloned());
    let address = line.strip_prefix("listening on ").unwrap().parse().unwrap();
    (process, address)
}

/// Two sessions of two connections each through the relay, one after the other.
fn through(liar: &FaultyServer, arguments: &[&str]) -> Judged {
    let (_relay, address) = relay(liar.address());
    let url = url(address);
    let load = ["load", &url, "-c", "2", "--reuse", "2", "--duration", "2s", "--quiet"];
    Judged::of(&finished(&[&load[..], &AT_ONCE, arguments].concat()))
}

/// The mean of these times of a run, in round trips.
fn mean(judged: &Judged, time: &str) -> f64 {
    let time = &judged.run()["totals"]["times"][time];
    let us = time["mean_us"].as_f64().unwrap_or_else(|| panic!("{time:#}"));
    us / RTT_US
}

#[test]
fn a_full_handshake_and_its_request_take_three_round_trips_in_tls_1_3() {
    let judged = through(&FaultyServer::start(Fault::None), &["--tls", "1.3"]);
    assert!(judged.total("/requests/succeeded") > 4, "{:#}", judged.run()["totals"]);
    let (handshake, answer) = (mean(&judged, "full_handshake"), mean(&judged, "full_last_byte"));
    assert!(handshake >= 2.0 && answer >= 3.0, "{handshake} and {answer}");
}

#[test]
fn resumption_saves_a_round_trip_in_tls_1_2() {
    let judged = through(&FaultyServer::start(Fault::None), &["--tls", "1.2"]);
    let (full, resumed) = (mean(&judged, "full_handshake"), mean(&judged, "resumed_handshake"));
    assert!(full >= 3.0 && resumed >= 2.0, "{full} and {resumed}");
    assert!(resumed < full, "{full} and {resumed}");
}

#[test]
fn system_check_has_every_published_setting_and_changes_nothing() {
    let read = || std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    let before = read();
    let run = finished(&["system-check", "--json"]);
    assert!(run.status.success(), "{run:?}");
    let document: Value = serde_json::from_str(&run.stdout).unwrap();
    let settings = document["settings"].as_array().unwrap();
    let setting = settings.iter().find(|setting| setting["name"] == "net.core.somaxconn").unwrap();
    assert_eq!(setting["here"].as_str().unwrap_or_default(), before.trim());
    assert_eq!(setting["published"], "131072 or more");
    assert!(setting["command"].as_str().unwrap().contains("sysctl -w"));
    assert_eq!(read(), before);
}

/// Its end comes a round trip after the client's.
#[test]
fn a_server_that_closes_second_is_not_said_to_linger() {
    let judged = through(&FaultyServer::start(Fault::None), &["--keepalive"]);
    assert!(judged.total("/requests/succeeded") > 4, "{:#}", judged.run()["totals"]);
    assert!(!judged.has("lingering"), "{:?}", judged.ids());
}

/// The first waits for the client's close_notify, the second closes within a round trip of its answer: neither can be told
/// from one that closes at once over a network.
#[test]
fn a_server_whose_close_is_within_a_round_trip_is_not_said_to_linger() {
    for fault in [Fault::AwaitsClose, Fault::ClosesLate] {
        let server = FaultyServer::start(fault);
        // On a busy machine any server may be late once.
        assert!((0..3).any(|_| !through(&server, &[]).has("lingering")), "{fault:?}");
        assert!(server.counts().faults > 4, "{fault:?}: {:?}", server.counts());
    }
    assert!(through(&FaultyServer::start(Fault::StaysOpen), &[]).has("lingering"));
}
