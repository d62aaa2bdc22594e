//! A confidence interval.

/// The level of every interval of this crate.
pub const LEVEL: f64 = 0.95;

/// A 95 % interval: what the numbers say is compatible with everything between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// Lower end, in the unit of what was estimated.
    pub low: f64,
    /// Upper end, in the same unit.
    pub high: f64,
}

impl ConfidenceInterval {
    /// Whether `value` lies between the ends, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// How far the ends lie from their middle, as a share of the middle: 0.03 is "3 % either way".
    pub fn either_way(&self) -> f64 {
        (self.high - self.low) / (self.high + self.low).abs()
    }
}
