//! The block bootstrap under [`crate::confidence::median`].

use fastrand::Rng;

use crate::confidence_interval::{ConfidenceInterval, LEVEL};
use crate::number::{index, length};
use crate::special::{normal_quantile, student_quantile};

/// Series shorter than this get no interval.
pub(crate) const FEWEST: usize = 8;

/// Resamples per interval: the ends then move by about a twentieth of the interval's width from seed to seed.
const RESAMPLES: usize = 1000;

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
    index(optimum.ceil()).clamp(1, series.len() / 4)
}

/// How much a value resembles the one before: correlation at lag one, its bias towards zero corrected after
/// Marriott and Pope (Biometrika 41, 1954).
fn lag_one(series: &[f64]) -> f64 {
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

/// The values that cut off 2.5 % on either side; zero when there are none, as of a constant series.
pub(crate) fn tails(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let last = length(values.len()) - 1.0;
    let at = |share: f64| values.get(index((share * last).round())).copied().unwrap_or(0.0);
    (at((1.0 - LEVEL) / 2.0), at(0.5 + LEVEL / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{autoregressive, coverage};

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
        let interval = median(&[7.0; 20], 1);
        assert_eq!((interval.low, interval.high), (7.0, 7.0));
    }

    #[test]
    fn more_seconds_say_more() {
        let width = |count| {
            let interval = median(&autoregressive(count, 0.3, 5), 5);
            interval.high - interval.low
        };
        assert!(width(400) < width(25));
    }
}
