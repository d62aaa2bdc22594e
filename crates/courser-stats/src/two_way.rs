//! Which of several targets differ that were measured in the same rounds: the two-way layout, target by round.
//!
//! The logarithm of a value is the sum of what its round adds (drift, another level of the machine), what its target adds, a
//! multiple of the logarithm of what else is known of the block (where that varies enough to matter; a block of which it is not
//! known counts as an average one), and noise. Known are the machine's speed just before, and what the ends of the block cut:
//! where handshakes are long, connections that were begun before it end in it and the other way round, so that a block of half
//! a second with 64 clients and RSA-2048 has a tenth more or less of them than it has paid for. Least squares; all targets
//! share in one estimate of the noise, so that three rounds of five targets have eight degrees of freedom where each pair by
//! itself has two. Rounds in which a target is missing are of use for the others.
//!
//! **All pairs at once.** Tukey's studentised range: the intervals of all pairs hold together in 95 of 100 cases, and a
//! pair is called different exactly when its interval leaves out equality.
//!
//! **Targets of unequal noise.** Where a target is noisier than the rest, the pooled estimate is too small for its pairs. So
//! each pair is judged by the larger of the pooled variance and its own: that of the two targets, estimated without
//! bias from all residuals (Rao's MINQUE, JASA 65, 1970; Grubbs, JASA 43, 1948, where no value is missing).
//!
//! In simulations of 2,000 cases of each kind (five targets, three to six rounds, any drift; the tests of this file are
//! some of them) one of equal targets is called different in 2 to 4 % of cases, with normal noise, bursts and Student's t
//! with three degrees of freedom; in 5 % where a target has double noise, in 4 to 8 % where it has fourfold noise.
//!
//! **Limits.** The order of targets has to change from round to round, else a steady drift within rounds looks like a
//! difference. The speed has to be measured before the target is loaded, so that it cannot depend on it; what the ends cut is
//! equality on average, whatever the target. What depends on the target cannot be taken out: see `METHODOLOGY.md` on the
//! generator's own processor time.

mod algebra;
mod columns;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::ConfidenceInterval;
use crate::confidence_interval::LEVEL;
use crate::number::length;
use crate::student::detectable;
use crate::studentised_range;
use algebra::{dot, squares};
use columns::Columns;

/// Fewest degrees of freedom that an estimate of the noise says anything with.
const FEWEST_FREEDOM: usize = 2;

/// Fewest degrees of freedom of which one is spent on what else is known of blocks: one of nine widens intervals by a tenth.
const FEWEST_FOR_COVARIATE: usize = 9;

/// And the least standard deviation of its logarithm. The values have no say in whether it is used: where they had (if it
/// explained them beyond chance), equal targets were called different in up to 8.5 % of simulated cases of two targets.
const MATTERS: f64 = 0.04;

/// And the share of blocks of which it is known.
const FEWEST_KNOWN: f64 = 0.9;

/// The value of a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundValue {
    /// Blocks of one round were close in time.
    pub round: u32,
    /// Index of the target.
    pub target: usize,
    /// A rate, a time: above zero; others are left out.
    pub value: f64,
    /// Speed of the machine just before, above zero; none where it was not measured.
    pub speed: Option<f64>,
    /// Handshakes of the block over its connections, above zero: 1 but for those that its ends cut in two; none where it is
    /// not known.
    pub edge: Option<f64>,
}

/// What the rounds support about two targets. Ratios are b over a: 1.03 is "b is 3 % higher".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// Best estimate.
    pub ratio: f64,
    /// Ratios that are compatible with the rounds; those of all pairs hold together in 95 of 100 cases.
    pub interval: ConfidenceInterval,
    /// The relative difference that rounds like these show in nine of ten cases: 0.02 is 2 %.
    pub min_detectable: f64,
}

impl Contrast {
    /// Whether they differ: equality is not in the interval.
    pub fn is_different(&self) -> bool {
        !self.interval.contains(1.0)
    }
}

/// The targets of a case, fitted.
#[derive(Clone, Debug)]
pub struct TwoWay {
    columns: Columns,
    /// Residual degrees of freedom.
    freedom: usize,
    reach: Reach,
    /// The coefficients of the columns.
    effects: Vec<f64>,
    /// Variance of the noise, pooled and of each target.
    pooled: f64,
    own: Vec<f64>,
}

