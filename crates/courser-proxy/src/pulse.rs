//! Whether a worker turns, and how long it was busy. Written by the worker's thread alone; others read it when they are asked.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use courser_telemetry::time::micros;

/// The pulse of one worker, on a cache line of its own. A worker that has not begun rests.
#[derive(Debug)]
#[repr(align(128))]
pub struct Pulse {
    /// Waits for events.
    is_resting: AtomicBool,
    /// Microseconds since the start of the process.
    turned: AtomicU64,
    /// Microseconds of work since the start, up to `turned`.
    busy: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self { is_resting: AtomicBool::new(true), turned: AtomicU64::new(0), busy: AtomicU64::new(0) }
    }
}

impl Pulse {
    /// Time that the worker has not waited for events, since the start.
    pub fn busy(&self) -> Duration {
        Duration::from_micros(self.busy.load(Ordering::Relaxed))
    }

    /// Whether it has been at one thing for longer than `limit`: its connections wait meanwhile. `now`: since the start of the
    /// process, as everywhere here.
    pub fn is_stuck(&self, now: Duration, limit: Duration) -> bool {
        let is_resting = self.is_resting.load(Ordering::Acquire);
        let turned = Duration::from_micros(self.turned.load(Ordering::Relaxed));
        !is_resting && now.saturating_sub(turned) > limit
    }

    /// There is nothing to do.
    pub(crate) fn rest(&self, now: Duration) {
        self.turn(now);
        self.is_resting.store(true, Ordering::Release);
    }

    /// There is something to do.
    pub(crate) fn wake(&self, now: Duration) {
        self.turned.store(micros(now), Ordering::Relaxed);
        self.is_resting.store(false, Ordering::Release);
    }

    /// It is still at work, and has come round: a worker that never rests says so here.
    pub(crate) fn turn(&self, now: Duration) {
        let (now, turned) = (micros(now), self.turned.load(Ordering::Relaxed));
        let busy = self.busy.load(Ordering::Relaxed) + now.saturating_sub(turned);
        // No `fetch_add`, which would lock the bus: nothing else writes.
        self.busy.store(busy, Ordering::Relaxed);
        self.turned.store(now, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_not_work_and_only_work_gets_stuck() {
        let (pulse, second) = (Pulse::default(), Duration::from_secs(1));
        assert!(!pulse.is_stuck(100 * second, Duration::ZERO) && pulse.busy().is_zero());
        pulse.wake(100 * second);
        assert!(pulse.is_stuck(112 * second, 10 * second) && !pulse.is_stuck(109 * second, 10 * second));
        pulse.turn(112 * second);
        assert!(pulse.busy() == 12 * second && !pulse.is_stuck(113 * second, 10 * second));
        pulse.rest(113 * second);
        assert!(!pulse.is_stuck(900 * second, Duration::ZERO));
        pulse.wake(900 * second);
        assert_eq!(pulse.busy(), 13 * second);
    }
}
