//! The document itself: what it is, where it comes from, what is in it.

use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Share};
use crate::format::{FORMAT, VERSION};
use crate::machine::Machine;
use crate::run::Run;

/// Everything that is known about a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Record {
    /// Always `courser-record`.
    pub format: String,
    /// Version of this format: 2.
    pub version: u32,
    /// Who measured, when and where; of a merged record the generator with the first share.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// What was asked.
    pub experiment: Experiment,
    /// What came out: one run of a plain load, one per trial of a search.
    pub runs: Vec<Run>,
    /// What a search found, one for each rule; empty when none was asked.
    #[serde(default)]
    pub found: Vec<Found>,
    /// The records that this one was merged from; empty when it was measured as it is.
    #[serde(default)]
    pub sources: Vec<Source>,
}

impl Record {
    /// A record without runs.
    pub fn new(envelope: Envelope, experiment: Experiment) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            envelope,
            experiment,
            runs: Vec::new(),
            found: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Whether every run may be believed. Of no run at all nothing may.
    pub fn is_valid(&self) -> bool {
        !self.runs.is_empty() && self.runs.iter().all(|run| run.verdict.valid)
    }
}

/// What stands around a measurement, of a run or of a suite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Envelope {
    /// The program that measured.
    pub tool: Tool,
    /// When the measurement began, RFC 3339, UTC.
    pub created: String,
    /// The program's arguments, its name first.
    pub command_line: Vec<String>,
    /// What ended the measurement before its time, for instance Ctrl-C; null when it ran to its end.
    pub cut: Option<String>,
    /// The machine that the generator ran on.
    pub machine: Machine,
}

/// A program and which one exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// Its name, `courser-bench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit that it was built from, as `git describe --always --dirty` names it: `9a4115d-dirty`; null when
    /// unknown, and in a debug build.
    pub commit: Option<String>,
    /// SHA-256 of the program's file, hexadecimal; null when unknown, and in records that do not have it.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// What a search found for a rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Found {
    /// The rule, as it was given.
    pub rule: String,
    /// The highest rate that satisfies it, arrivals a second; null when it is not known.
    pub rate: Option<f64>,
    /// Lower end of its 95 % interval; without a rate, one that satisfies the rule.
    pub rate_low: Option<f64>,
    /// Upper end of its 95 % interval; without a rate, one that breaks the rule.
    pub rate_high: Option<f64>,
    /// A remark: never exceeded, nothing satisfied it, generator-bound above a rate.
    pub note: Option<String>,
}

/// One generator's record, of those that were merged: all but its figures, which are in the sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Source {
    /// What generators and findings of this source are labelled with.
    pub label: String,
    /// Who measured, when and where.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// Its part of the schedule.
    pub share: Option<Share>,
}
