//! How blocks of one run compare with blocks of another: before and after, one platform and the next.
//!
//! Nothing was measured at the same time, so nothing cancels: whatever else differs between the two runs (the machine's
//! mood, its neighbours) is in the ratio as well, and no interval knows of it. The interval is Welch's (Biometrika 34,
//! 1947) of the logarithms: for few blocks, of unequal noise.

use crate::ConfidenceInterval;
use crate::confidence_interval::LEVEL;
use crate::number::length;
use crate::resample::average;
use crate::special::{student_above, student_quantile};
use crate::student::detectable;

/// Fewest blocks on either side that say anything.
pub const FEWEST: usize = 2;

/// What two sets of blocks support. Ratios are b over a: 1.03 is "b is 3 % higher".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unpaired {
    /// Best estimate: the ratio of the geometric means.
    pub ratio: f64,
    /// Ratios that are compatible with the blocks, at 95 %.
    pub interval: ConfidenceInterval,
    /// How many blocks there were on each side.
    pub blocks: [usize; 2],
    /// The relative difference that blocks like these show in nine of ten cases: 0.02 is 2 %.
    pub min_detectable: f64,
    /// Standard error of the logarithm of the ratio.
    error: f64,
    /// Its degrees of freedom.
    freedom: f64,
}

impl Unpaired {
    /// Whether they differ: equality is not in the interval.
    pub fn is_different(&self) -> bool {
        !self.interval.contains(1.0)
    }

    /// How likely a ratio of `limit` looks at least this far above it: small where the true one is above the limit.
    pub fn p_above(&self, limit: f64) -> f64 {
        student_above((self.ratio / limit).ln() / self.error, self.freedom)
    }

    /// The same for a ratio below it.
    pub fn p_below(&self, limit: f64) -> f64 {
        student_above((limit / self.ratio).ln() / self.error, self.freedom)
    }
}

/// Compares values above zero; others (NaN for a block that could not be measured) are left out. `None` of fewer than
/// [`FEWEST`] on either side.
pub fn unpaired(a: &[f64], b: &[f64]) -> Option<Unpaired> {
    let (a, b) = (logarithms(a), logarithms(b));
    (a.len() >= FEWEST && b.len() >= FEWEST).then(|| {
        let difference = average(&b) - average(&a);
        let (error, freedom) = welch(spread(&a), spread(&b));
        let critical = student_quantile(1.0 - (1.0 - LEVEL) / 2.0, freedom);
        let half = critical * error;
        let interval = ConfidenceInterval { low: (difference - half).exp(), high: (difference + half).exp() };
        let min_detectable = (detectable(critical, freedom) * error).exp_m1();
        Unpaired {
            ratio: difference.exp(),
            interval,
            blocks: [a.len(), b.len()],
            min_detectable,
            error,
            freedom,
        }
    })
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().filter(|value| value.is_finite() && **value > 0.0).map(|value| value.ln()).collect()
}

/// The variance of the mean, and how many values it is from.
fn spread(values: &[f64]) -> (f64, f64) {
    let (centre, count) = (average(values), length(values.len()));
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / (count - 1.0) / count, count)
}

/// The standard error of the difference, and its degrees of freedom (Welch and Satterthwaite).
fn welch((a, of_a): (f64, f64), (b, of_b): (f64, f64)) -> (f64, f64) {
    let sum = a + b;
    let freedom = sum * sum / (a * a / (of_a - 1.0) + b * b / (of_b - 1.0));
    (sum.sqrt(), if freedom.is_finite() { freedom.max(1.0) } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;
    use crate::special::normal_quantile;

    fn noisy(rng: &mut Rng, count: usize, centre: f64, noise: f64) -> Vec<f64> {
        (0..count)
            .map(|_| centre * (noise * normal_quantile(rng.f64().clamp(1e-9, 1.0 - 1e-9))).exp())
            .collect()
    }

    #[test]
    fn equal_sides_are_called_different_in_about_one_of_twenty() {
        for (a, b, noise) in [(4, 4, 0.03), (6, 3, 0.1), (3, 8, 0.02)] {
            let mut rng = Rng::with_seed(11);
            let called = (0..2000).filter(|_| {
                let (a, b) = (noisy(&mut rng, a, 7.0, 0.03), noisy(&mut rng, b, 7.0, noise));
                unpaired(&a, &b).unwrap().is_different()
            });
            let called = called.count();
            assert!((30..=135).contains(&called), "{called} of 2000 with {a} and {b} blocks");
        }
    }

    #[test]
    fn a_difference_is_seen_and_sized() {
        let mut rng = Rng::with_seed(5);
        let (a, b) = (noisy(&mut rng, 6, 100.0, 0.02), noisy(&mut rng, 6, 120.0, 0.02));
        let compared = unpaired(&a, &b).unwrap();
        assert!(compared.is_different() && compared.interval.contains(1.2), "{compared:?}");
    }

    #[test]
    fn blocks_that_could_not_be_measured_are_left_out() {
        let compared = unpaired(&[1.0, f64::NAN, 1.0], &[2.0, 0.0, 2.0]).unwrap();
        assert_eq!((compared.ratio, compared.blocks), (2.0, [2, 2]));
        assert_eq!(unpaired(&[1.0, f64::NAN], &[2.0, 2.0]), None);
    }
}
