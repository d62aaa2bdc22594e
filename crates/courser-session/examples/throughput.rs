//! How long each call takes: `cargo run --release --example throughput [threads]`.
//!
//! A rough instrument for whoever changes this crate: one run, no intervals. Compare runs on the same quiet machine.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_session::{
    Cache, DEFAULT_SHARDS, EpochLength, FleetKeys, Lifespan, PolicyHash, Provenance, SessionId, State,
    Ticketer, UnixSeconds,
};

const CALLS: u64 = 1_000_000;
const SESSIONS: u64 = 100_000;
const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
/// About what a TLS 1.2 session without client certificate takes.
const STATE: [u8; 150] = [7; 150];

fn main() {
    let threads = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(1);
    println!("{threads} thread(s), ns per call on each:");
    cache_calls(threads);
    ticket_calls(threads);
}

fn cache_calls(threads: u64) {
    let (cache, policy, lifespan) = (Cache::new(64 << 20, DEFAULT_SHARDS), policy(), lifespan());
    let put = |call| cache.put(&id(call), policy, State::from(&STATE[..]), lifespan, Provenance::Local, NOW);
    time("put, new", threads, |call| put(call % SESSIONS));
    time("get, hit", threads, |call| cache.get(&id(call % SESSIONS), &policy, NOW));
    time("get, miss", threads, |call| cache.get(&id(call + CALLS * 100), &policy, NOW));
    time("put, full", threads, |call| put(call + SESSIONS));
}

fn ticket_calls(threads: u64) {
    let ticketer = Ticketer::new(Arc::new(keys()));
    let (policy, lifespan) = (policy(), lifespan());
    let nonce = |call: u64| std::array::from_fn(|at| call.to_le_bytes()[at % 8]);
    let seal = |call| ticketer.seal(&policy, lifespan, &STATE, nonce(call), NOW).expect("the session lives");
    time("seal", threads, seal);
    let ticket = seal(0);
    time("open", threads, |_| ticketer.open(&policy, &ticket, NOW));
    time_roll();
    let mut forged = ticket.clone();
    forged[40] ^= 1;
    time("open, forged", threads, |_| ticketer.open(&policy, &forged, NOW));
}

fn time<T>(what: &str, threads: u64, call: impl Fn(u64) -> T + Sync) {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let call = &call;
            scope.spawn(move || (0..CALLS).for_each(|number| drop(black_box(call(number + thread * CALLS)))));
        }
    });
    println!("{what:>14} {:>8.0}", start.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
}

/// What the first call in an epoch pays for.
fn time_roll() {
    let keys = keys();
    let start = Instant::now();
    for epoch in 1..=1000 {
        black_box(keys.advance(NOW.plus(epoch * Duration::from_secs(8 * 3600))));
    }
    println!("{:>14} {:>8.0}", "roll of keys", start.elapsed().as_secs_f64() * 1e9 / 1e3);
}

fn keys() -> FleetKeys {
    FleetKeys::alone(EpochLength::DEFAULT, Duration::from_secs(7200), NOW).expect("the lifetime is in range")
}

fn id(number: u64) -> SessionId {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    SessionId::try_from(&id[..]).expect("32 bytes are an ID")
}

fn policy() -> PolicyHash {
    PolicyHash::builder("listener", "host").finish()
}

fn lifespan() -> Lifespan {
    Lifespan::new(NOW, Duration::from_secs(7200))
}
