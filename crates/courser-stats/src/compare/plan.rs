//! When a comparison is looked at, and how much error each look may spend.

use super::ranks;
use crate::confidence_interval::LEVEL;
use crate::number::length;
use crate::special::{bisect, normal_above};

/// The share of a promised error that is spent: the rest is a margin for ranks of few sequences, which walk a little wider
/// than the Brownian motion that the levels are from.
const SPENT: f64 = 0.8;

/// How long a comparison runs at most, and how sure each look has to be. Costly to make, cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// For each number of sequences from one on: which pairwise mean from either end bounds the interval.
    ranks: Vec<Option<usize>>,
}

impl Default for Plan {
    /// 24 sequences, 96 blocks: with 2.5 % of noise from block to block, bursts in a few of a hundred blocks and drift, a
    /// difference of 3 % is found in nine of ten cases.
    fn default() -> Self {
        Self::new(24)
    }
}

impl Plan {
    /// Most sequences that a plan may have: what exact ranks take a moment for.
    pub const MOST: usize = 100;

    /// A plan that is looked at after each sequence, up to `sequences` (6 to [`Self::MOST`]; others are moved there).
    ///
    /// The error spent up to `k` of `n` sequences is 4 % (of the 5 % that are promised) of `(k/n)²` (Kim and DeMets, Biometrika 74, 1987): a big
    /// difference is found after half of them, and the last look loses little against a single one.
    pub fn new(sequences: usize) -> Self {
        Self::at(sequences, 1.0 - LEVEL)
    }

    /// The same for one of so many limits, each on one side ([`super::Gate`]): 5 % among all of them.
    pub fn of_limits(sequences: usize, limits: usize) -> Self {
        Self::at(sequences, 2.0 * (1.0 - LEVEL) / length(limits.max(1)))
    }

    /// A plan with this two-sided error, between 0 and 1.
    fn at(sequences: usize, error: f64) -> Self {
        let error = SPENT * error;
        let sequences = sequences.clamp(ranks_needed(error), Self::MOST);
        let spent = |k: usize| error * (length(k) / length(sequences)).powi(2);
        let first = (1..=sequences).find(|k| ranks_needed(spent(*k)) <= *k).unwrap_or(sequences);
        let looks: Vec<(usize, f64)> = (first..=sequences).map(|k| (k, spent(k))).collect();
        let mut ranks = vec![None; sequences];
        for ((k, _), level) in looks.iter().zip(levels(&looks)) {
            ranks[k - 1] = ranks::critical(*k, level);
        }
        Self { ranks }
    }

    /// How many sequences it has.
    pub fn sequences(&self) -> usize {
        self.ranks.len()
    }

    /// After how many sequences something can be known.
    pub fn first_look(&self) -> usize {
        self.ranks.iter().position(Option::is_some).map_or(self.ranks.len(), |index| index + 1)
    }

    pub(super) fn rank(&self, sequences: usize) -> Option<usize> {
        self.ranks.get(sequences.checked_sub(1)?).copied().flatten()
    }
}

/// How many signs it takes before all of them alike are as rare as `error`.
fn ranks_needed(error: f64) -> usize {
    (1..64)
        .find(|count| 0.5_f64.powi(count - 1) <= error)
        .and_then(|count| usize::try_from(count).ok())
        .unwrap_or(64)
}

/// The two-sided level of each look `(sequences, error spent so far)` at which all looks together spend just that: the sum
/// of the sequences' numbers walks like a Brownian motion, whose chance of leaving at each look is integrated step by step
/// (Armitage, McPherson and Rowe, JRSS A 132, 1969).
fn levels(looks: &[(usize, f64)]) -> Vec<f64> {
    let mut walk = Walk::default();
    let mut before = (0, 0.0);
    looks
        .iter()
        .map(|&(sequences, spent)| {
            let border = walk.border(length(sequences - before.0), spent - before.1);
            walk = walk.within(length(sequences - before.0), border);
            before = (sequences, spent);
            2.0 * normal_above(border / length(sequences).sqrt())
        })
        .collect()
}

/// Where the walk is, as far as it has not left: points, and the probability around each.
struct Walk(Vec<(f64, f64)>);

impl Default for Walk {
    fn default() -> Self {
        Self(vec![(0.0, 1.0)])
    }
}

impl Walk {
    /// The border that the walk leaves with probability `chance` after a step of this variance.
    fn border(&self, variance: f64, chance: f64) -> f64 {
        let outside = |border: f64| -> f64 {
            let beyond = |&(at, weight): &(f64, f64)| {
                weight
                    * (normal_above((border - at) / variance.sqrt())
                        + normal_above((border + at) / variance.sqrt()))
            };
            self.0.iter().map(beyond).sum()
        };
        bisect(0.0, 100.0, |border| outside(border) > chance)
    }

    /// The walk after that step, where it stays within the border.
    fn within(&self, variance: f64, border: f64) -> Self {
        const POINTS: u32 = 121;

        let width = 2.0 * border / f64::from(POINTS);
        let density = |at: f64| -> f64 {
            let from =
                |&(before, weight): &(f64, f64)| weight * (-(at - before).powi(2) / (2.0 * variance)).exp();
            self.0.iter().map(from).sum::<f64>() / (std::f64::consts::TAU * variance).sqrt()
        };
        let point = |index: u32| -border + (f64::from(index) + 0.5) * width;
        Self((0..POINTS).map(point).map(|at| (at, density(at) * width)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_those_of_the_literature() {
        // Pocock's five looks at 5 %: each at z = 2.413 (Jennison and Turnbull, Group Sequential Methods, table 2.1),
        // which spends 0.0158, 0.0274, 0.0363, 0.0437 and 0.05 on the way.
        let spent = [0.015_82, 0.027_39, 0.036_58, 0.044_05, 0.05];
        let looks: Vec<(usize, f64)> =
            spent.iter().enumerate().map(|(index, spent)| (index + 1, *spent)).collect();
        for level in levels(&looks) {
            assert!((level - 0.0158).abs() < 0.0012, "{level}");
        }
    }

    #[test]
    fn later_looks_may_spend_more() {
        let looks: Vec<(usize, f64)> = (8..=20).map(|k| (k, 0.05 * (length(k) / 20.0).powi(2))).collect();
        let levels = levels(&looks);
        assert!((levels[0] - 0.008).abs() < 1e-6, "{levels:?}");
        assert!(levels[12] > 0.025 && levels[12] < 0.05, "{levels:?}");
    }

    #[test]
    fn a_plan_of_any_length_can_find_something() {
        for sequences in [0, 6, 7, 8, 12, 40, 1000] {
            let plan = Plan::new(sequences);
            assert!(plan.rank(plan.sequences()).is_some(), "{plan:?}");
            assert!(plan.first_look() <= plan.sequences() && plan.rank(plan.first_look()).is_some());
            assert_eq!(plan.rank(plan.first_look() - 1), None);
        }
    }
}
