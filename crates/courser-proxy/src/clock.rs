//! The time that workers count in. It depends on nothing here, so that everything may ask it.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The time since the process first asked: what pools of servers count in.
pub fn since_start() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}
