//! How long trials are: as long as they are of use, and short enough that the budget has several of them.

use std::time::Duration;

use super::Trial;

/// Seconds of a trial: warm-up, and what counts.
pub(super) type Seconds = (f64, f64);

const SHORT: Seconds = (1.0, 2.0);
const LONG: Seconds = (3.0, 9.0);
const CONFIRM: Seconds = (4.0, 16.0);

/// Longest that one trial counts for the samples that its rule needs, seconds.
const LONGEST: f64 = 60.0;

/// Trials that a budget has at least: five to climb by a factor of 81, three to halve what is left.
const LEAST_TRIALS: f64 = 8.0;

/// The shortest trial, warm-up included, seconds.
const LEAST: f64 = 1.0;

/// Lengths of trials that suit a budget.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) short: Seconds,
    pub(super) long: Seconds,
    pub(super) confirm: Seconds,
    /// The longest trial that steers, warm-up included.
    longest: f64,
    /// What each trial takes beyond its length, at most.
    overhead: f64,
}

impl Lengths {
    /// For a budget of which each trial takes `overhead` beyond its length.
    pub(super) fn new(budget: Duration, overhead: Duration) -> Self {
        let overhead = overhead.as_secs_f64();
        let longest = (budget.as_secs_f64() / LEAST_TRIALS - overhead).max(LEAST);
        let fitting = |(warm_up, measure): Seconds| {
            let scale = (longest / (warm_up + measure)).min(1.0);
            (warm_up * scale, measure * scale)
        };
        Self { short: fitting(SHORT), long: fitting(LONG), confirm: fitting(CONFIRM), longest, overhead }
    }

    /// The least budget that has enough trials of the least length.
    pub(super) fn least_budget(overhead: Duration) -> Duration {
        Duration::from_secs_f64(LEAST_TRIALS * LEAST) + overhead.mul_f64(LEAST_TRIALS)
    }

    /// Long enough for what a rule needs (`samples`, seconds), where that is not too much.
    pub(super) fn steering(&self, (warm_up, measure): Seconds, samples: f64) -> Seconds {
        (warm_up, measure.max(samples.min(self.longest - warm_up)))
    }

    /// The same for a trial that is to confirm a rate: the last one, which may take what is left.
    pub(super) fn confirming(&self, samples: f64) -> Seconds {
        (self.confirm.0, self.confirm.1.max(samples.min(LONGEST)))
    }

    /// Whether a trial with this warm-up is one of those that can narrow an interval and confirm a rate.
    pub(super) fn is_long(warm_up: Duration) -> bool {
        warm_up.as_secs_f64() > SHORT.0
    }

    /// A trial of these seconds, shortened to what is left of the budget while that is of use.
    pub(super) fn trial(
        &self,
        rate: f64,
        (warm_up, measure): Seconds,
        confirm: bool,
        left: Duration,
    ) -> Trial {
        let left = (left.as_secs_f64() - self.overhead - warm_up).max(self.short.1);
        let (warm_up, measure) =
            (Duration::from_secs_f64(warm_up), Duration::from_secs_f64(measure.min(left)));
        Trial { rate, warm_up, measure, confirm }
    }
}

/// The whole of them.
pub(super) fn total((warm_up, measure): Seconds) -> f64 {
    warm_up + measure
}
