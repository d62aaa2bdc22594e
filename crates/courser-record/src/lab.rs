//! The record of a suite: one published experiment, run on several terminators.
//!
//! A case is a row of the experiment, a target is a terminator with a preset (stock or tuned), a cell is one of each. Cells
//! are measured in interleaved blocks. What can be derived (medians, intervals, who is first) is not in here: a
//! report derives it, so that it can be checked and derived anew.

mod case;
mod cell;
mod layout;

use serde::{Deserialize, Serialize};

pub use case::{Case, ControlRatio, Era, Limit, LimitPart, Measure};
pub use cell::{
    Block, Cell, CellState, ClientVerified, Figure, File, HostNoise, Profile, ServerShare, Symbol, Verified,
    WindowResult,
};
pub use layout::{Chart, ChartKind, Published, PublishedRow, Table, Value};

pub use crate::format::{LAB_FORMAT, LAB_SCHEMA, LAB_VERSION};
use crate::record::Envelope;
use crate::run::Finding;

/// A suite that was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lab {
    /// Always `courser-lab`.
    pub format: String,
    /// Version of this format: 3.
    pub version: u32,
    /// Who measured, when and where.
    #[serde(flatten)]
    pub envelope: Envelope,
    /// How long it took, of all its parts together.
    pub elapsed_us: u64,
    /// How the machine is tuned, beside what published experiments set.
    pub tuning: Vec<Tuning>,
    /// Who runs on which core.
    pub cores: Vec<CoreRole>,
    /// What the core map means for the figures, in words.
    pub cores_note: String,
    /// What is asked, and how the answer is laid out.
    pub suite: SuiteNotes,
    /// Seed of all randomness.
    pub seed: u64,
    /// Whether it was the quick variant.
    pub quick: bool,
    /// Round-trip time that was put between generator and target; null for none.
    pub rtt_us: Option<u64>,
    /// Whom it was asked of, in the order of a report.
    pub targets: Vec<TargetNotes>,
    /// The rows of the experiment.
    pub cases: Vec<Case>,
    /// What came out: one for each case and target that was asked for, those that cannot included.
    pub cells: Vec<Cell>,
    /// What a reader has to know about the whole suite.
    pub findings: Vec<Finding>,
}

impl Lab {
    /// The cell of a case and a target.
    pub fn cell(&self, case: &str, target: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.case == case && cell.target == target)
    }

    /// The case of this name.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

/// A setting of the machine that published experiments change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tuning {
    /// Its name: a sysctl, or a fact in words.
    pub name: String,
    /// What it is here; null when it cannot be read.
    pub here: Option<String>,
    /// What published experiments set; null when they do not mention it.
    pub published: Option<String>,
    /// Who set it so.
    pub source: Option<String>,
    /// Whether the two differ.
    pub differs: bool,
    /// What it does to a measurement.
    pub why: String,
    /// The command that would set it so; null when none does.
    pub command: Option<String>,
}

/// Who runs on a core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreRole {
    /// Its number.
    pub cpu: u32,
    /// What runs there: target, generator, origin, system.
    pub roles: Vec<String>,
}

/// What a suite asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuiteNotes {
    /// Its name, as in `courser-bench run NAME`.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// Who published the experiment, when, on what.
    pub source: String,
    /// The question, in a sentence.
    pub question: String,
    /// A paragraph for the reader of the result: what it means, where published figures differ and why.
    pub analysis: String,
    /// Tables, in the published layout, those of the modern era first.
    pub tables: Vec<Table>,
    /// Plots.
    pub charts: Vec<Chart>,
    /// Rows of the experiment that no case stands for, each with its reason.
    pub left_out: Vec<LeftOut>,
}

/// A row of a published experiment that is not measured at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The row.
    pub row: String,
    /// Why.
    pub reason: String,
}

/// A terminator with a preset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TargetNotes {
    /// What cells call it: `haproxy`, `haproxy:stock`.
    pub name: String,
    /// What it is called in a report.
    pub title: String,
    /// The file that ran; empty when it is not ours to start.
    pub program: String,
    /// SHA-256 of that file, hexadecimal; null when it cannot be read, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Its version, as it says.
    pub version: String,
    /// Its TLS library, as it says; null when it does not.
    pub tls_library: Option<String>,
    /// Stock or tuned; empty for one that is not ours to start.
    pub preset: String,
    /// How it works, in a sentence: threads, processes, what it shares.
    pub note: String,
}
