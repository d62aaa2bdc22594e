//! What a caller learns of a suite or a comparison beside its record: how far it is, and how it ended.

use std::time::Duration;

use courser_record::lab::Lab;

use crate::suite::CaseSpec;

/// How a suite or a comparison ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every cell was measured, or cannot be.
    Complete,
    /// A cell failed.
    Failed,
    /// Nothing was measured, or nothing that the suite's only target could be judged by.
    Inconclusive,
    /// By an interrupt.
    Cut,
}

/// Shows a suite while it runs.
pub trait Progress {
    /// The suite begins: its cases, and the number of targets of a case that names none of its own.
    fn begin(&mut self, cases: &[CaseSpec], targets: usize);
    /// A case begins.
    fn case(&mut self, spec: &CaseSpec);
    /// A block begins.
    fn block(&mut self, spec: &CaseSpec, target: &str, round: u32);
    /// Part `done` of `of` of a suite without a network begins.
    fn part(&mut self, done: usize, of: usize, what: &str);
    /// All blocks of a case are recorded.
    fn done(&mut self, spec: &CaseSpec, lab: &Lab);
    /// The suite is over.
    fn end(&mut self);
}

/// Shows a comparison while it runs.
pub trait ComparisonProgress {
    /// A comparison of at most this time begins.
    fn begin(&mut self, time: Duration);
    /// A block of a target begins, so long after the start.
    fn at(&mut self, time: Duration, target: &str);
    /// A comparison is over.
    fn end(&mut self);
}
