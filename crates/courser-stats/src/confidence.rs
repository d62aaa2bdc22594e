//! How sure a number is: 95 % confidence intervals for shares, counts, and means and medians of a series.
//!
//! Methods and their sources are with each function. None may be asked for a level other than 95 %: a report in which
//! every number has the same level cannot mislead by choosing one. (Several comparisons at once need another: see
//! [`crate::paired_at`].)

use crate::special::{beta_quantile, gamma_quantile, normal_quantile};
use crate::{paired, resample};

/// The level of every interval of this crate.
pub const LEVEL: f64 = 0.95;

/// A 95 % interval: what the numbers say is compatible with everything between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end, in the unit of what was estimated.
    pub low: f64,
    /// Upper end, in the same unit.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Whether `value` lies between the ends, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// How far the ends lie from their middle, as a share of the middle: 0.03 is "3 % either way".
    pub fn either_way(&self) -> f64 {
        (self.high - self.low) / (self.high + self.low).abs()
    }

    /// The interval of `by` times the value; `by` is not negative.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { low: self.low * by, high: self.high * by }
    }
}

/// The share that `seen` of `trials` stand for: Wilson's score interval (JASA 22, 1927), whose mean coverage is near
/// 95 % even for few trials and shares near 0 or 1 (Brown, Cai and DasGupta, Statistical Science 16, 2001). For plots
/// and tables; a limit is judged by [`share_exact`]. `None` without trials.
pub fn share(seen: u64, trials: u64) -> Option<ConfidenceInterval> {
    if trials == 0 {
        return None;
    }
    let (n, z) = (float(trials), normal_quantile(0.5 + LEVEL / 2.0));
    let p = float(seen.min(trials)) / n;
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Some(ConfidenceInterval { low: (middle - reach).max(0.0), high: (middle + reach).min(1.0) })
}

/// The same after Clopper and Pearson (Biometrika 26, 1934): covers at least 95 % whatever the share, at the price of
/// being wider. `None` without trials.
pub fn share_exact(seen: u64, trials: u64) -> Option<ConfidenceInterval> {
    let tail = (1.0 - LEVEL) / 2.0;
    (trials > 0).then(|| ConfidenceInterval {
        low: share_above(seen, trials, tail),
        high: share_below(seen, trials, tail),
    })
}

/// The share that lies below the true one with probability `1 - error` at least: a one-sided Clopper-Pearson bound.
pub(crate) fn share_above(seen: u64, trials: u64, error: f64) -> f64 {
    if seen == 0 || trials == 0 {
        return 0.0;
    }
    let seen = seen.min(trials);
    beta_quantile(float(seen), float(trials - seen + 1), error)
}

/// The share that lies above the true one with probability `1 - error` at least.
pub(crate) fn share_below(seen: u64, trials: u64, error: f64) -> f64 {
    if seen >= trials {
        return 1.0;
    }
    // The closed form for none seen, which is the common case: 1 - error^(1/n), and 3/n for 95 %.
    if seen == 0 {
        return -(error.ln() / float(trials)).exp_m1();
    }
    beta_quantile(float(seen + 1), float(trials - seen), 1.0 - error)
}

/// The mean number of events behind a count of `seen` in one part: Garwood's exact interval for Poisson counts
/// (Biometrika 28, 1936). Events that come in bursts are no Poisson events: their interval is wider.
pub fn count(seen: u64) -> ConfidenceInterval {
    let tail = (1.0 - LEVEL) / 2.0;
    let low = if seen == 0 { 0.0 } else { gamma_quantile(float(seen), tail) };
    ConfidenceInterval { low, high: gamma_quantile(float(seen) + 1.0, 1.0 - tail) }
}

/// The mean behind a series in time order, such as requests per second: a studentised bootstrap over blocks of
/// neighbours, since what happens in one second depends on the second before.
///
/// Blocks: moving, circular (Politis and Romano, 1992), as long as the lag-one correlation asks for (Carlstein, Annals
/// of Statistics 14, 1986). Studentised because percentile intervals of short series are too narrow (Davison and
/// Hinkley, Bootstrap Methods, 1997, section 5.2). `None` of fewer than eight values: no interval from those deserves
/// its name. Limits: a series that drifts has no mean to estimate. With a correlation of 0.5 from one value to the
/// next, the interval from thirty values covers the mean in some 93 % of simulations; with fewer or more dependent
/// ones, less.
pub fn mean(series: &[f64], seed: u64) -> Option<ConfidenceInterval> {
    (series.len() >= resample::FEWEST).then(|| resample::mean(series, seed))
}

