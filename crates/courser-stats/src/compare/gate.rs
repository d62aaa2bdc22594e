//! Whether B is above A by more than a limit: what a check of a change asks.
//!
//! The same sequences as a [`Comparison`]'s, with A raised by the limit. Of each limit an error of 5 % by the number of limits
//! that are checked together is allowed, on one side: so a change of just the limit is called beyond it in at most 5 % of
//! checks, and none at all far less often.

use super::{Arm, Comparison, Plan, Verdict};

/// A check that is under way.
#[derive(Clone, Debug)]
pub struct Gate {
    limit: f64,
    comparison: Comparison,
}

/// What the blocks so far support.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateVerdict {
    /// B is above A by more than the limit.
    Beyond,
    /// It is not.
    Within,
    /// Not known: a difference this much beyond the limit would have been seen in nine of ten cases (0.02 is 2 %); none
    /// where there are too few blocks for that.
    Unknown {
        /// The difference, relative to A.
        detectable: Option<f64>,
    },
}

impl Gate {
    /// A check of one of `limits` limits; `limit` is relative, above -1: 0.03 is 3 %.
    pub fn new(limit: f64, sequences: usize, limits: usize) -> Self {
        Self { limit, comparison: Comparison::new(Plan::of_limits(sequences, limits)) }
    }

    /// As [`Comparison::push`].
    pub fn push(&mut self, target: Arm, value: f64) {
        let by = if target == Arm::A { 1.0 + self.limit } else { 1.0 };
        self.comparison.push(target, value * by);
    }

    /// Whether more blocks are of no use.
    pub fn is_finished(&self) -> bool {
        self.comparison.is_finished()
    }

    /// What is known. It may be asked after each block, and acted upon.
    pub fn verdict(&self) -> GateVerdict {
        match self.comparison.verdict() {
            Verdict::Different { ratio, .. } if ratio > 1.0 => GateVerdict::Beyond,
            Verdict::Different { .. } => GateVerdict::Within,
            Verdict::NoDifferenceSeen { min_detectable, .. } => {
                let detectable = (1.0 + self.limit) * (1.0 + min_detectable) - 1.0;
                GateVerdict::Unknown { detectable: Some(detectable) }
            }
            Verdict::TooFew { .. } => GateVerdict::Unknown { detectable: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::order;
    use crate::simulate::{Drift, blocks, coverage};

    const DRIFTS: [Drift; 4] = [Drift::None, Drift::Linear, Drift::Walk, Drift::Steps];

    /// Checks a line against a fresh gate's 3 % until it is known: whether it is beyond.
    fn is_beyond(fresh: &Gate, seed: u64, ratio: f64) -> bool {
        let drift = DRIFTS[usize::try_from(seed % 4).unwrap()];
        let mut gate = fresh.clone();
        for (target, value) in order(seed).zip(blocks(seed ^ 0x5eed, drift, 0.025)) {
            gate.push(target, if target == Arm::B { value * ratio } else { value });
            if gate.is_finished() {
                break;
            }
        }
        gate.verdict() == GateVerdict::Beyond
    }

    #[test]
    fn identical_programs_are_beyond_the_limit_in_at_most_one_of_twenty_checks() {
        let (one, of_eight) = (Gate::new(0.03, 36, 1), Gate::new(0.03, 36, 8));
        let plain = coverage(200, |seed| is_beyond(&one, seed, 1.0));
        assert!(plain <= 0.05, "{plain}");
        let any = coverage(25, |seed| (0..8).any(|line| is_beyond(&of_eight, seed * 8 + line, 1.0)));
        assert!(any <= 0.05, "{any}");
    }

    #[test]
    fn a_change_of_just_the_limit_is_beyond_it_in_at_most_one_of_twenty_checks() {
        let fresh = Gate::new(0.03, 36, 1);
        let just = coverage(300, |seed| is_beyond(&fresh, seed, 1.03));
        assert!((0.01..=0.06).contains(&just), "{just}");
    }

    #[test]
    fn a_change_of_five_percent_is_beyond_three_in_eighteen_of_twenty_checks() {
        let fresh = Gate::new(0.03, 36, 1);
        let found = coverage(200, |seed| is_beyond(&fresh, seed, 1.05));
        assert!(found >= 0.9, "{found}");
    }

    #[test]
    fn a_few_blocks_are_not_enough_to_know() {
        let mut gate = Gate::new(0.03, 36, 1);
        order(1).take(8).for_each(|target| gate.push(target, 1.0));
        assert_eq!(gate.verdict(), GateVerdict::Unknown { detectable: None });
    }
}
