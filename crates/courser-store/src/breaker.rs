//! When a store is not used, and when it is used again: a circuit breaker. Pure: the time is an argument.
//!
//! It opens at [`FAILURES`] failures that lie within [`WINDOW`] and are at least a tenth of what was asked meanwhile: so
//! a dead store costs a few waits, and one that is late once in a thousand times stays in use. It closes when a probe was
//! answered in time. Only the probe finds out: while it is open nothing else is asked, so there is no half-open
//! state in which clients would wait for the answer.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many failures open it. With the default timeout of 20 ms, five cost a worker 100 ms, spread over five clients.
const FAILURES: usize = 5;

/// Failures further apart than this are not evidence of an outage.
const WINDOW: Duration = Duration::from_secs(10);

/// [`FAILURES`] within so many outcomes: a tenth of them. Below that a question costs a tenth of the timeout on average.
const OUTCOMES: u64 = 50;

/// A circuit breaker, of one worker.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Outcomes since the start.
    outcomes: u64,
    /// The last failures, at most [`FAILURES`]: when, and the number of the outcome.
    failures: VecDeque<(Instant, u64)>,
    opened: Option<Opened>,
}

#[derive(Clone, Copy, Debug)]
struct Opened {
    at: Instant,
    /// Until when the time without the store has been accounted for.
    counted_until: Instant,
}

impl Breaker {
    /// Whether the store may be asked.
    pub(crate) fn is_closed(&self) -> bool {
        self.opened.is_none()
    }

    /// An answer came in time, whatever it was. A late answer to what was asked before it opened does not close it.
    pub(crate) fn succeeded(&mut self) {
        self.outcomes += 1;
    }

    /// No answer came in time, or the connection was lost or not to be had. True when it opened by this.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        self.outcomes += 1;
        self.failures.truncate(FAILURES - 1);
        self.failures.push_front((now, self.outcomes));
        let opens = self.is_closed() && self.are_many(now);
        if opens {
            self.opened = Some(Opened { at: now, counted_until: now });
        }
        opens
    }

    /// A probe was answered in time: it closes, and forgets what was. How long it was open, if it was.
    pub(crate) fn close(&mut self, now: Instant) -> Option<Duration> {
        let opened = self.opened.take()?;
        self.failures.clear();
        Some(now.saturating_duration_since(opened.at))
    }

    /// How long it has been open since this was last asked; zero while it is closed.
    pub(crate) fn take_open_time(&mut self, now: Instant) -> Duration {
        let since =
            self.opened.as_mut().map_or(now, |opened| std::mem::replace(&mut opened.counted_until, now));
        now.saturating_duration_since(since)
    }

    fn are_many(&self, now: Instant) -> bool {
        let oldest = self.failures.get(FAILURES - 1);
        oldest.is_some_and(|&(at, outcome)| {
            now.saturating_duration_since(at) <= WINDOW && self.outcomes - outcome < OUTCOMES
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    #[test]
    fn five_failures_open_it_and_a_probe_closes_it() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        let opened: Vec<_> = (0..6).map(|n| breaker.failed(after(start, 20 * n))).collect();
        assert_eq!(opened, [false, false, false, false, true, false]);
        assert!(!breaker.is_closed());
        assert_eq!(breaker.close(after(start, 1080)), Some(Duration::from_secs(1)));
        assert!(breaker.is_closed());
        assert!(!breaker.failed(after(start, 1090)), "what was before the probe is forgotten");
    }

    #[test]
    fn a_late_answer_does_not_close_it() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert!((0..5).any(|_| breaker.failed(start)));
        breaker.succeeded();
        assert!(!breaker.is_closed());
    }

    #[test]
    fn failures_far_apart_do_not_open_it() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        for n in 0..1000 {
            assert!(!breaker.failed(after(start, 2_501 * n)), "failure {n}");
        }
    }

    #[test]
    fn one_failure_in_thirteen_does_not_open_it_and_one_in_ten_does() {
        let opens = |good: usize| {
            let (mut breaker, now) = (Breaker::default(), Instant::now());
            (0..100).any(|_| {
                (0..good).for_each(|_| breaker.succeeded());
                breaker.failed(now)
            })
        };
        assert!(!opens(12));
        assert!(opens(9));
    }

    #[test]
    fn the_time_without_the_store_is_told_once() {
        let (mut breaker, start) = (Breaker::default(), Instant::now());
        assert_eq!(breaker.take_open_time(start), Duration::ZERO);
        assert!((0..5).any(|_| breaker.failed(start)));
        assert_eq!(breaker.take_open_time(after(start, 300)), Duration::from_millis(300));
        assert_eq!(breaker.take_open_time(after(start, 400)), Duration::from_millis(100));
    }

    #[test]
    fn what_was_not_open_was_not_closed() {
        assert_eq!(Breaker::default().close(Instant::now()), None);
    }

    proptest! {
        /// The promise to clients: between two probes, at most five failures among any 50 questions of ten seconds.
        #[test]
        fn it_is_open_exactly_when_the_last_five_failures_are_dense(
            steps in prop::collection::vec((0_u64..3_000, any::<bool>(), prop::bool::weighted(0.02)), 0..300),
        ) {
            let (mut breaker, start, mut ms) = (Breaker::default(), Instant::now(), 0);
            let mut history: Vec<Option<u64>> = Vec::new();
            for (pause, fails, probe) in steps {
                ms += pause;
                if probe {
                    prop_assert_eq!(breaker.close(after(start, ms)).is_some(), is_dense(&history));
                    if is_dense(&history) {
                        history.clear();
                    }
                } else if breaker.is_closed() {
                    history.push(fails.then_some(ms));
                    let opened = if fails { breaker.failed(after(start, ms)) } else { breaker.succeeded(); false };
                    prop_assert_eq!(opened, is_dense(&history));
                    prop_assert_eq!(breaker.is_closed(), !opened);
                }
            }
        }
    }

    /// The rule, stated otherwise: among the last 50 outcomes, those failures within ten seconds of the last one are five.
    fn is_dense(history: &[Option<u64>]) -> bool {
        let recent = &history[history.len().saturating_sub(50)..];
        let Some(&Some(last)) = recent.last() else { return false };
        recent.iter().flatten().filter(|&&at| last - at <= 10_000).count() >= 5
    }
}
