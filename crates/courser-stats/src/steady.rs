//! Whether a series of values, one a second, has settled: the number that a run reports is an average, and an average
//! of a ramp means nothing.
//!
//! Four questions, in this order: are there enough values; is the rate that was asked for made (RFC 9411, section 7: a
//! constant rate deviates by less than 5 %); is there a trend (Mann and Kendall's test on the means of ten parts,
//! so that seconds that resemble the one before do not make one; and Theil and Sen's slope, since a trend too small to
//! matter is none); and does it swing (CyberFlood's rule: over the last three samples, highest less lowest is at most 3
//! % of their mean; here each sample is a third of the series, so that the noise of single seconds does not decide).
//!
//! Limits: with ten parts a trend that turns round half-way is no trend, but swings.

use std::fmt;

use crate::confidence::length;
use crate::resample::{average, middle};

/// What a series does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// It has settled.
    Steady,
    /// It is shorter than the ten seconds that can be judged.
    TooShort {
        /// How many values there are.
        seconds: usize,
    },
    /// Its mean is off the rate that was asked for by 5 % or more.
    OffRate {
        /// Its mean.
        mean: f64,
        /// What was asked for.
        asked: f64,
    },
    /// It climbs or falls, by more than 3 % over its length.
    Drifting {
        /// Change over the whole series as a share of its mean; negative when it falls.
        change: f64,
    },
    /// Its thirds differ.
    Swinging {
        /// Highest less lowest, as a share of the mean.
        spread: f64,
    },
}

/// Values that can be judged.
const FEWEST: usize = 10;

/// Stretches whose means are tested for a trend.
const STRETCHES: usize = 10;

/// RFC 9411's deviation, and CyberFlood's spread.
const DEVIATION: f64 = 0.05;
const SPREAD: f64 = 0.03;

/// Judges the values of whole seconds (no partial last one), and the rate that was asked for where there was one.
pub fn steadiness(seconds: &[f64], asked: Option<f64>) -> Steadiness {
    if seconds.len() < FEWEST {
        return Steadiness::TooShort { seconds: seconds.len() };
    }
    let mean = average(seconds);
    if let Some(asked) = asked.filter(|asked| (mean - asked).abs() >= DEVIATION * asked) {
        return Steadiness::OffRate { mean, asked };
    }
    let parts = means(seconds, STRETCHES);
    let change = slope(&parts) * length(STRETCHES) / mean;
    if change.abs() > SPREAD && has_trend(&parts) {
        return Steadiness::Drifting { change };
    }
    let spread = range(&means(seconds, 3)) / mean;
    if spread > SPREAD { Steadiness::Swinging { spread } } else { Steadiness::Steady }
}

impl Steadiness {
    /// What to do about it; nothing where it is steady.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Steady => None,
            Self::TooShort { .. } => Some("measure for ten seconds at least"),
            Self::OffRate { .. } => {
                Some("offer less, or look whether the generator or the server held it back")
            }
            Self::Drifting { .. } => Some(
                "warm up for longer; if it goes on, caches, memory or the processor's clock are still moving",
            ),
            Self::Swinging { .. } => {
                Some("measure for longer, and look for jobs that come and go on the machine")
            }
        }
    }
}

impl fmt::Display for Steadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Steady => f.write_str("steady"),
            Self::TooShort { seconds } => write!(f, "too short to judge: {seconds} s"),
            Self::OffRate { mean, asked } => {
                write!(f, "off the rate: {mean:.0}/s, {asked:.0}/s were asked for")
            }
            Self::Drifting { change } => write!(f, "drifting: {:+.1} % over the run", 100.0 * change),
            Self::Swinging { spread } => {
                write!(f, "swinging: its thirds are {:.1} % apart", 100.0 * spread)
            }
        }
    }
}

/// Means of so many parts of about equal length; the series is at least as long.
fn means(series: &[f64], parts: usize) -> Vec<f64> {
    let border = |index: usize| index * series.len() / parts;
    (0..parts).map(|index| average(&series[border(index)..border(index + 1)])).collect()
}

/// Median of the slopes between all pairs, per step (Theil and Sen).
fn slope(values: &[f64]) -> f64 {
    let slopes = pairs(values).map(|(steps, change)| change / length(steps));
    middle(&mut slopes.collect::<Vec<_>>())
}

/// Mann and Kendall's test at 5 %, two-sided, for ten values: the concordant pairs less the discordant ones are 23 or
/// more of 45 (Hollander, Wolfe and Chicken, table A.30; exact level 0.046).
fn has_trend(values: &[f64]) -> bool {
    const CRITICAL: f64 = 23.0;

    let sign = |(_, change): (usize, f64)| if change == 0.0 { 0.0 } else { change.signum() };
    pairs(values).map(sign).sum::<f64>().abs() >= CRITICAL
}

/// How far apart and how different the values of each pair are.
fn pairs(values: &[f64]) -> impl Iterator<Item = (usize, f64)> + '_ {
    let after = |first: usize| (first + 1..values.len()).map(move |second| (first, second));
    (0..values.len()).flat_map(after).map(|(first, second)| (second - first, values[second] - values[first]))
}

fn range(values: &[f64]) -> f64 {
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    highest - values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::{autoregressive, coverage};

    /// Seconds around 100 with a spread of 2, that resemble the one before.
    fn seconds(seed: u64) -> Vec<f64> {
        autoregressive(60, 0.4, seed).iter().map(|value| 100.0 + 0.4 * (value - 100.0)).collect()
    }

    fn changed(seed: u64, by: impl Fn(f64) -> f64) -> Steadiness {
        let series: Vec<f64> =
            seconds(seed).iter().enumerate().map(|(at, value)| value * by(length(at))).collect();
        steadiness(&series, Some(100.0))
    }

    #[test]
    fn a_settled_series_is_steady_and_a_climbing_one_is_not() {
        assert!(coverage(200, |seed| changed(seed, |_| 1.0) == Steadiness::Steady) >= 0.95);
        let climbing = |at: f64| 0.96 + 0.08 * at / 60.0;
        let found = coverage(
            200,
            |seed| matches!(changed(seed, climbing), Steadiness::Drifting { change } if change > 0.05),
        );
        assert!(found >= 0.95, "{found}");
    }

    #[test]
    fn a_dip_in_the_middle_swings() {
        let dip = |at: f64| if (20.0..40.0).contains(&at) { 0.93 } else { 1.0 };
        assert!(matches!(changed(1, dip), Steadiness::Swinging { spread } if spread > 0.05));
    }

    #[test]
    fn a_missed_rate_is_reported_before_all_else() {
        let Steadiness::OffRate { mean, .. } = steadiness(&seconds(2), Some(110.0)) else { panic!() };
        assert!((mean - 100.0).abs() < 2.0);
        assert_eq!(steadiness(&seconds(2), None), Steadiness::Steady);
    }

    #[test]
    fn whatever_is_not_steady_comes_with_advice() {
        for seen in [changed(1, |at| 1.0 + at), steadiness(&[1.0; 9], None), changed(1, |_| 2.0)] {
            assert!(seen.advice().is_some() && !seen.to_string().is_empty(), "{seen:?}");
        }
        assert_eq!(Steadiness::Steady.advice(), None);
    }

    proptest! {
        #[test]
        fn no_series_makes_it_panic(series in prop::collection::vec(prop::num::f64::ANY, 0..80)) {
            let _ = steadiness(&series, Some(10.0));
            prop_assert_eq!(steadiness(&vec![5.0; series.len() + 10], Some(5.1)), Steadiness::Steady);
        }
    }
}
