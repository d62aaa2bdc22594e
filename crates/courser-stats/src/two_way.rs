//! Which of several targets differ that were measured in the same rounds: the two-way layout, target by round.
//!
//! The logarithm of a value is the sum of what its round adds (drift, another level of the machine), what its target adds, a
//! multiple of the logarithm of the machine's speed just before (where that is known of every block and explains the values
//! beyond chance), and noise. Least
//! squares; all targets share in one estimate of the noise, so that three rounds of five targets have eight degrees of
//! freedom where each pair by itself has two. Rounds in which a target is missing are of use for the others.
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
//! difference. The speed has to be measured before the target is loaded, so that it cannot depend on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use crate::ConfidenceInterval;
use crate::confidence_interval::LEVEL;
use crate::number::length;
use crate::special::student_quantile;
use crate::student::detectable;
use crate::studentised_range;

/// Fewest degrees of freedom that an estimate of the noise says anything with.
const FEWEST_FREEDOM: usize = 2;

/// Fewest degrees of freedom of which one is spent on the machine's speed.
const FEWEST_FOR_SPEED: usize = 5;

/// The speed is used where it explains the noise with no more than this chance of doing so by accident.
const CHANCE: f64 = 0.01;

/// Squares of logarithms below this are rounding.
const NOTHING: f64 = 1e-18;

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
        let plain = Columns::new(&known, targets);
        let freedom = plain.freedom()?;
        let logarithms = plain.rounds.centred(known.iter().map(|one| one.value.ln()).collect());
        let left = plain.residuals(&logarithms);
        let speeds: Option<Vec<f64>> = known.iter().map(|one| one.speed.map(f64::ln)).collect();
        let speeds = speeds.map(|speeds| plain.residuals(&plain.rounds.centred(speeds)));
        let explains = |speeds: &Vec<f64>| explains(speeds, &left, freedom);
        let (columns, freedom) = match speeds.filter(explains) {
            // What targets explain of the speed is left in, or their effects would not be adjusted for it.
            Some(_) => {
                let speeds = known.iter().filter_map(|one| one.speed.map(f64::ln)).collect();
                (plain.with(speeds), freedom - 1)
            }
            None => (plain, freedom),
        };
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
    one.target < targets && positive(one.value) && one.speed.is_none_or(positive)
}

