//! The columns of the layout: which values a target, a round and what else is known of blocks have a part in.

use std::collections::BTreeSet;

use super::algebra::{dot, inverse, solve};
use super::{FEWEST_FREEDOM, RoundValue};

/// The columns of the layout, less the means of their rounds: one for each target, and the speed where it is used.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) rounds: Rounds,
    /// Target of each value.
    pub(super) of: Vec<usize>,
    /// Targets with values, in order.
    pub(super) seen: Vec<usize>,
    /// Targets that rounds connect have the same number.
    pub(super) component: Vec<usize>,
    /// For each value its entry in each column.
    pub(super) rows: Vec<Vec<f64>>,
    /// Inverse of the columns' products.
    pub(super) inverse: Vec<Vec<f64>>,
}

impl Columns {
    pub(super) fn new(known: &[&RoundValue], targets: usize) -> Self {
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
    pub(super) fn with(mut self, column: Vec<f64>) -> Self {
        let column = self.rounds.centred(column);
        self.rows.iter_mut().zip(column).for_each(|(row, value)| row.push(value));
        self.inverse = inverse(self.products());
        self
    }

    /// Of the residuals of rounds and targets; `None` where there are too few, or fewer than two targets.
    pub(super) fn freedom(&self) -> Option<usize> {
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

    pub(super) fn coefficients(&self, values: &[f64]) -> Vec<f64> {
        let mut products = vec![0.0; self.inverse.len()];
        for (row, value) in self.rows.iter().zip(values) {
            products.iter_mut().zip(row).for_each(|(sum, entry)| *sum += entry * value);
        }
        self.inverse.iter().map(|line| dot(line, &products)).collect()
    }

    pub(super) fn residuals(&self, values: &[f64]) -> Vec<f64> {
        let effects = self.coefficients(values);
        self.rows.iter().zip(values).map(|(row, value)| value - dot(row, &effects)).collect()
    }

    /// The variance of each target's noise: what makes the expected squares of residuals those that were seen. The
    /// pooled one where residuals do not tell targets apart, as of two.
    pub(super) fn own_variances(&self, left: &[f64], targets: usize, pooled: f64) -> Vec<f64> {
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
pub(super) struct Rounds {
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
    pub(super) fn centred(&self, mut column: Vec<f64>) -> Vec<f64> {
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
