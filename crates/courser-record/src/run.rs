//! One load, its findings and its verdict.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::second::Second;
use crate::totals::Totals;
use crate::usage::{GeneratorUsage, ServerUsage, WireCost};

/// One load: the only one, a step of a staircase, or a trial of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Run {
    /// What tells it from the record's other runs.
    pub label: String,
    /// Arrivals a second that this generator was to make; null in a closed loop.
    pub offered_rate: Option<f64>,
    /// When it was measured.
    pub window: RunTimes,
    /// What came out, over the steady window alone.
    pub totals: Totals,
    /// What came out second by second, in all phases.
    pub seconds: Vec<Second>,
    /// What the server spent over the steady window; null when it was not watched.
    pub server: Option<ServerUsage>,
    /// What generators spent over the steady window: one, or of a merged record one per source.
    pub generators: Vec<GeneratorUsage>,
    /// What went over the wire; null when it was not counted.
    pub wire: Option<WireCost>,
    /// What a reader has to know.
    pub findings: Vec<Finding>,
    /// Whether it may be believed.
    pub verdict: Verdict,
}

/// Wall-clock times of a run: how it is laid beside logs and other generators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunTimes {
    /// Start of the first phase.
    pub start_unix_us: u64,
    /// Start of the steady window.
    pub steady_start_unix_us: u64,
    /// End of the steady window.
    pub steady_end_unix_us: u64,
    /// End of the last phase.
    pub end_unix_us: u64,
}

/// Something that a reader has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable name, kebab-case, for scripts.
    pub id: String,
    /// How much it matters.
    pub severity: Severity,
    /// What is so, with its figures.
    pub text: String,
    /// What to do about it; empty when nothing can be done.
    pub advice: String,
    /// The label of the source it concerns; null when it concerns the whole run.
    #[serde(default)]
    pub source: Option<String>,
}

impl Finding {
    /// A finding about the whole run.
    pub fn new(id: &str, severity: Severity, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { id: id.to_owned(), severity, text: text.into(), advice: advice.into(), source: None }
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Note,
    /// The figures hold, with this caution.
    Warning,
    /// The figures do not say what they seem to: the verdict is inconclusive.
    Invalid,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Invalid => "invalid",
        })
    }
}

/// Whether a run may be believed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Whether the figures say something about the server.
    pub valid: bool,
    /// Why not; null when they do.
    pub inconclusive: Option<String>,
}

impl Verdict {
    /// The figures hold.
    pub fn valid() -> Self {
        Self { valid: true, inconclusive: None }
    }

    /// They do not, for this reason.
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self { valid: false, inconclusive: Some(reason.into()) }
    }
}
