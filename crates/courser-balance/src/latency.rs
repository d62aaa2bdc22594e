//! How long a server takes to answer, with more regard for bad news than for good.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::health::millis;

/// Time in which an observation loses two thirds of its weight: long enough to remember a slow server between
/// connections that are rare, short enough to try it again.
const DECAY: Duration = Duration::from_secs(10);

/// Peak-sensitive, exponentially weighted mean (as in Finagle's `p2cPeakEwma`): a slower observation replaces the mean at
/// once, a faster one lowers it by its age.
#[derive(Debug, Default)]
pub(crate) struct Latency(AtomicU64);

impl Latency {
    /// In microseconds; 0 where nothing was observed, or so long ago that it says nothing.
    pub(crate) fn micros(&self, now: Duration) -> f64 {
        let (mean, observed) = unpack(self.0.load(Ordering::Relaxed));
        f64::from(mean) * remaining(observed, now)
    }

    /// Of two observations at the same moment one may be lost, which a mean does not notice.
    pub(crate) fn observe(&self, taken: Duration, now: Duration) {
        let taken = u32::try_from(taken.as_micros()).unwrap_or(u32::MAX);
        let (mean, observed) = unpack(self.0.load(Ordering::Relaxed));
        let kept = remaining(observed, now);
        let new = if taken >= mean {
            taken
        } else {
            whole(f64::from(mean) * kept + f64::from(taken) * (1.0 - kept))
        };
        self.0.store(pack(new, now), Ordering::Relaxed);
    }
}

/// The part of an observation's weight that is left.
fn remaining(observed_ms: u32, now: Duration) -> f64 {
    let age = low(now).wrapping_sub(observed_ms);
    // Half the range of 49 days: an observation from the future is one of another worker, a moment ago.
    let age = if age > u32::MAX / 2 { 0 } else { age };
    (-f64::from(age) / DECAY.as_secs_f64() / 1000.0).exp()
}

fn pack(mean: u32, now: Duration) -> u64 {
    u64::from(mean) << 32 | u64::from(low(now))
}

#[expect(clippy::cast_possible_truncation, reason = "the two halves of the word")]
fn unpack(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[expect(clippy::cast_possible_truncation, reason = "wraps after 49 days, as differences do")]
fn low(now: Duration) -> u32 {
    millis(now) as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two values of 32 bits")]
fn whole(micros: f64) -> u32 {
    micros as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn a_slow_answer_counts_at_once_and_fast_ones_bring_it_down_slowly() {
        let latency = Latency::default();
        assert!(latency.micros(at(0)) < f64::EPSILON);
        latency.observe(Duration::from_micros(100), at(0));
        latency.observe(Duration::from_micros(900), at(0));
        assert!((latency.micros(at(0)) - 900.0).abs() < 1.0);
        latency.observe(Duration::from_micros(100), at(1));
        let after = latency.micros(at(1));
        assert!((800.0..850.0).contains(&after), "{after}");
    }

    #[test]
    fn what_was_observed_long_ago_says_nothing() {
        let latency = Latency::default();
        latency.observe(Duration::from_millis(5), at(0));
        assert!(latency.micros(at(10)) > 1800.0);
        assert!(latency.micros(at(100)) < 1.0);
    }
}
