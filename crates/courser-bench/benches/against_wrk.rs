//! Requests a second by `courser-bench load -c N --keepalive` and by wrk, of one origin, in short blocks in turn:
//! A B B A, so that whatever drifts weighs on both alike. Prints the ratio of each pair and of all.
//!
//! ```text
//! cargo bench -p courser-bench --bench against_wrk [-- ROUNDS]
//! ```
//!
//! It needs wrk, and a machine that does nothing else. Nothing is judged: a figure for people.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::process::Command;

use courser_testkit::{Process, require, tools};
use serde_json::Value;

/// Connections that stay open.
const CONNECTIONS: &str = "64";

/// Length of a block.
const BLOCK: &str = "3s";

/// Blocks of each without an argument, in pairs.
const ROUNDS: usize = 6;

fn main() {
    // `cargo test --all-targets` runs it as well, without that.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let Some(wrk) = require("wrk") else { return };
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(ROUNDS);
    let cores = tools::cores().unwrap();
    let (client, server) = (cores[0].to_string(), cores[cores.len() - 1].to_string());
    let mut origin = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    let origin = Process::start(origin.args(["origin", "--listen", "127.0.0.1:0", "--cpus", &server]));
    let url = origin.wait_stdout("its address", |lines| {
        Some(format!("{}/?s=100", lines.first()?.strip_prefix("listening on ")?))
    });
    let theirs = || with_wrk(Command::new("taskset").args(["-c", &client]).arg(&wrk), &url);
    let ours = || with_ours(&client, &url);
    println!(
        "{CONNECTIONS} connections, blocks of {BLOCK}, client on core {client}, origin on core {server}"
    );
    // What is new is slow.
    theirs();
    ours();
    let mut logarithms = 0.0;
    for round in 0..rounds {
        let (ours, theirs) = if round % 2 == 0 {
            let first = ours();
            (first, theirs())
        } else {
            let first = theirs();
            (ours(), first)
        };
        println!("courser-bench {ours:>8.0}/s  wrk {theirs:>8.0}/s  ratio {:.3}", ours / theirs);
        logarithms += (ours / theirs).ln();
    }
    let ratio = (logarithms / rounds as f64).exp();
    println!("courser-bench to wrk: {ratio:.3}, geometric mean of {rounds} pairs");
}

/// What wrk says it did.
fn with_wrk(wrk: &mut Command, url: &str) -> f64 {
    let run = Process::start(wrk.args(["-t1", "-c", CONNECTIONS, "-d", BLOCK, url])).finish();
    let rate = run.stdout.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    rate.unwrap_or_else(|| panic!("wrk says no rate: {run:?}")).trim().parse().unwrap()
}

/// What we say that we did, whatever the verdict: the core of the client is busy, as it has to be.
fn with_ours(cpu: &str, url: &str) -> f64 {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    bench.args(["load", url, "-c", CONNECTIONS, "--keepalive", "--cpus", cpu, "--duration", BLOCK]);
    let run = Process::start(bench.args(["--warm-up", "0", "--ramp-up", "0", "--quiet", "--json"])).finish();
    let record: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("no record: {run:?}"));
    let totals = &record["runs"][0]["totals"];
    assert_eq!(totals["requests"]["failed"], 0, "{totals:#}");
    totals["requests"]["succeeded"].as_f64().unwrap() / (totals["window_us"].as_f64().unwrap() / 1e6)
}
