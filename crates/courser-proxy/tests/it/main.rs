//! Hosts of a fleet on loopback: real datagrams, real connections.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod client;
mod fleet;
mod host;
mod returning;

use std::time::{Duration, Instant};

/// Longer than anything here takes; who waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `value` gives something.
fn wait_for<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "still waiting for {what}");
        std::thread::yield_now();
    }
}