impl TwoWay {
    /// Fits the blocks of so many targets. `None` where they leave too few degrees of freedom.
    pub fn fit(values: &[RoundValue], targets: usize) -> Option<Self> {
        let known: Vec<&RoundValue> = values.iter().filter(|one| usable(one, targets)).collect();
        let mut columns = Columns::new(&known, targets);
        let mut freedom = columns.freedom()?;
        let logarithms = columns.rounds.centred(known.iter().map(|one| one.value.ln()).collect());
        for covariate in [|one: &RoundValue| one.edge, |one: &RoundValue| one.speed] {
            let all = or_mean(&known.iter().map(|one| covariate(one).map(f64::ln)).collect::<Vec<_>>());
            let Some(all) = all else { continue };
            let rest = squares(&columns.residuals(&columns.rounds.centred(all.clone())));
            if freedom >= FEWEST_FOR_COVARIATE && rest >= MATTERS * MATTERS * length(freedom) {
                // What targets explain of it is left in, or their effects would not be adjusted for it.
                (columns, freedom) = (columns.with(all), freedom - 1);
            }
        }
        let effects = columns.coefficients(&logarithms);
        let left = columns.residuals(&logarithms);
        let pooled = squares(&left) / length(freedom);
        let own = columns.own_variances(&left, targets, pooled);
        let reach = Reach::of(columns.seen.len(), freedom);
        Some(Self { columns, freedom, reach, effects, pooled, own })
    }

    /// Residual degrees of freedom.
    pub fn freedom(&self) -> usize {
        self.freedom
    }

    /// Compares b with a; `None` where no rounds connect them.
    pub fn contrast(&self, a: usize, b: usize) -> Option<Contrast> {
        let is_known = |target: usize| self.columns.seen.contains(&target);
        let component = &self.columns.component;
        if a == b || !is_known(a) || !is_known(b) || component[a] != component[b] {
            return None;
        }
        let difference = self.effects[b] - self.effects[a];
        let error = self.variance(a, b).sqrt();
        let half = self.reach.critical * error;
        Some(Contrast {
            ratio: difference.exp(),
            interval: ConfidenceInterval { low: (difference - half).exp(), high: (difference + half).exp() },
            min_detectable: (self.reach.detectable * error).exp_m1(),
        })
    }

    /// The variance of a difference of effects: the larger of that by the pooled noise and that by the targets' own.
    fn variance(&self, a: usize, b: usize) -> f64 {
        let contrast: Vec<f64> = self.columns.inverse.iter().map(|row| row[b] - row[a]).collect();
        let (mut pooled, mut own) = (0.0, 0.0);
        for (row, target) in self.columns.rows.iter().zip(&self.columns.of) {
            let weight = dot(row, &contrast);
            pooled += weight * weight * self.pooled;
            own += weight * weight * self.own[*target];
        }
        f64::max(pooled, own)
    }
}

fn usable(one: &RoundValue, targets: usize) -> bool {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let known = [one.speed, one.edge];
    one.target < targets && positive(one.value) && known.into_iter().flatten().all(positive)
}

/// Where one is not known, the mean of those that are: the value beside it is then taken as it is. `None` where too few are.
fn or_mean(values: &[Option<f64>]) -> Option<Vec<f64>> {
    let known: Vec<f64> = values.iter().flatten().copied().collect();
    let is_enough = length(known.len()) >= FEWEST_KNOWN * length(values.len());
    let mean = known.iter().sum::<f64>() / length(known.len().max(1));
    is_enough.then(|| values.iter().map(|value| value.unwrap_or(mean)).collect())
}

/// How many standard errors a difference needs.
#[derive(Clone, Copy, Debug)]
struct Reach {
    /// To be called one, among all pairs of so many targets.
    critical: f64,
    /// To be called one in nine of ten cases.
    detectable: f64,
}

impl Reach {
    /// Kept by shape: the cases of a suite have few, and each takes milliseconds.
    fn of(targets: usize, freedom: usize) -> Self {
        static KNOWN: Mutex<BTreeMap<(usize, usize), Reach>> = Mutex::new(BTreeMap::new());

        // A thread that panicked here has left whole entries.
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry((targets, freedom)).or_insert_with(|| {
            let freedom = length(freedom);
            let range = studentised_range::critical(1.0 - LEVEL, targets, freedom);
            let critical = range / std::f64::consts::SQRT_2;
            Self { critical, detectable: detectable(critical, freedom) }
        })
    }
}