/// Whether what rounds and targets leave of the speed explains what they leave of the values, beyond chance.
fn explains(speeds: &[f64], left: &[f64], freedom: usize) -> bool {
    let (own, shared, all) = (squares(speeds), dot(speeds, left), squares(left));
    if freedom < FEWEST_FOR_SPEED || own < NOTHING {
        return false;
    }
    let explained = shared * shared / own;
    let noise = (all - explained).max(0.0) / length(freedom - 1);
    let critical = student_quantile(1.0 - CHANCE / 2.0, length(freedom - 1));
    explained > critical * critical * noise
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

/// The columns of the layout, less the means of their rounds: one for each target, and the speed where it is used.
#[derive(Clone, Debug)]
struct Columns {
    rounds: Rounds,
    /// Target of each value.
    of: Vec<usize>,
    /// Targets with values, in order.
    seen: Vec<usize>,
    /// Targets that rounds connect have the same number.
    component: Vec<usize>,
    /// For each value its entry in each column.
    rows: Vec<Vec<f64>>,
    /// Inverse of the columns' products.
    inverse: Vec<Vec<f64>>,
}

impl Columns {
    fn new(known: &[&RoundValue], targets: usize) -> Self {
        let rounds = Rounds::new(known);
        let of: Vec<usize> = known.iter().map(|one| one.target).collect();
        let seen: Vec<usize> = of.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let column = |target: usize| of.iter().map(|own| f64::from(u8::from(*own == target))).collect();
        let columns: Vec<Vec<f64>> = (0..targets).map(|target| rounds.centred(column(target))).collect();
        let rows = (0..of.len()).map(|index| columns.iter().map(|column| column[index]).collect()).collect();
        let component = components(known, targets);
        let mut all = Self { rounds, of, seen, component, rows, inverse: Vec::new() };
        all.inverse = inverse(all.products());
        all
    }

    /// The same with another column.
    fn with(mut self, column: Vec<f64>) -> Self {
        let column = self.rounds.centred(column);
        self.rows.iter_mut().zip(column).for_each(|(row, value)| row.push(value));
        self.inverse = inverse(self.products());
        self
    }

    /// Of the residuals of rounds and targets; `None` where there are too few, or fewer than two targets.
    fn freedom(&self) -> Option<usize> {
        let parts: BTreeSet<usize> = self.seen.iter().map(|target| self.component[*target]).collect();
        let spent = self.rounds.sizes.len() + self.seen.len() - parts.len();
        let freedom = self.of.len().checked_sub(spent)?;
        (freedom >= FEWEST_FREEDOM && self.seen.len() > 1).then_some(freedom)
    }

    /// The columns' products. Columns of targets add up to nothing in each component, so one more equation fixes their sum
    /// there, which no difference depends on; a target without values has one to itself.
    fn products(&self) -> Vec<Vec<f64>> {
        let all = self.rows.first().map_or(self.component.len(), Vec::len);
        let mut products = vec![vec![0.0; all]; all];
        for row in &self.rows {
            for (line, factor) in products.iter_mut().zip(row) {
                line.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
            }
        }
        for (one, number) in self.component.iter().enumerate() {
            for (other, same) in self.component.iter().enumerate() {
                products[one][other] += f64::from(u8::from(number == same));
            }
        }
        products
    }

    fn coefficients(&self, values: &[f64]) -> Vec<f64> {
        let mut products = vec![0.0; self.inverse.len()];
        for (row, value) in self.rows.iter().zip(values) {
            products.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry * value);
        }
        self.inverse.iter().map(|line| dot(line, &products)).collect()
    }

    fn residuals(&self, values: &[f64]) -> Vec<f64> {
        let effects = self.coefficients(values);
        self.rows.iter().zip(values).map(|(row, value)| value - dot(row, &effects)).collect()
    }

    /// The variance of each target's noise: what makes the expected squares of residuals those that were seen. The
    /// pooled one where residuals do not tell targets apart, as of two.
    fn own_variances(&self, left: &[f64], targets: usize, pooled: f64) -> Vec<f64> {
        let place = |target: usize| self.seen.binary_search(&target).unwrap_or(0);
        let mut expected = vec![vec![0.0; self.seen.len()]; self.seen.len()];
        let mut sums = vec![0.0; self.seen.len()];
        for (one, row) in self.rows.iter().enumerate() {
            sums[place(self.of[one])] += left[one] * left[one];
            let by: Vec<f64> = self.inverse.iter().map(|line| dot(line, row)).collect();
            for (other, column) in self.rows.iter().enumerate() {
                // A residual is the noise of all values, each times this.
                let factor =
                    f64::from(u8::from(one == other)) - self.rounds.share(one, other) - dot(&by, column);
                expected[place(self.of[one])][place(self.of[other])] += factor * factor;
            }
        }
        let mut own = vec![pooled; targets];
        if let Some(solved) = solve(expected, sums) {
            self.seen.iter().zip(solved).for_each(|(target, variance)| own[*target] = variance.max(0.0));
        }
        own
    }
}

/// Which values are of one round.
#[derive(Clone, Debug)]
struct Rounds {
    /// For each value the index of its round.
    of: Vec<usize>,
    /// How many values each has.
    sizes: Vec<f64>,
}

impl Rounds {
    fn new(known: &[&RoundValue]) -> Self {
        let numbers: BTreeSet<u32> = known.iter().map(|one| one.round).collect();
        let numbers: Vec<u32> = numbers.into_iter().collect();
        let index = |one: &&RoundValue| numbers.binary_search(&one.round).unwrap_or(0);
        let of: Vec<usize> = known.iter().map(index).collect();
        let mut sizes = vec![0.0; numbers.len()];
        of.iter().for_each(|round| sizes[*round] += 1.0);
        Self { of, sizes }
    }

    /// A column less the means of its rounds.
    fn centred(&self, mut column: Vec<f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.sizes.len()];
        self.of.iter().zip(&column).for_each(|(round, value)| sums[*round] += value);
        column
            .iter_mut()
            .zip(&self.of)
            .for_each(|(value, round)| *value -= sums[*round] / self.sizes[*round]);
        column
    }

    /// What one value takes of another by the mean of their round; 0 where they are of different ones.
    fn share(&self, one: usize, other: usize) -> f64 {
        if self.of[one] == self.of[other] { 1.0 / self.sizes[self.of[one]] } else { 0.0 }
    }
}

