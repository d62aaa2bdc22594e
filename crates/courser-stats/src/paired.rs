//! How two targets compare that were measured in the same few rounds.
//!
//! A suite measures all its targets once in each round, and has three to twelve rounds: too few for the ranks and the
//! looks of [`crate::compare`], which promises more and needs more.
//!
//! **Confidence interval.** Student's t of the rounds' log-ratios. What is common to a round (drift, another level) is in both of
//! its values and cancels; what happens to one value alone, such as a burst, is as likely in either, so the log-ratios
//! are symmetric around the truth, and t of few symmetric values with wild ones among them covers more than it
//! promises (Benjamini, JRSS B 45, 1983). In 4,000 simulations of each kind of drift, with 2.5 % of noise and bursts
//! in a few of a hundred blocks, intervals of 95 % covered 95 to 97 % for 3, 4, 6, 8 and 12 pairs. Wilcoxon's ranks
//! give no interval of under six pairs, the bootstrap of four pairs covers some 80 %.
//!
//! **Limits.** The order of targets has to change from round to round (first forwards, then backwards), else a steady
//! drift looks like a difference. With three or four pairs only big differences are seen: `min_detectable` says how big.

use crate::ConfidenceInterval;
use crate::number::length;
use crate::resample::average;
use crate::special::{beta_below, bisect, normal_above, student_quantile};

/// Fewest pairs that say anything.
pub const FEWEST: usize = 3;

/// How often a difference of [`Paired::min_detectable`] is found.
const POWER: f64 = 0.9;

/// What pairs support. Ratios are b over a: 1.03 is "b is 3 % higher".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// Best estimate: the geometric mean of the pairs' ratios.
    pub ratio: f64,
    /// Ratios that are compatible with the pairs.
    pub interval: ConfidenceInterval,
    /// The relative difference that pairs like these show in nine of ten cases: 0.02 is 2 %.
    pub min_detectable: f64,
    /// How likely equal targets look at least this different (two-sided), for [`holm`].
    pub p: f64,
    /// How many pairs were used.
    pub pairs: usize,
}

impl Paired {
    /// Whether they differ: equality is not in the interval.
    pub fn is_different(&self) -> bool {
        !self.interval.contains(1.0)
    }
}

/// Compares `a[i]` and `b[i]`, both of round `i` and above zero, at this error: 0.05 for 95 %, and `0.05 / k` for each of
/// `k` comparisons that a reader is shown at a time (Bonferroni: all intervals hold together in 95 of 100 cases). A pair in
/// which a value is not (NaN for a block that could not be measured) or is missing is left out. `None` of fewer than
/// [`FEWEST`] pairs, and of an error that is not between 0 and 1.
pub fn paired_at(a: &[f64], b: &[f64], error: f64) -> Option<Paired> {
    let ratios = logarithms(a, b);
    let enough = ratios.len() >= FEWEST && error > 0.0 && error < 1.0;
    enough.then(|| compared(&ratios, error))
}

/// The p of each of several comparisons, corrected for there being several (Holm, Scandinavian Journal of Statistics 6,
/// 1979), in the order given: calling those different that are at most 0.05 is wrong for any of them in at most 5 of 100
/// cases.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|left, right| p[*left].total_cmp(&p[*right]));
    let mut corrected = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        least = least.max(p[index] * length(p.len() - rank)).min(1.0);
        corrected[index] = least;
    }
    corrected
}

/// Student's t interval of the mean of at least two values.
pub(crate) fn student(values: &[f64], error: f64) -> ConfidenceInterval {
    let (centre, reach) = (average(values), student_quantile(1.0 - error / 2.0, length(values.len() - 1)));
    let half = reach * standard_error(values);
    ConfidenceInterval { low: centre - half, high: centre + half }
}

