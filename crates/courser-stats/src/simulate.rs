//! Simulated samples with a known truth, for the tests of this crate alone.

use fastrand::Rng;

use crate::interval::length;

/// The share of `times` seeded simulations that come out true.
pub(crate) fn coverage(times: u64, mut simulation: impl FnMut(u64) -> bool) -> f64 {
    let hits = (0..times).filter(|seed| simulation(*seed)).count();
    length(hits) / crate::interval::float(times)
}

/// A series around 100 whose values resemble the one before by `correlation`, with a spread of 5.
pub(crate) fn autoregressive(count: usize, correlation: f64, seed: u64) -> Vec<f64> {
    let mut rng = Rng::with_seed(seed);
    let fresh = (1.0 - correlation * correlation).sqrt();
    let mut state = normal(&mut rng);
    (0..count)
        .map(|_| {
            state = correlation * state + fresh * normal(&mut rng);
            100.0 + 5.0 * state
        })
        .collect()
}

/// A standard normal number (Box and Muller).
pub(crate) fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

/// A number from an exponential distribution with mean 1.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.f64()).ln()
}
