//! What connecting to a pool of four takes while one of them is at fault, next to the same pool in health.
//!
//!     cargo bench -p courser --bench faults -- 3000
//!
//! Method. Four origins, each behind a link of Toxiproxy, which makes the faults; the one that swallows connections is a socket
//! whose queue is full. Eight clients at a time make one connection each with one request, until as many as asked for are done.
//! The time is `connect_us` of courser's log: from the end of the handshake to the connection with a server. Connections
//! that find the fault out, up to the third, are left out, and counted. Each fault has a healthy pool of its own beside it, just
//! before; the row `none` says how far two healthy ones are apart.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, FaultLink, FaultProxy, Folder, KeyType, OriginServer, Stuck, TestCa};
use serde_json::{Value, json};

/// Clients at a time.
const CLIENTS: usize = 8;

/// Changes of a flapping server in a run.
const FLAPS: usize = 20;

fn main() -> ExitCode {
    let count = env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(3000);
    let Some(proxy) = FaultProxy::start() else { return ExitCode::FAILURE };
    println!("one of four servers   failures  pages missed      p50 us      p99 us   p99 / health");
    for fault in [Fault::None, Fault::Refuses, Fault::Resets, Fault::Flaps, Fault::Slow, Fault::Swallows] {
        measure(&proxy, fault, count);
    }
    ExitCode::SUCCESS
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    Refuses,
    Resets,
    Flaps,
    /// Answers half a second late.
    Slow,
    /// Answers no SYN.
    Swallows,
}

fn measure(proxy: &FaultProxy, fault: Fault, count: usize) {
    let origins = [(); 4].map(|()| OriginServer::http());
    let links: Vec<_> = origins.iter().map(|origin| proxy.link(origin.backend())).collect();
    let mut servers: Vec<_> = links.iter().map(|link| link.address().to_owned()).collect();
    let healthy = run(&servers, count, || {}).times;
    let stuck = Stuck::new();
    match fault {
        Fault::Refuses => links[1].set_up(false),
        Fault::Resets => links[1].add("reset_peer", &json!({ "timeout": 0 })),
        Fault::Slow => links[1].add("latency", &json!({ "latency": 500 })),
        Fault::Swallows => servers[1] = stuck.address(),
        Fault::None | Fault::Flaps => {}
    }
    let run = run(&servers, count, || {
        if fault == Fault::Flaps {
            flap(&links[1]);
        }
    });
    let (health, p99) = (percentile(&healthy, 99), percentile(&run.times, 99));
    println!(
        "{:20}  {:8}  {:12}  {:10}  {p99:10}  {:13.2}",
        format!("{fault:?}").to_lowercase(),
        run.failures,
        run.missed,
        percentile(&run.times, 50),
        p99 as f64 / health as f64
    );
}

/// Ups and downs of a server.
fn flap(link: &FaultLink<'_>) {
    for change in 0..FLAPS {
        link.set_up(change % 2 == 1);
        thread::sleep(std::time::Duration::from_millis(100));
    }
    link.set_up(true);
}

struct Run {
    /// Microseconds of connecting, sorted, of the connections after the third failure.
    times: Vec<u64>,
    /// Attempts that failed, or connections that were cut.
    failures: u64,
    /// Clients without their page.
    missed: usize,
}

fn run(servers: &[String], count: usize, meanwhile: impl FnOnce()) -> Run {
    let (folder, ca) = (Folder::new(), TestCa::new());
    let certificate = ca.localhost(KeyType::EcdsaP256, &folder, "site");
    let config = format!(
        "workers = 1\nlog = 'json'\n[pool.farm]\nservers = {servers:?}\n[[listener]]\nlisten = '127.0.0.1:0'\n\
         cert = {certificate:?}\npool = 'farm'\nconnect_timeout = '1s'\n"
    );
    let courser =
        Courser::setup(env!("CARGO_BIN_EXE_courser")).config(&folder.write("courser.toml", config)).start();
    let client = Client::new(courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let (begun, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while begun.fetch_add(1, Ordering::Relaxed) < count {
                    if client.connect().and_then(|mut connection| connection.get(107, true)).is_err() {
                        missed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        meanwhile();
    });
    let (mut times, mut failures) = (Vec::new(), 0);
    for line in courser.connections_json(count) {
        if failures >= 3 || !servers_failed(&line) {
            times.extend(line["connect_us"].as_u64());
        }
        failures +=
            line["retries"].as_u64().unwrap_or_default() + u64::from(line["close_reason"] == "backend_reset");
    }
    times.sort_unstable();
    Run { times, failures, missed: missed.into_inner() }
}

/// Whether a connection is one of those that find a fault out.
fn servers_failed(line: &Value) -> bool {
    line["retries"] != 0 || line["close_reason"] == "backend_reset"
}

fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}
