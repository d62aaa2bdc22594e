//! Simulated samples with a known truth, for the tests of this crate alone.

use fastrand::Rng;

use crate::number::length;

/// The share of `times` seeded simulations that come out true.
pub(crate) fn coverage(times: u64, mut simulation: impl FnMut(u64) -> bool) -> f64 {
    let hits = (0..times).filter(|seed| simulation(*seed)).count();
    length(hits) / crate::number::float(times)
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

/// What noise looks like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tails {
    Normal,
    /// Normal, and the bursts of [`blocks`].
    Bursts,
    /// Student's t with three degrees of freedom.
    Student3,
}

/// Noise around 0; normal noise has a deviation of 1.
pub(crate) fn noise(rng: &mut Rng, tails: Tails) -> f64 {
    match tails {
        Tails::Normal | Tails::Bursts => normal(rng),
        Tails::Student3 => {
            let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
            normal(rng) / (squares / 3.0).sqrt()
        }
    }
}

/// What changes slowly while blocks are measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Drift {
    None,
    /// A tenth more after eighty blocks.
    Linear,
    /// 1 % up or down with each block.
    Walk,
    /// Every thirty blocks or so another level, up to 15 % away.
    Steps,
}

/// Values of blocks in time order, around 1, without end: lognormal noise, drift, and bursts of one to three blocks
/// that are 20 to 70 % higher (they begin in 2 of 100).
pub(crate) fn blocks(seed: u64, drift: Drift, noise: f64) -> impl Iterator<Item = f64> {
    let mut rng = Rng::with_seed(seed);
    let (mut level, mut burst) = (0.0, (0, 0.0));
    std::iter::repeat_with(move || {
        level = next_level(level, drift, &mut rng);
        if burst.0 == 0 && rng.f64() < 0.02 {
            burst = (rng.u32(1..=3), (1.2 + 0.5 * rng.f64()).ln());
        }
        let extra = if burst.0 > 0 { burst.1 } else { 0.0 };
        burst.0 = burst.0.saturating_sub(1);
        (level + extra + noise * normal(&mut rng)).exp()
    })
}

fn next_level(level: f64, drift: Drift, rng: &mut Rng) -> f64 {
    match drift {
        Drift::None => 0.0,
        Drift::Linear => level + 0.1 / 80.0,
        Drift::Walk => level + 0.01 * normal(rng),
        Drift::Steps if rng.f64() < 1.0 / 30.0 => 0.3 * (rng.f64() - 0.5),
        Drift::Steps => level,
    }
}
