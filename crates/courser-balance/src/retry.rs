//! How many further attempts a pool's connections may make: without a bound, servers that fail under load get more of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::health::millis;

/// Seconds that one count covers.
const SPAN: u64 = 10;

/// Further attempts per hundred connections of the span.
const PERCENT: u64 = 20;

/// Further attempts per second whatever the connections: a pool with a connection now and then must be able to pass over
/// a server that is dead.
const PER_SECOND: u64 = 3;

/// Counts of the current span, all in one word so that a span begins at once for all workers: its number, connections,
/// and further attempts.
#[derive(Debug, Default)]
pub struct RetryBudget(AtomicU64);

#[derive(Clone, Copy)]
struct Counts {
    /// Number of the span, modulo 2^16.
    span: u64,
    connections: u64,
    retries: u64,
}

const SPAN_BITS: u32 = 16;
const COUNT_BITS: u32 = 24;
const MOST: u64 = (1 << COUNT_BITS) - 1;

impl RetryBudget {
    /// Counts a connection's first attempt.
    pub fn deposit(&self, now: Duration) {
        self.update(now, |counts| Some(Counts { connections: (counts.connections + 1).min(MOST), ..counts }));
    }

    /// Whether there may be one more attempt, which is counted.
    pub fn withdraw(&self, now: Duration) -> bool {
        self.update(now, |counts| {
            let most = counts.connections * PERCENT / 100 + PER_SECOND * SPAN;
            (counts.retries < most.min(MOST)).then_some(Counts { retries: counts.retries + 1, ..counts })
        })
    }

    fn update(&self, now: Duration, change: impl Fn(Counts) -> Option<Counts>) -> bool {
        let span = millis(now) / (SPAN * 1000) % (1 << SPAN_BITS);
        let next = |word| {
            let counts = Counts::unpack(word);
            let counts =
                if counts.span == span { counts } else { Counts { span, connections: 0, retries: 0 } };
            change(counts).map(Counts::pack)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

impl Counts {
    fn unpack(word: u64) -> Self {
        Self { span: word >> (2 * COUNT_BITS), connections: word >> COUNT_BITS & MOST, retries: word & MOST }
    }

    fn pack(self) -> u64 {
        self.span << (2 * COUNT_BITS) | self.connections << COUNT_BITS | self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_at_rest_has_three_a_second() {
        let budget = RetryBudget::default();
        let allowed = |now| (0..1000).filter(|_| budget.withdraw(Duration::from_secs(now))).count();
        assert_eq!([allowed(5), allowed(9), allowed(10)], [30, 0, 30]);
    }

    #[test]
    fn a_busy_pool_has_a_fifth_more() {
        let (budget, now) = (RetryBudget::default(), Duration::from_secs(7));
        for _ in 0..10_000 {
            budget.deposit(now);
        }
        assert_eq!((0..10_000).filter(|_| budget.withdraw(now)).count(), 2030);
    }
}
