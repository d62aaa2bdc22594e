//! The studentised range: how far apart the largest and the smallest of several equal means lie, in standard errors that
//! are estimated themselves (Tukey's test of all pairs).
//!
//! Both integrals are sums over an even grid, which converge faster than any power of the step for smooth functions that
//! vanish at both ends (Trefethen and Weideman, SIAM Review 56, 2014). Checked against the published tables.

use statrs::function::gamma;

use crate::number::length;
use crate::special::normal_above;

/// The probability that the range of `means` standard normal variables, over an independent standard error with `freedom`
/// degrees of freedom, exceeds `range`.
pub(crate) fn above(range: f64, means: usize, freedom: f64) -> f64 {
    const STEPS: u32 = 60;

    // The logarithm of the standard error is close to normal, with this deviation.
    let deviation = (0.5 / freedom).sqrt();
    let (low, step) = (-15.0 * deviation, 20.0 * deviation / f64::from(STEPS));
    let scale =
        std::f64::consts::LN_2 + freedom / 2.0 * (freedom / 2.0).ln() - gamma::ln_gamma(freedom / 2.0);
    let (mut beyond, mut all) = (0.0, 0.0);
    for index in 0..STEPS {
        let log = low + (f64::from(index) + 0.5) * step;
        let weight = (scale + freedom * log - freedom * (2.0 * log).exp() / 2.0).exp();
        beyond += weight * (1.0 - below_known(range * log.exp(), means));
        all += weight;
    }
    (beyond / all).clamp(0.0, 1.0)
}

/// The range that is exceeded with probability `error`.
pub(crate) fn critical(error: f64, means: usize, freedom: f64) -> f64 {
    // Secants on the logarithm of the probability, which is nearly straight, within a bracket.
    let value = |range: f64| (above(range, means, freedom).max(f64::MIN_POSITIVE) / error).ln();
    let (mut low, mut high) = (0.0, 4.0);
    while value(high) > 0.0 && high < 1e6 {
        (low, high) = (high, high * 2.0);
    }
    let (mut at_low, mut at_high) = (value(low), value(high));
    for _ in 0..60 {
        if high - low < 1e-6 * high {
            break;
        }
        let secant = low + (high - low) * at_low / (at_low - at_high);
        let middle = secant.clamp(low + 0.02 * (high - low), high - 0.02 * (high - low));
        let at_middle = value(middle);
        if at_middle > 0.0 {
            (low, at_low) = (middle, at_middle);
        } else {
            (high, at_high) = (middle, at_middle);
        }
    }
    f64::midpoint(low, high)
}

/// The probability that the range of standard normal variables stays below `range`.
fn below_known(range: f64, means: usize) -> f64 {
    const STEP: f64 = 0.3;
    const FAR: f64 = 7.0;

    let others = i32::try_from(means.saturating_sub(1)).unwrap_or(i32::MAX);
    let (mut sum, mut largest) = (0.0, -FAR);
    while largest < FAR {
        let density = (-largest * largest / 2.0).exp();
        sum += density * (normal_above(largest - range) - normal_above(largest)).powi(others);
        largest += STEP;
    }
    (length(means) * sum * STEP / std::f64::consts::TAU.sqrt()).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::student_quantile;

    #[test]
    fn critical_values_are_those_of_the_tables() {
        // Harter's table at 5 %, as R's qtukey prints it.
        for (means, freedom, published) in [
            (2, 10.0, 3.151_064),
            (3, 2.0, 8.330_783),
            (5, 8.0, 4.885_754),
            (6, 15.0, 4.594_735),
            (10, 60.0, 4.646_324),
        ] {
            let seen = critical(0.05, means, freedom);
            assert!((seen / published - 1.0).abs() < 2e-3, "{means} {freedom}: {seen}, not {published}");
        }
    }

    #[test]
    fn of_two_means_it_is_students_t() {
        for freedom in [2.0, 3.0, 46.0] {
            let expected = student_quantile(0.975, freedom) * std::f64::consts::SQRT_2;
            assert!((critical(0.05, 2, freedom) / expected - 1.0).abs() < 1e-3, "{freedom}");
        }
    }
}
