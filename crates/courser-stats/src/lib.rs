//! What samples support: histograms, counts, intervals, comparisons, searches.
//!
//! Pure: no clock, no socket, no runtime; randomness comes as a seed. So the judgement itself can be tried on
//! simulated samples whose truth is known.

pub mod compare;
pub mod confidence;
pub mod confidence_interval;
pub mod counts;
pub mod fit;
pub mod histogram;
pub mod holm;
pub mod modes;
pub mod number;
mod resample;
pub mod rule;
pub mod search;
#[cfg(test)]
mod simulate;
mod special;
mod student;
mod studentised_range;
pub mod two_way;
pub mod unpaired;

pub use compare::{Arm, Comparison, Plan, Verdict};
pub use confidence_interval::ConfidenceInterval;
pub use counts::Counts;
pub use fit::{Fit, Prediction, coefficients, fit, misfit};
pub use histogram::Histogram;
pub use holm::holm;
pub use modes::{Mode, Shift, Timer};
pub use rule::{Crossed, Limit, Observation, Outcome, Rule, RuleError, Threshold};
pub use search::{Finding, Scope, Search, Step, Trial};
pub use two_way::{Contrast, RoundValue, TwoWay};
pub use unpaired::{Unpaired, unpaired};