/// The median behind a series in time order: the same blocks, and the percentiles of the resampled medians, widened
/// for the few blocks that a short series has.
///
/// Three to seven values, such as the rounds of a suite, are too few to resample: the bootstrap of four covers some
/// 80 %. They get Student's t of their logarithms, or of themselves where one is not above zero, stretched to their own
/// median should that lie outside. It takes them for independent and their logarithms for normal, so that mean and
/// median are one; it is wide, as it has to be: of three values it reaches 2.5 of their standard deviations either way,
/// of five 1.2. `None` of fewer, or where one is no number.
pub fn median(series: &[f64], seed: u64) -> Option<ConfidenceInterval> {
    match series.len() {
        _ if series.iter().any(|value| !value.is_finite()) => None,
        resample::FEWEST.. => Some(resample::median(series, seed)),
        paired::FEWEST.. => Some(of_few(series)),
        _ => None,
    }
}

fn of_few(series: &[f64]) -> ConfidenceInterval {
    let interval = if series.iter().all(|value| *value > 0.0) {
        let logarithms: Vec<f64> = series.iter().map(|value| value.ln()).collect();
        let interval = paired::student(&logarithms, 1.0 - LEVEL);
        ConfidenceInterval { low: interval.low.exp(), high: interval.high.exp() }
    } else {
        paired::student(series, 1.0 - LEVEL)
    };
    let middle = resample::middle(&mut series.to_vec());
    ConfidenceInterval { low: interval.low.min(middle), high: interval.high.max(middle) }
}

/// Counts beyond 2^53 are beyond any run.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 are beyond any run")]
pub(crate) fn float(count: u64) -> f64 {
    count as f64
}

/// The length of a slice, or an index into it, as a number to calculate with.
#[expect(clippy::cast_precision_loss, reason = "lengths beyond 2^53 are beyond any memory")]
pub(crate) fn length(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::{Drift, blocks, coverage};

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 5e-4 * expected.abs().max(1e-6)
    }

    #[test]
    fn shares_agree_with_published_values() {
        // Clopper-Pearson and Wilson for 10 of 100, as R's binom.confint prints them.
        let exact = share_exact(10, 100).unwrap();
        assert!(near(exact.low, 0.049_005) && near(exact.high, 0.176_223), "{exact:?}");
        let wilson = share(10, 100).unwrap();
        assert!(near(wilson.low, 0.055_229) && near(wilson.high, 0.174_366), "{wilson:?}");
    }

    #[test]
    fn no_failure_in_three_over_p_trials_is_the_rule_of_three() {
        assert!(share_below(0, 3000, 0.05) < 0.001);
        assert!(share_below(0, 2990, 0.05) > 0.001);
    }

    #[test]
    fn counts_agree_with_published_values() {
        // Garwood's table.
        let none = count(0);
        assert!(none.low == 0.0 && near(none.high, 3.689), "{none:?}");
        let ten = count(10);
        assert!(near(ten.low, 4.795) && near(ten.high, 18.390), "{ten:?}");
    }

    #[test]
    fn the_median_of_a_few_rounds_is_covered() {
        for count in 3..=8 {
            let covered = coverage(500, |seed| {
                let rounds: Vec<f64> = blocks(seed, Drift::None, 0.03).take(count).collect();
                median(&rounds, seed).unwrap().contains(1.0)
            });
            assert!(covered >= 0.92, "{covered} of {count}");
        }
    }

    #[test]
    fn two_rounds_have_no_interval_and_idle_ones_do() {
        assert_eq!(median(&[1.0, 1.1], 1), None);
        assert_eq!(median(&[1.0, 1.1, f64::NAN, 1.2], 1), None);
        assert!(median(&[0.0, 0.1, 0.2], 1).unwrap().contains(0.1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(50))]

        #[test]
        fn a_share_lies_within_its_own_intervals(trials in 1_u64..5_000_000, part in 0.0_f64..=1.0) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and trials")]
            let seen = (float(trials) * part) as u64;
            let p = float(seen) / float(trials);
            for interval in [share(seen, trials).unwrap(), share_exact(seen, trials).unwrap()] {
                prop_assert!(interval.low <= p + 1e-9 && p <= interval.high + 1e-9, "{interval:?} {p}");
                prop_assert!(interval.low >= 0.0 && interval.high <= 1.0);
            }
            prop_assert!(count(seen).contains(float(seen)));
        }
    }
}
