//! Compares what the cache counts with what the process takes: `cargo run --release --example memory [MiB] [state bytes]`.
//!
//! Linux only: reads the resident set from /proc. Counted is what glibc's allocator takes; another one differs.

use std::time::Duration;

use courser_session::{
    Cache, DEFAULT_SHARDS, Lifespan, PolicyHash, Provenance, SessionId, State, UnixSeconds,
};

fn main() {
    let mut arguments = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let (mib, state_len) = (arguments.next().unwrap_or(64), arguments.next().unwrap_or(150));
    measure(mib, state_len);
}

fn measure(mib: usize, state_len: usize) {
    let before = resident();
    let cache = Cache::new(mib << 20, DEFAULT_SHARDS);
    fill(&cache, state_len);
    let grown = resident().saturating_sub(before);
    let stats = cache.stats();
    println!("{} sessions with {state_len} bytes of state in {mib} MiB", stats.entries);
    println!("counted:  {} bytes each", stats.bytes / stats.entries);
    println!("resident: {} bytes each", grown / stats.entries);
}

/// Puts until the cache has turned over once.
fn fill(cache: &Cache, state_len: usize) {
    let policy = PolicyHash::builder("listener", "host").finish();
    let now = UnixSeconds(1_800_000_000);
    let lifespan = Lifespan::new(now, Duration::from_secs(7200));
    let capacity = cache.stats().capacity_bytes;
    for number in 0..2 * (capacity / (state_len + 160)) as u64 {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let id = SessionId::try_from(&id[..]).expect("32 bytes are an ID");
        cache.put(&id, policy, State::from(vec![7; state_len]), lifespan, Provenance::Local, now);
    }
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this example is for Linux");
    let pages = statm.split(' ').nth(1).and_then(|field| field.parse::<usize>().ok());
    pages.expect("statm's second field is a number of pages") * 4096
}