/// The logarithm of b over a, of each pair that is whole.
fn logarithms(a: &[f64], b: &[f64]) -> Vec<f64> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    let pairs = a.iter().zip(b).filter(|(a, b)| usable(**a) && usable(**b));
    pairs.map(|(a, b)| b.ln() - a.ln()).collect()
}

fn compared(ratios: &[f64], error: f64) -> Paired {
    let freedom = length(ratios.len() - 1);
    let interval = student(ratios, error);
    Paired {
        ratio: average(ratios).exp(),
        interval: ConfidenceInterval { low: interval.low.exp(), high: interval.high.exp() },
        min_detectable: (detectable(freedom, error) * standard_error(ratios)).exp_m1(),
        p: two_sided(average(ratios) / standard_error(ratios), freedom),
        pairs: ratios.len(),
    }
}

fn standard_error(values: &[f64]) -> f64 {
    let centre = average(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / length(values.len() - 1) / length(values.len())).sqrt()
}

/// How likely Student's t is at least as far from zero; 1 where there is neither a difference nor noise.
fn two_sided(t: f64, freedom: f64) -> f64 {
    if t.is_nan() { 1.0 } else { beta_below(freedom / 2.0, 0.5, freedom / (freedom + t * t)) }
}

/// How many standard errors the truth has to be away to be found: where the power of the t test is [`POWER`].
fn detectable(freedom: f64, error: f64) -> f64 {
    let critical = student_quantile(1.0 - error / 2.0, freedom);
    bisect(0.0, 10.0 + 10.0 * critical, |away| power(away, critical, freedom) < POWER)
}

