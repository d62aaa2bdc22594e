//! The block bootstrap under [`crate::confidence::mean`] and [`crate::confidence::median`].

use fastrand::Rng;

use crate::confidence::{ConfidenceInterval, LEVEL, length};
use crate::special::{normal_quantile, student_quantile};

/// Series shorter than this get no interval.
pub(crate) const FEWEST: usize = 8;

/// Resamples per interval: the ends then move by about a twentieth of the interval's width from seed to seed.
const RESAMPLES: usize = 1000;

/// A studentised interval for the mean.
pub(crate) fn mean(series: &[f64], seed: u64) -> ConfidenceInterval {
    let block = block_length(series);
    let centre = average(series);
    let error = block_error(series, block) * missed(lag_one(series).clamp(0.0, 0.9), block);
    let mut rng = Rng::with_seed(seed);
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            let drawn = draw(series, block, &mut rng);
            let ratio = (average(&drawn) - centre) / joined_error(&drawn, block);
            ratio.is_finite().then_some(ratio)
        })
        .collect();
    let (low, high) = tails(&mut ratios);
    // A ratio far below zero belongs to a resample that came out low: the truth is then above what was seen.
    ConfidenceInterval { low: centre - high * error, high: centre - low * error }
}

/// The percentiles of resampled medians.
pub(crate) fn median(series: &[f64], seed: u64) -> ConfidenceInterval {
    let block = block_length(series);
    let mut rng = Rng::with_seed(seed);
    let mut medians: Vec<f64> = (0..RESAMPLES).map(|_| middle(&mut draw(series, block, &mut rng))).collect();
    let centre = middle(&mut series.to_vec());
    let (low, high) = tails(&mut medians);
    let widened = widening(length(series.len()) / length(block));
    ConfidenceInterval { low: centre - (centre - low) * widened, high: centre + (high - centre) * widened }
}

/// How much wider Student's t makes an interval that rests on so many independent pieces.
fn widening(pieces: f64) -> f64 {
    let tail = 0.5 + LEVEL / 2.0;
    student_quantile(tail, pieces - 1.0) / normal_quantile(tail)
}

/// The mean of some values; the caller has at least one.
pub(crate) fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / length(values.len())
}

/// The median of some values, which it sorts; the caller has at least one.
pub(crate) fn middle(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { f64::midpoint(values[half - 1], values[half]) }
}

/// How many neighbours stay together: Carlstein's optimum for an autoregressive series, `(2r/(1-r²))^⅔ n^⅓`, and no
/// more than a quarter of the series.
fn block_length(series: &[f64]) -> usize {
    let r = lag_one(series).clamp(0.0, 0.9);
    let optimum = (2.0 * r / (1.0 - r * r)).powf(2.0 / 3.0) * length(series.len()).cbrt();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped, and never negative"
    )]
    let optimum = optimum.ceil() as usize;
    optimum.clamp(1, series.len() / 4)
}

/// How much a value resembles the one before: correlation at lag one, its bias towards zero corrected after
/// Marriott and Pope (Biometrika 41, 1954).
pub(crate) fn lag_one(series: &[f64]) -> f64 {
    let centre = average(series);
    let all: f64 = series.iter().map(|value| (value - centre).powi(2)).sum();
    let next: f64 = series.windows(2).map(|pair| (pair[0] - centre) * (pair[1] - centre)).sum();
    let seen = if all > 0.0 { next / all } else { 0.0 };
    seen + (1.0 + 3.0 * seen) / length(series.len())
}

/// A series of the same length made of blocks of the first, each beginning anywhere, wrapping at the end.
fn draw(series: &[f64], block: usize, rng: &mut Rng) -> Vec<f64> {
    let mut drawn = Vec::with_capacity(series.len() + block);
    while drawn.len() < series.len() {
        let start = rng.usize(..series.len());
        drawn.extend((0..block).map(|step| series[(start + step) % series.len()]));
    }
    drawn.truncate(series.len());
    drawn
}

/// Standard error of the mean from all (overlapping) blocks of the series.
fn block_error(series: &[f64], block: usize) -> f64 {
    let sums = (0..series.len()).map(|start| {
        (0..block).map(|step| series[(start + step) % series.len()]).sum::<f64>() / length(block)
    });
    error_of(&sums.collect::<Vec<_>>(), length(series.len()) / length(block))
}

/// Standard error of a resample's mean from the blocks that it was joined from: only those are independent.
fn joined_error(drawn: &[f64], block: usize) -> f64 {
    let means: Vec<f64> = drawn.chunks_exact(block).map(average).collect();
    error_of(&means, length(means.len()))
}

/// What blocks miss of the error, as a factor: the dependence that their borders cut. For an autoregressive series,
/// the square root of its long-run variance over that which blocks of this length see (the idea of prewhitening,
/// Andrews and Monahan, Econometrica 60, 1992).
fn missed(correlation: f64, block: usize) -> f64 {
    let seen: f64 = (1..block)
        .scan(1.0, |power, lag| {
            *power *= correlation;
            Some(*power * (1.0 - length(lag) / length(block)))
        })
        .sum();
    ((1.0 + correlation) / (1.0 - correlation) / (1.0 + 2.0 * seen)).sqrt()
}

fn error_of(means: &[f64], pieces: f64) -> f64 {
    let centre = average(means);
    let spread: f64 = means.iter().map(|mean| (mean - centre).powi(2)).sum::<f64>() / length(means.len());
    (spread / (pieces - 1.0)).sqrt()
}

/// The values that cut off 2.5 % on either side; zero when there are none, as of a constant series.
fn tails(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index of the slice")]
        let index = (share * (length(values.len()) - 1.0)).round() as usize;
        values.get(index).copied().unwrap_or(0.0)
    };
    (at((1.0 - LEVEL) / 2.0), at(0.5 + LEVEL / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{autoregressive, coverage};

    #[test]
    fn the_mean_of_independent_seconds_is_covered() {
        let covered = coverage(200, |seed| mean(&autoregressive(30, 0.0, seed), seed).contains(100.0));
        assert!((0.92..=0.985).contains(&covered), "{covered}");
    }

    #[test]
    fn the_mean_of_seconds_that_depend_on_one_another_is_covered() {
        for (count, least) in [(30, 0.9), (60, 0.9), (300, 0.92)] {
            let covered = coverage(200, |seed| mean(&autoregressive(count, 0.5, seed), seed).contains(100.0));
            assert!(covered >= least, "{covered} of {count}");
        }
    }

    #[test]
    fn the_median_is_covered() {
        for (count, correlation, least) in [(30, 0.0, 0.92), (60, 0.5, 0.88)] {
            let covered =
                coverage(200, |seed| median(&autoregressive(count, correlation, seed), seed).contains(100.0));
            assert!(covered >= least, "{covered} of {count}");
        }
    }

    #[test]
    fn a_constant_series_has_no_width() {
        let interval = mean(&[7.0; 20], 1);
        assert_eq!((interval.low, interval.high), (7.0, 7.0));
        let interval = median(&[7.0; 20], 1);
        assert_eq!((interval.low, interval.high), (7.0, 7.0));
    }

    #[test]
    fn more_seconds_say_more() {
        let width = |count| {
            let interval = mean(&autoregressive(count, 0.3, 5), 5);
            interval.high - interval.low
        };
        assert!(width(400) < width(25));
    }
}
