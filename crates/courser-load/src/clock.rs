//! The engine's clock: CLOCK_MONOTONIC, which timers use too.

use std::time::Duration;

use nix::time::ClockId;

/// Time since the machine was started, without its sleep.
pub(crate) fn now() -> Duration {
    ClockId::CLOCK_MONOTONIC.now().map(Duration::from).unwrap_or_default() // every Linux has it
}

/// Processor time of the calling thread, user mode and kernel.
pub(crate) fn thread_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from).unwrap_or_default()
}
