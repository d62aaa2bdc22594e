//! Quantiles of the usual distributions, by bisection of their distribution functions: slow, and never far off.
//!
//! The inverses of the `statrs` crate are not used: some of them stop early or not at all for the millions of trials
//! that a loss limit needs. Its distribution functions are.

use statrs::function::{erf, gamma};

/// How often a bracket is halved; a double has no more digits to give.
const HALVINGS: usize = 80;

/// The probability that a standard normal variable exceeds `z`.
pub(crate) fn normal_above(z: f64) -> f64 {
    0.5 * erf::erfc(z / std::f64::consts::SQRT_2)
}

/// The value that a standard normal variable stays below with probability `p`, strictly between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    -std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * p)
}

/// The value that Student's t with so many degrees of freedom (at least one) stays below with probability `p`, from
/// one half up.
pub(crate) fn student_quantile(p: f64, freedom: f64) -> f64 {
    let y = beta_quantile(freedom.max(1.0) / 2.0, 0.5, 2.0 * (1.0 - p));
    (freedom.max(1.0) * (1.0 - y) / y).sqrt()
}

/// The probability that Student's t exceeds `t`; 1 where that is no number, as of nothing over no noise.
pub(crate) fn student_above(t: f64, freedom: f64) -> f64 {
    let beyond = beta_below(freedom / 2.0, 0.5, freedom / (freedom + t * t)) / 2.0;
    match t {
        t if t.is_nan() => 1.0,
        t if t > 0.0 => beyond,
        _ => 1.0 - beyond,
    }
}

/// The value that a beta variable of these shapes stays below with probability `p`.
pub(crate) fn beta_quantile(a: f64, b: f64, p: f64) -> f64 {
    bisect(0.0, 1.0, |x| beta_below(a, b, x) < p)
}

/// Where between the ends `below` stops being true.
pub(crate) fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The probability that a beta variable stays below `x`: the regularised incomplete beta function (DLMF 8.17), by its
/// continued fraction on the side of the mean where that converges.
pub(crate) fn beta_below(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_below_mean(b, a, 1.0 - x);
    }
    beta_below_mean(a, b, x)
}

fn beta_below_mean(a: f64, b: f64, x: f64) -> f64 {
    let scale = gamma::ln_gamma(a + b) - gamma::ln_gamma(a) - gamma::ln_gamma(b);
    let front = (scale + a * x.ln() + b * (-x).ln_1p()).exp();
    (front * fraction(a, b, x) / a).clamp(0.0, 1.0)
}

/// The continued fraction of DLMF 8.17.22, by Lentz's method. It needs terms in proportion to the root of the larger
/// shape; the bound is that of a hundred million trials.
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const TERMS: u32 = 20_000;
    const SMALL: f64 = 1e-300;

    let kept = |value: f64| if value.abs() < SMALL { SMALL } else { value };
    let mut d = 1.0 / kept(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut product) = (1.0, d);
    for m in (1..TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / kept(1.0 + even * d);
        c = kept(1.0 + even / c);
        product *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / kept(1.0 + odd * d);
        c = kept(1.0 + odd / c);
        product *= d * c;
        if (d * c - 1.0).abs() < 1e-13 {
            break;
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn quantiles_agree_with_the_tables() {
        near(normal_quantile(0.975), 1.959_964);
        near(normal_above(1.959_964), 0.025);
        near(student_quantile(0.975, 1.0), 12.7062);
        near(student_quantile(0.975, 9.0), 2.262_157);
        near(student_above(2.262_157, 9.0), 0.025);
        near(student_above(-2.262_157, 9.0), 0.975);
        near(student_quantile(0.975, 1e6), 1.959_966);
        near(beta_quantile(2.0, 3.0, 0.5), 0.385_728);
    }

    #[test]
    fn few_events_in_millions_of_trials_are_those_of_poisson() {
        // Of n trials, Beta(k, n - k + 1) is Gamma(k)/n when n is large.
        for k in [1.0, 30.0, 900.0] {
            let gamma = bisect(0.0, 2.0 * k + 50.0, |x| gamma::gamma_lr(k, x) < 0.05);
            near(5e7 * beta_quantile(k, 5e7 - k + 1.0, 0.05), gamma);
        }
    }

    #[test]
    fn half_of_many_trials_is_normal() {
        let n = 4e6;
        near(beta_quantile(n / 2.0, n / 2.0, 0.025), 0.5 - 1.959_964 * 0.5 / f64::sqrt(n));
    }
}
