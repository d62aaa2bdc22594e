//! What has happened lately, what is wrong by it, and what fails: the parts of the status that say something rather than
//! count. May not know where the figures come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Of the last seconds. Rates are per second.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Recent {
    /// How many they are.
    pub(crate) seconds: f64,
    /// Connections that have ended.
    pub(crate) closed: f64,
    pub(crate) bytes_in: f64,
    pub(crate) bytes_out: f64,
    /// Handshakes that are done, by kind.
    pub(crate) handshakes: BTreeMap<String, f64>,
    /// Sessions that were offered and not resumed, by reason.
    pub(crate) not_resumed: BTreeMap<String, f64>,
    /// Steps of which one or more were completed.
    pub(crate) steps: BTreeMap<String, RecentStep>,
    /// Share of the time in which each worker has not waited for events, 0 to 1.
    pub(crate) busy: Vec<f64>,
    /// Seconds of processor time per second, by kind of handshake and key, for example `full/RSA2048`.
    pub(crate) handshake_cpu: BTreeMap<String, f64>,
    pub(crate) syn_dropped: f64,
    /// What was not served in overload, by stage and reason, for example `syn/dropped`.
    pub(crate) shed: BTreeMap<String, f64>,
    pub(crate) log_lines_lost: f64,
}

/// A step of connections, with an eighth of tolerance upwards.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct RecentStep {
    /// Of those that were timed, per second.
    pub(crate) rate: f64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
}

/// Connections that failed for one reason, with the names of the log.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailureRow {
    pub(crate) reason: String,
    pub(crate) cause: String,
    /// Since the start.
    pub(crate) count: u64,
    /// Lately, per second.
    pub(crate) rate: f64,
}

/// Connections that were refused under overload.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ShedRow {
    /// The gate.
    pub(crate) stage: String,
    pub(crate) reason: String,
    /// Since the start.
    pub(crate) count: u64,
}

impl ShedRow {
    /// A row for each of `connections.shed`, where stage and reason are one key.
    pub(crate) fn of(shed: &BTreeMap<String, u64>) -> Vec<Self> {
        let row = |(name, &count): (&String, &u64)| {
            let (stage, reason) = name.split_once('/')?;
            Some(Self { stage: stage.to_owned(), reason: reason.to_owned(), count })
        };
        shed.iter().filter_map(row).collect()
    }
}

/// Something that is wrong.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    pub(crate) level: FindingLevel,
    /// Whose fault it is, in the words of the log: `client`, `backend`, `courser`; `none` where nobody's.
    pub(crate) cause: String,
    /// A sentence.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: String,
}

/// How bad it is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FindingLevel {
    /// Clients suffer.
    Problem,
    /// They may, if nothing is done.
    Warning,
}

impl FindingLevel {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
        }
    }
}
