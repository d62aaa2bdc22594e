//! How sure a number is: bounds on shares, and 95 % confidence intervals for medians of a series.
//!
//! Methods and their sources are with each function. None may be asked for a level other than 95 %: a report in which
//! every number has the same level cannot mislead by choosing one. (Several comparisons at once need another: see
//! [`crate::two_way`].)

use crate::confidence_interval::{ConfidenceInterval, LEVEL};
use crate::number::float;
use crate::special::beta_quantile;
use crate::{resample, student};

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

/// The median behind a series in time order, such as requests per second: the percentiles of medians resampled by blocks
/// of neighbours, since what happens in one second depends on the second before, and widened for the few blocks that a
/// short series has.
///
/// Blocks: moving, circular (Politis and Romano, 1992), as long as the lag-one correlation asks for (Carlstein, Annals
/// of Statistics 14, 1986). Limits: a series that drifts has no median to estimate.
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
        student::FEWEST.. => Some(of_few(series)),
        _ => None,
    }
}

fn of_few(series: &[f64]) -> ConfidenceInterval {
    let interval = if series.iter().all(|value| *value > 0.0) {
        let logarithms: Vec<f64> = series.iter().map(|value| value.ln()).collect();
        let interval = student::student(&logarithms, 1.0 - LEVEL);
        ConfidenceInterval { low: interval.low.exp(), high: interval.high.exp() }
    } else {
        student::student(series, 1.0 - LEVEL)
    };
    let middle = resample::middle(&mut series.to_vec());
    ConfidenceInterval { low: interval.low.min(middle), high: interval.high.max(middle) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::number::whole;
    use crate::simulate::{Drift, blocks, coverage};

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() <= 5e-4 * expected.abs().max(1e-6)
    }

    #[test]
    fn shares_agree_with_published_values() {
        // Clopper-Pearson for 10 of 100, as R's binom.confint prints it.
        let exact = (share_above(10, 100, 0.025), share_below(10, 100, 0.025));
        assert!(near(exact.0, 0.049_005) && near(exact.1, 0.176_223), "{exact:?}");
    }

    #[test]
    fn no_failure_in_three_over_p_trials_is_the_rule_of_three() {
        assert!(share_below(0, 3000, 0.05) < 0.001);
        assert!(share_below(0, 2990, 0.05) > 0.001);
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
        fn a_share_lies_within_its_own_bounds(trials in 1_u64..5_000_000, part in 0.0_f64..=1.0) {
            let seen = whole(float(trials) * part);
            let p = float(seen) / float(trials);
            let (low, high) = (share_above(seen, trials, 0.025), share_below(seen, trials, 0.025));
            prop_assert!(low <= p + 1e-9 && p <= high + 1e-9, "{low} {high} {p}");
            prop_assert!(low >= 0.0 && high <= 1.0);
        }
    }
}
