//! Student's t: intervals of the mean of a few values, and what a test of them would find.

use crate::ConfidenceInterval;
use crate::number::length;
use crate::resample::average;
use crate::special::{bisect, normal_above, student_quantile};

/// Fewest values that get an interval.
pub(crate) const FEWEST: usize = 3;

/// How often a difference that counts as detectable is found.
const POWER: f64 = 0.9;

/// Student's t interval of the mean of at least two values.
pub(crate) fn student(values: &[f64], error: f64) -> ConfidenceInterval {
    let (centre, reach) = (average(values), student_quantile(1.0 - error / 2.0, length(values.len() - 1)));
    let half = reach * standard_error(values);
    ConfidenceInterval { low: centre - half, high: centre + half }
}

fn standard_error(values: &[f64]) -> f64 {
    let centre = average(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    (squares / length(values.len() - 1) / length(values.len())).sqrt()
}

/// How many standard errors the truth has to be away for a test that asks for `critical` of them to find it in nine of ten
/// cases.
pub(crate) fn detectable(critical: f64, freedom: f64) -> f64 {
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