/// For each target a number that those share which rounds connect.
fn components(known: &[&RoundValue], targets: usize) -> Vec<usize> {
    let mut component: Vec<usize> = (0..targets).collect();
    for one in known {
        for other in known.iter().filter(|other| other.round == one.round) {
            let (from, to) = (component[one.target], component[other.target]);
            component.iter_mut().filter(|number| **number == from).for_each(|number| *number = to);
        }
    }
    component
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn squares(values: &[f64]) -> f64 {
    dot(values, values)
}

/// The inverse of a positive definite matrix (Gauss and Jordan).
fn inverse(mut left: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let all = left.len();
    let unit = |row: usize| (0..all).map(|column| f64::from(u8::from(row == column))).collect();
    let mut right: Vec<Vec<f64>> = (0..all).map(unit).collect();
    for pivot in 0..all {
        let by = left[pivot][pivot];
        left[pivot].iter_mut().chain(&mut right[pivot]).for_each(|value| *value /= by);
        let lines = (left[pivot].clone(), right[pivot].clone());
        for row in (0..all).filter(|row| *row != pivot) {
            let by = left[row][pivot];
            left[row].iter_mut().zip(&lines.0).for_each(|(value, of)| *value -= by * of);
            right[row].iter_mut().zip(&lines.1).for_each(|(value, of)| *value -= by * of);
        }
    }
    right
}

/// Solves equations; `None` where they do not have one solution.
fn solve(mut left: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    const ZERO: f64 = 1e-6;

    let all = right.len();
    for pivot in 0..all {
        let best = (pivot..all).max_by(|a, b| left[*a][pivot].abs().total_cmp(&left[*b][pivot].abs()))?;
        left.swap(pivot, best);
        right.swap(pivot, best);
        let line = left[pivot].clone();
        if line[pivot].abs() < ZERO {
            return None;
        }
        for row in (0..all).filter(|row| *row != pivot) {
            let by = left[row][pivot] / line[pivot];
            left[row].iter_mut().zip(&line).for_each(|(value, of)| *value -= by * of);
            right[row] -= by * right[pivot];
        }
    }
    Some((0..all).map(|row| right[row] / left[row][row]).collect())
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::*;

    use super::*;
    use crate::simulate::{Drift, Tails, blocks, coverage, noise, normal};

    const DRIFTS: [Drift; 4] = [Drift::None, Drift::Linear, Drift::Walk, Drift::Steps];

    /// A case whose truth is known.
    #[derive(Clone, Copy, Debug)]
    struct Truth<'a> {
        /// Of each target: its factor, and its noise.
        targets: &'a [(f64, f64)],
        rounds: u32,
        drift: Drift,
        tails: Tails,
        /// What a machine of double speed makes of a value, as a power of two.
        speed: f64,
    }

    /// Equal targets.
    const EQUAL: Truth<'_> =
        Truth { targets: &[(1.0, 0.03); 5], rounds: 4, drift: Drift::Walk, tails: Tails::Bursts, speed: 0.0 };

    /// The rounds' orders are drawn in pairs that mirror each other.
    fn simulated(truth: Truth<'_>, seed: u64) -> Vec<RoundValue> {
        let mut levels = blocks(seed ^ 0x5eed, truth.drift, 0.0);
        let mut rng = Rng::with_seed(seed);
        let mut order: Vec<usize> = (0..truth.targets.len()).collect();
        let mut values = Vec::new();
        for round in 0..truth.rounds {
            if round % 2 == 0 {
                rng.shuffle(&mut order);
            } else {
                order.reverse();
            }
            for target in order.iter().copied() {
                let (factor, deviation) = truth.targets[target];
                let fast = 0.06 * normal(&mut rng);
                let level = if matches!(truth.tails, Tails::Bursts) { levels.next().unwrap() } else { 1.0 };
                let noise = deviation * noise(&mut rng, truth.tails);
                let value = level * factor * (noise + truth.speed * fast).exp();
                // The probe is not exact either.
                let speed = Some(400.0 * (fast + 0.005 * normal(&mut rng)).exp());
                values.push(RoundValue { round, target, value, speed });
            }
        }
        values
    }

    fn pairs(targets: usize) -> impl Iterator<Item = (usize, usize)> {
        (0..targets).flat_map(move |a| (a + 1..targets).map(move |b| (a, b)))
    }

    /// Whether any pair is called different.
    fn any_different(truth: Truth<'_>, seed: u64) -> bool {
        let all = truth.targets.len();
        let fitted = TwoWay::fit(&simulated(truth, seed), all).unwrap();
        pairs(all).any(|(a, b)| fitted.contrast(a, b).unwrap().is_different())
    }

    /// Cases of every kind: rounds, tails, drift, with and without a speed that matters.
    fn mixed(seed: u64) -> Truth<'static> {
        let pick = |from: u64, of: u64| usize::try_from(seed / from % of).unwrap();
        Truth {
            drift: DRIFTS[pick(1, 4)],
            rounds: [3, 4, 6][pick(4, 3)],
            tails: [Tails::Bursts, Tails::Normal, Tails::Student3][pick(12, 3)],
            speed: [0.0, -1.0][pick(36, 2)],
            ..EQUAL
        }
    }

    #[test]
    fn one_of_equal_targets_is_called_different_in_at_most_one_of_twenty_cases() {
        let called = coverage(2000, |seed| any_different(mixed(seed), seed));
        assert!(called <= 0.05, "{called}");
        assert!(called >= 0.015, "{called}: far more careful than promised, which costs power");
    }

    #[test]
    fn a_noisy_target_is_not_called_different_for_its_noise() {
        let targets = [(1.0, 0.06), (1.0, 0.03), (1.0, 0.03), (1.0, 0.03), (1.0, 0.03)];
        let called = coverage(1000, |seed| any_different(Truth { targets: &targets, ..mixed(seed) }, seed));
        assert!(called <= 0.06, "{called}");
    }

    #[test]
    fn what_each_pair_by_itself_does_not_find_is_found() {
        let targets = [(1.0, 0.03), (1.15, 0.03), (1.0, 0.03), (1.0, 0.03), (1.0, 0.03)];
        let mut alone = 0;
        let found = coverage(300, |seed| {
            let values = simulated(Truth { targets: &targets, rounds: 3, ..EQUAL }, seed);
            let of = |target: usize| values.iter().filter(move |one| one.target == target);
            // Each pair by itself, corrected by Holm: four of ten differ, so seven are left at the last of them.
            let pairs: Vec<f64> = of(0).zip(of(1)).map(|(a, b)| (b.value / a.value).ln()).collect();
            alone += u32::from(!crate::student::student(&pairs, 0.05 / 7.0).contains(0.0));
            let seen = TwoWay::fit(&values, 5).unwrap().contrast(0, 1).unwrap();
            seen.is_different() && seen.ratio > 1.0
        });
        let alone = f64::from(alone) / 300.0;
        assert!(found >= 0.55 && alone <= 0.5 * found, "{found} together, {alone} alone");
    }

    #[test]
    fn the_speed_of_the_machine_is_taken_out_where_it_matters() {
        let width = |speed: f64, is_known: bool| {
            let widths = (0..40).map(|seed| {
                let mut values = simulated(Truth { speed, rounds: 6, tails: Tails::Normal, ..EQUAL }, seed);
                values.iter_mut().filter(|_| !is_known).for_each(|one| one.speed = None);
                let seen = TwoWay::fit(&values, 5).unwrap().contrast(0, 1).unwrap();
                (seen.interval.high / seen.interval.low).ln()
            });
            widths.sum::<f64>() / 40.0
        };
        let (known, unknown) = (width(-1.0, true), width(-1.0, false));
        assert!(known < 0.6 * unknown, "{known} {unknown}");
        let (known, unknown) = (width(0.0, true), width(0.0, false));
        assert!(
            (known / unknown - 1.0).abs() < 0.03,
            "{known} {unknown}: it costs nothing where it does not"
        );
    }

    #[test]
    fn the_true_ratios_of_all_pairs_are_in_their_intervals_together() {
        let targets = [(1.0, 0.03), (0.9, 0.03), (1.3, 0.03), (2.0, 0.03)];
        let covered = coverage(500, |seed| {
            let fitted =
                TwoWay::fit(&simulated(Truth { targets: &targets, ..mixed(seed) }, seed), 4).unwrap();
            pairs(4)
                .all(|(a, b)| fitted.contrast(a, b).unwrap().interval.contains(targets[b].0 / targets[a].0))
        });
        assert!(covered >= 0.93, "{covered}");
    }

    #[test]
    fn the_min_detectable_difference_is_found_in_nine_of_ten() {
        let plain = Truth { tails: Tails::Normal, rounds: 6, ..EQUAL };
        let detectable: Vec<f64> = (0..100)
            .map(|seed| {
                TwoWay::fit(&simulated(plain, seed), 5).unwrap().contrast(0, 1).unwrap().min_detectable
            })
            .collect();
        let factor = 1.0 + crate::resample::average(&detectable);
        let targets = [(1.0, 0.03), (factor, 0.03), (1.0, 0.03), (1.0, 0.03), (1.0, 0.03)];
        let found = coverage(300, |seed| {
            let values = simulated(Truth { targets: &targets, ..plain }, seed);
            TwoWay::fit(&values, 5).unwrap().contrast(0, 1).unwrap().is_different()
        });
        assert!((0.83..0.97).contains(&found), "{found} of {factor}");
    }

    fn of_rounds(rounds: &[&[(usize, f64)]]) -> Vec<RoundValue> {
        let one = |(round, values): (u32, &&[(usize, f64)])| {
            let value = move |(target, value): &(usize, f64)| RoundValue {
                round,
                target: *target,
                value: *value,
                speed: None,
            };
            values.iter().map(value).collect::<Vec<_>>()
        };
        (0..).zip(rounds).flat_map(one).collect()
    }

    #[test]
    fn of_two_targets_it_is_students_t_of_the_pairs() {
        // Logarithms of the ratios 1, 2, 3, 4 (in hundredths): mean 2.5, error 0.6455, t of three degrees 3.182.
        let rounds: Vec<[(usize, f64); 2]> =
            (1..=4).map(|value| [(0, 7.0), (1, 7.0 * (f64::from(value) / 100.0).exp())]).collect();
        let rounds: Vec<&[(usize, f64)]> = rounds.iter().map(<[_; 2]>::as_slice).collect();
        let fitted = TwoWay::fit(&of_rounds(&rounds), 2).unwrap();
        let seen = fitted.contrast(0, 1).unwrap();
        assert_eq!(fitted.freedom(), 3);
        assert!((seen.ratio.ln() - 0.025).abs() < 1e-12, "{seen:?}");
        assert!((seen.interval.low.ln() - 0.025 + 3.182_446 * 0.006_455).abs() < 2e-5, "{seen:?}");
    }

    #[test]
    fn a_round_without_a_target_is_of_use_for_the_others() {
        let whole: &[(usize, f64)] = &[(0, 1.0), (1, 2.0), (2, 4.1)];
        let values = of_rounds(&[whole, &[(0, 1.1), (1, 2.1)], &[(1, 1.9), (2, 4.0)], whole]);
        let seen = TwoWay::fit(&values, 3).unwrap().contrast(0, 2).unwrap();
        assert!(seen.interval.contains(4.1) && seen.interval.low > 3.0, "{seen:?}");
    }

    #[test]
    fn targets_that_no_rounds_connect_are_not_compared() {
        let left: &[(usize, f64)] = &[(0, 1.0), (1, 1.1)];
        let right: &[(usize, f64)] = &[(2, 1.0), (3, 1.2)];
        let fitted = TwoWay::fit(&of_rounds(&[left, right, left, right]), 5).unwrap();
        assert!(fitted.contrast(0, 1).is_some() && fitted.contrast(2, 3).is_some());
        assert_eq!((fitted.contrast(1, 2), fitted.contrast(0, 4), fitted.contrast(1, 1)), (None, None, None));
        assert!(TwoWay::fit(&of_rounds(&[left, left]), 2).is_none(), "one degree of freedom");
    }

    #[test]
    fn equal_values_without_noise_do_not_differ() {
        let same: &[(usize, f64)] = &[(0, 2.0), (1, 2.0)];
        let seen = TwoWay::fit(&of_rounds(&[same; 4]), 2).unwrap().contrast(0, 1).unwrap();
        assert_eq!((seen.ratio, seen.min_detectable, seen.is_different()), (1.0, 0.0, false));
    }

    proptest! {
        #[test]
        fn any_values_give_an_interval_around_the_ratio_or_nothing(
            values in prop::collection::vec((0_u32..4, 0_usize..4, prop::num::f64::ANY, prop::num::f64::ANY), 0..20),
        ) {
            let one = |(round, target, value, speed)| RoundValue { round, target, value, speed: Some(speed) };
            let values: Vec<RoundValue> = values.into_iter().map(one).collect();
            if let Some(fitted) = TwoWay::fit(&values, 4) {
                for (a, b) in pairs(4) {
                    if let Some(seen) = fitted.contrast(a, b) {
                        prop_assert!(seen.interval.low <= seen.ratio && seen.ratio <= seen.interval.high, "{seen:?}");
                        prop_assert!(seen.min_detectable >= 0.0, "{seen:?}");
                    }
                }
            }
        }
    }
}