/// The probability that t exceeds `critical` when the truth is `away` standard errors from zero (the noncentral t, by
/// integrating over the standard error that is seen, in true ones: its density is that of a chi over its root).
fn power(away: f64, critical: f64, freedom: f64) -> f64 {
    const STEPS: u32 = 200;
    /// Five true errors are beyond what even two degrees of freedom give.
    const WIDEST: f64 = 5.0;

    let (mut found, mut all) = (0.0, 0.0);
    for step in 0..STEPS {
        let seen = WIDEST * (f64::from(step) + 0.5) / f64::from(STEPS);
        let density = ((freedom - 1.0) * seen.ln() - freedom * seen * seen / 2.0).exp();
        found += density * normal_above(critical * seen - away);
        all += density;
    }
    found / all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::{Drift, blocks, coverage};

    const DRIFTS: [Drift; 4] = [Drift::None, Drift::Linear, Drift::Walk, Drift::Steps];
    const NOISE: f64 = 0.025;

    /// Values of two targets in so many rounds, the second `ratio` times the first; every other round backwards.
    fn rounds(count: usize, seed: u64, drift: Drift, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let mut values = blocks(seed, drift, NOISE);
        let mut next = || values.next().unwrap();
        let round = |index: usize| {
            let (first, second) = (next(), next());
            if index.is_multiple_of(2) { (first, second * ratio) } else { (second, first * ratio) }
        };
        (0..count).map(round).unzip()
    }

    #[test]
    fn the_true_ratio_is_covered_by_few_pairs_whatever_drifts() {
        for (count, drift) in [3, 4, 6, 8, 12].into_iter().flat_map(|n| DRIFTS.map(|drift| (n, drift))) {
            let covered = coverage(1000, |seed| {
                let (a, b) = rounds(count, seed, drift, 0.8);
                // What `paired_at` gives the exponential of, without the rest, which takes longer.
                student(&logarithms(&a, &b), 0.05).contains(0.8_f64.ln())
            });
            assert!((0.94..0.985).contains(&covered), "{covered} with {count} pairs and {drift:?}");
        }
    }

    #[test]
    fn the_min_detectable_difference_is_found_in_nine_of_ten() {
        for count in [3, 4, 6, 12] {
            let normal = |seed, ratio| {
                let mut rng = fastrand::Rng::with_seed(seed);
                let b: Vec<f64> =
                    (0..count).map(|_| (NOISE * crate::simulate::normal(&mut rng)).exp() * ratio).collect();
                paired_at(&vec![1.0; count], &b, 0.05).unwrap()
            };
            // Of the true noise; a single run estimates it, and so errs.
            let error = NOISE / length(count).sqrt();
            let ratio = (detectable(length(count - 1), 0.05) * error).exp();
            let found = coverage(500, |seed| normal(seed, ratio).is_different());
            assert!((0.87..0.93).contains(&found), "{found} with {count} pairs");
            let detectable: Vec<f64> =
                (0..100).map(|seed| normal(seed, 1.0).min_detectable.ln_1p()).collect();
            assert!(
                (0.8..1.1).contains(&(average(&detectable) / ratio.ln())),
                "{}",
                average(&detectable) / ratio.ln()
            );
        }
    }

    #[test]
    fn of_four_equal_targets_none_is_called_ahead_in_19_of_20_cases() {
        let wrong = coverage(400, |seed| {
            let runs: Vec<Vec<f64>> = (0..4).map(|t| rounds(6, seed * 4 + t, Drift::None, 1.0).0).collect();
            runs[1..].iter().any(|b| paired_at(&runs[0], b, 0.05 / 3.0).unwrap().is_different())
        });
        assert!(wrong <= 0.05, "{wrong}");
    }

    #[test]
    fn figures_agree_with_a_textbook() {
        // Logarithms of the ratios 1, 2, 3, 4 (in hundredths): mean 2.5, error 0.6455, t 3.873 with p 0.0305.
        let b: Vec<f64> = (1..=4).map(|value| (f64::from(value) / 100.0).exp()).collect();
        let seen = paired_at(&[1.0; 4], &b, 0.05).unwrap();
        assert!((seen.ratio.ln() - 0.025).abs() < 1e-12 && seen.pairs == 4);
        assert!((seen.interval.low.ln() - 0.025 + 3.182_446 * 0.006_455).abs() < 1e-6, "{seen:?}");
        assert!((seen.p - 0.030_466).abs() < 1e-5, "{seen:?}");
    }

    #[test]
    fn holm_is_less_strict_than_bonferroni_and_keeps_the_order() {
        let corrected = holm(&[0.04, 0.01, 0.03, 0.9]);
        let expected = [0.09, 0.04, 0.09, 0.9];
        assert!(
            corrected.iter().zip(expected).all(|(seen, due)| (seen - due).abs() < 1e-12),
            "{corrected:?}"
        );
    }

    #[test]
    fn equal_values_without_noise_do_not_differ() {
        let seen = paired_at(&[2.0; 3], &[2.0; 3], 0.05).unwrap();
        assert_eq!((seen.ratio, seen.p, seen.min_detectable, seen.is_different()), (1.0, 1.0, 0.0, false));
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let seen = paired_at(&[1.0, f64::NAN, 1.0, 1.0, 0.0, 5.0], &[2.0, 2.0, 2.1, 1.9, 2.0], 0.05).unwrap();
        assert_eq!(seen.pairs, 3);
        assert_eq!(paired_at(&[1.0, f64::NAN, 1.0], &[2.0; 3], 0.05), None);
        assert_eq!(paired_at(&[1.0; 3], &[2.0; 3], 0.0), None);
    }

    proptest! {
        #[test]
        fn any_values_give_an_interval_around_the_ratio_or_nothing(
            a in prop::collection::vec(prop::num::f64::ANY, 0..12),
            b in prop::collection::vec(prop::num::f64::ANY, 0..12),
        ) {
            if let Some(seen) = paired_at(&a, &b, 0.05) {
                prop_assert!(seen.interval.low <= seen.ratio && seen.ratio <= seen.interval.high, "{seen:?}");
                prop_assert!((0.0..=1.0).contains(&seen.p) && seen.min_detectable >= 0.0, "{seen:?}");
            }
        }
    }
}
