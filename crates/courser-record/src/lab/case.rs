//! A row of an experiment: what is asked of every target alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A row of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Case {
    /// Its name within the suite, kebab-case: `tls13-ecdsa`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Modern or historic.
    pub era: Era,
    /// Where it stands in the experiment: dimension to value, for instance `key` to `RSA-2048`, `object` to `4 KB`.
    pub dimensions: BTreeMap<String, String>,
    /// What is measured.
    pub measure: Measure,
    /// What is asked of every target, in words: the neutral specification and the load.
    pub asked: Vec<String>,
    /// The least that one connection takes on this machine; null when it is not known.
    pub limit: Option<Limit>,
    /// What the control blocks say; null where no target has one that can be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlRatio>,
}

/// A server's processor time per connection, with clients of the engine `real` over that with lean ones. What it differs
/// from 1 by is the lean client's doing, or that of the load: [`ControlRatio::load`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ControlRatio {
    /// Geometric mean over the targets.
    pub ratio: f64,
    /// The smallest of a target.
    pub low: f64,
    /// The largest of a target.
    pub high: f64,
    /// How many targets.
    pub targets: u32,
    /// Connections a second that the real clients brought over those of the lean ones, geometric mean: a server with less
    /// to do takes more processor time for each.
    pub load: f64,
}

impl ControlRatio {
    /// Ratios that call for no caution: 10 %, four times what a block differs from the next by (METHODOLOGY.md).
    pub const EXPECTED: std::ops::RangeInclusive<f64> = 0.9..=1.1;
}

/// Whether a case is of today or as published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// TLS 1.2 and 1.3 with what is used today.
    #[default]
    Modern,
    /// As it was published.
    Historic,
}

/// What is measured in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// A closed loop: one window, as fast as it goes.
    #[default]
    Saturation,
    /// A staircase of offered rates: one window for each step, after a short saturation that says how high it goes.
    Staircase,
    /// A constant offered rate: one window.
    Rate,
    /// Connections that stay open, requests as fast as it goes: one window. TPS are requests.
    KeepAlive,
    /// What different clients get: windows by the kind of client, in [`super::WindowResult::label`].
    Clients,
    /// No network: figures of a library, in [`super::WindowResult::figures`].
    InProcess,
}

/// The least that a connection can take: the bare cryptographic operations that it needs and the reads and writes that
/// carry them, each timed on this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limit {
    /// Processor time of a core per connection, of all parts.
    pub us_per_connection: f64,
    /// The cryptography that it is made of.
    pub parts: Vec<LimitPart>,
    /// The kernel's floor: the connections of the mix, without TLS, by a server that makes the reads and writes alone. Empty in
    /// records that do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floor: Vec<LimitPart>,
}

impl Limit {
    /// Bare cryptography alone, microseconds.
    pub fn cryptography_us(&self) -> f64 {
        self.us_per_connection - LimitPart::sum(&self.floor)
    }
}

/// One kind of operation, or of connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitPart {
    /// Its name, as `primitives` prints it.
    pub name: String,
    /// How many of it a connection needs, on average.
    pub times: f64,
    /// Processor time of one.
    pub us: f64,
}

impl LimitPart {
    /// What several take together, microseconds.
    pub fn sum(parts: &[Self]) -> f64 {
        parts.iter().map(|part| part.times * part.us).sum()
    }
}
