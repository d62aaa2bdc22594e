//! The engine's clock: CLOCK_MONOTONIC, which timers use too.

use std::time::Duration;

/// Time since the machine was started, without its sleep.
pub(crate) fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(time).unwrap_or_default() // it never runs before zero
}

/// Processor time that this thread has taken (CLOCK_THREAD_CPUTIME_ID), in user mode and the kernel. Reading it is a
/// system call: some hundred nanoseconds.
pub(crate) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default() // it never runs before zero
}
