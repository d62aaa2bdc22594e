//! Where a rule's knee is, as a probability over rates and steepnesses.

use crate::number::{index, length};

/// How long a trial was, which decides how much it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Seconds: a queue has hardly had time to build up, and a hiccup weighs much.
    Short,
    /// Long enough to narrow the interval.
    Long,
}

impl Kind {
    /// How often a trial fails whatever the rate: a hiccup of the machine.
    fn hiccup(self) -> f64 {
        match self {
            Self::Short => 0.05,
            Self::Long => 0.02,
        }
    }

    /// Steepness that the trial's shortness adds, as a share of the rate.
    fn blur(self) -> f64 {
        match self {
            Self::Short => 0.03,
            Self::Long => 0.0,
        }
    }
}

/// How often a trial holds whatever the rate. Hardly ever: no luck carries an overload.
const LUCK: f64 = 0.005;

/// How much the rate has to change for failure to go from 27 % to 73 %: shares of the rate. Real servers break within a
/// percent or two; the steeper ones are held more likely beforehand, by the root of their steepness.
const STEEPNESS: [f64; 5] = [0.001, 0.004, 0.01, 0.02, 0.04];

/// From where one in five trials fails to where half of them do, in steepnesses: ln 4. What breaks a rule at its knee
/// are rare and long excursions of the queue, so that the typical trial there still holds: in simulations of a queue
/// (one server, exponential times) whose mean or 99th percentile is just at the limit, 10 to 30 % of the trials fail.
const ONE_IN_FIVE: f64 = 1.386;

/// How far beyond the range the knee may be: those cells stand for all beyond.
const BEYOND: f64 = 0.3;

/// Probability over the logarithm of the knee (rows) and the steepness (columns).
#[derive(Clone, Debug)]
pub(super) struct Posterior {
    /// Logarithm of the first row's rate, and the distance between rows.
    first: f64,
    step: f64,
    cells: Vec<[f64; STEEPNESS.len()]>,
    /// Least distance from the knee to where half of the trials fail, as a share.
    least_shift: f64,
}

impl Posterior {
    /// No rate of the range more likely than another, on a logarithmic scale, with a resolution that suits `precision`.
    pub(super) fn new(from: f64, to: f64, precision: f64, least_shift: f64) -> Self {
        let step = precision / 6.0;
        let first = from.ln() - BEYOND;
        let rows = index(((to.ln() + BEYOND - first) / step).ceil());
        let weights = STEEPNESS.map(|steepness| steepness.powf(-0.5));
        let row = weights.map(|weight| weight / weights.iter().sum::<f64>() / length(rows));
        Self { first, step, cells: vec![row; rows], least_shift }
    }

    /// Learns from a trial at `rate` that speaks for failure as strongly as `leaning` (0 to 1).
    pub(super) fn learn(&mut self, rate: f64, leaning: f64, kind: Kind) {
        let at = rate.ln();
        let scales = STEEPNESS.map(|steepness| steepness.hypot(kind.blur()));
        let mut sum = 0.0;
        for (row, cells) in self.cells.iter_mut().enumerate() {
            let knee = self.first + length(row) * self.step;
            for (cell, scale) in cells.iter_mut().zip(scales) {
                let half = knee + (ONE_IN_FIVE * scale).max(self.least_shift);
                let fails = failure((at - half) / scale, kind.hiccup());
                *cell *= leaning * fails + (1.0 - leaning) * (1.0 - fails);
                sum += *cell;
            }
        }
        self.cells.iter_mut().flatten().for_each(|cell| *cell /= sum);
    }

    /// The rate that the knee is below with this probability.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let mut sum = 0.0;
        for (row, cells) in self.cells.iter().enumerate() {
            let mass: f64 = cells.iter().sum();
            if sum + mass >= probability && mass > 0.0 {
                // A row stands for the rates half a step around it.
                let within = (probability - sum) / mass - 0.5;
                return (self.first + (length(row) + within) * self.step).exp();
            }
            sum += mass;
        }
        (self.first + length(self.cells.len()) * self.step).exp()
    }

    /// How far above the knee trials are undetectable even where it is steep: the logarithm of the rate there over the knee's.
    pub(super) fn undetectable(&self) -> f64 {
        let undetectable = STEEPNESS.map(|steepness| (self.least_shift - ONE_IN_FIVE * steepness).max(0.0));
        self.cells
            .iter()
            .flat_map(|cells| cells.iter().zip(undetectable))
            .map(|(cell, undetectable)| cell * undetectable)
            .sum()
    }

    /// The probability that the knee is below a rate.
    pub(super) fn below(&self, rate: f64) -> f64 {
        let rows = (rate.ln() - self.first) / self.step;
        self.cells
            .iter()
            .enumerate()
            .take_while(|(row, _)| length(*row) <= rows)
            .map(|(_, cells)| cells.iter().sum::<f64>())
            .sum()
    }
}

/// How likely a trial fails at a distance (in steepnesses) from where half of the trials do.
fn failure(distance: f64, hiccup: f64) -> f64 {
    hiccup + (1.0 - hiccup - LUCK) / (1.0 + (-distance).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_converges_on_a_knee_and_recovers_from_a_lie() {
        let mut posterior = Posterior::new(100.0, 100_000.0, 0.03, 0.0);
        for trial in 0..30 {
            let rate = posterior.quantile(0.5);
            let failed = (rate > 4321.0) != (trial == 2); // the third trial lies
            posterior.learn(rate, if failed { 1.0 } else { 0.0 }, Kind::Long);
        }
        assert!((posterior.quantile(0.5) / 4321.0 - 1.0).abs() < 0.01, "{}", posterior.quantile(0.5));
        assert!(posterior.quantile(0.025) <= 4321.0 && posterior.quantile(0.975) >= 4321.0);
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let mut posterior = Posterior::new(100.0, 1000.0, 0.03, 0.0);
        let before = posterior.quantile(0.3);
        posterior.learn(300.0, 0.5, Kind::Long);
        assert!((posterior.quantile(0.3) / before - 1.0).abs() < 1e-9);
    }

    #[test]
    fn probabilities_and_quantiles_are_inverse() {
        let mut posterior = Posterior::new(10.0, 1000.0, 0.03, 0.0);
        posterior.learn(80.0, 1.0, Kind::Long);
        assert!((posterior.below(posterior.quantile(0.4)) - 0.4).abs() < 0.02);
    }
}
