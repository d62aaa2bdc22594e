//! What a suite's file may say. Unknown keys are errors.

use std::collections::BTreeMap;

use courser_record::lab::{Chart, ChartKind, Era, Measure, Value};
use serde::Deserialize;

use super::checks;
use super::field::OneOrMany;

/// A suite.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct File {
    pub(super) name: String,
    /// The name, where there is none.
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) source: String,
    #[serde(default)]
    pub(super) question: String,
    #[serde(default)]
    pub(super) analysis: String,
    /// Targets when nobody names others.
    #[serde(default, deserialize_with = "checks::targets")]
    pub(super) targets: Vec<String>,
    pub(super) group: Vec<Group>,
    #[serde(default)]
    pub(super) table: Vec<TableFile>,
    #[serde(default)]
    pub(super) chart: Vec<ChartFile>,
    #[serde(default)]
    pub(super) left_out: Vec<LeftOutFile>,
}

/// Cases that are measured alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Group {
    /// What the names of its cases begin with.
    pub(super) id: String,
    #[serde(default)]
    pub(super) era: Era,
    pub(super) measure: Measure,
    /// How many blocks each cell has.
    #[serde(default = "one")]
    pub(super) rounds: u32,
    /// Length of a block, of a staircase that of a step.
    #[serde(default = "two_seconds", deserialize_with = "checks::seconds")]
    pub(super) seconds: f64,
    /// Steps of a staircase.
    #[serde(default = "ten")]
    pub(super) steps: u32,
    /// In the quick variant, where it differs.
    pub(super) quick_rounds: Option<u32>,
    pub(super) quick_seconds: Option<f64>,
    pub(super) quick_steps: Option<u32>,
    /// A dimension of its own: what the published table calls these cases.
    pub(super) context: Option<String>,
    /// Whether the quick variant has it.
    #[serde(default = "yes")]
    pub(super) quick: bool,
    /// Other targets than the suite's.
    #[serde(default, deserialize_with = "checks::other_targets")]
    pub(super) targets: Option<Vec<String>>,
    /// Why no machine of ours can do it.
    pub(super) cannot: Option<String>,
    /// What is swept over: all values of all fields.
    #[serde(default)]
    pub(super) case: Dimensions,
    /// Fields that have fewer values in the quick variant.
    #[serde(default)]
    pub(super) quick_case: Dimensions,
}

fn one() -> u32 {
    1
}

fn two_seconds() -> f64 {
    2.0
}

fn ten() -> u32 {
    10
}

fn yes() -> bool {
    true
}

/// Each field one value or several.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(super) struct Dimensions {
    /// `1.3`, `1.2`, `1.0`, or `clear`.
    #[serde(deserialize_with = "checks::version")]
    pub(super) version: Option<OneOrMany<String>>,
    /// `P-256`, `RSA-2048`, or two on one address: `P-256 + RSA-2048`.
    #[serde(deserialize_with = "checks::key")]
    pub(super) key: Option<OneOrMany<String>>,
    /// Cipher suite, IANA name.
    pub(super) suite: Option<OneOrMany<String>>,
    /// Key exchange group.
    #[serde(deserialize_with = "checks::exchange")]
    pub(super) exchange: Option<OneOrMany<String>>,
    /// TCP segments that clients send a ClientHello in.
    #[serde(deserialize_with = "checks::some")]
    pub(super) segments: Option<OneOrMany<u32>>,
    /// The application protocol that clients ask for (ALPN): `h2`, `http/1.1`, or `none`.
    #[serde(deserialize_with = "checks::alpn")]
    pub(super) alpn: Option<OneOrMany<String>>,
    /// `ticket` or `id`.
    #[serde(deserialize_with = "checks::resumption")]
    pub(super) resumption: Option<OneOrMany<String>>,
    /// Whether the server remembers sessions at all.
    pub(super) cache: Option<OneOrMany<bool>>,
    /// Connections per TLS session: 1 is a new key for each, 0 one for ever.
    pub(super) reuse: Option<OneOrMany<u32>>,
    /// Size of the answer; none asks nothing.
    #[serde(deserialize_with = "checks::object")]
    pub(super) object: Option<OneOrMany<String>>,
    /// Requests per connection; 0 for as many as fit.
    pub(super) requests: Option<OneOrMany<u32>>,
    /// Connections at a time, of closed loops.
    #[serde(deserialize_with = "checks::some")]
    pub(super) clients: Option<OneOrMany<u64>>,
    /// Cores of the target.
    #[serde(deserialize_with = "checks::some")]
    pub(super) cores: Option<OneOrMany<usize>>,
    /// Copies of the target that share sessions: each connection of a client goes to the next one.
    #[serde(deserialize_with = "checks::some")]
    pub(super) hosts: Option<OneOrMany<usize>>,
    /// `plain`, `tls`, or `balanced` over several.
    #[serde(deserialize_with = "checks::backend")]
    pub(super) backend: Option<OneOrMany<String>>,
    /// Connections a second, of constant rates.
    #[serde(deserialize_with = "checks::some")]
    pub(super) rate: Option<OneOrMany<f64>>,
    /// Percent of what a closed loop reached on the same target, instead of connections a second: of constant rates.
    #[serde(deserialize_with = "checks::some")]
    pub(super) capacity: Option<OneOrMany<f64>>,
    /// Seconds after which clients leave, once for the connect and once for each answer.
    #[serde(deserialize_with = "checks::some")]
    pub(super) patience: Option<OneOrMany<f64>>,
    /// Addresses of loopback that clients come from.
    #[serde(deserialize_with = "checks::some")]
    pub(super) sources: Option<OneOrMany<u8>>,
    /// Who comes beside the clients that are measured: `handshakes`, `passing`, `hellos`, `slow hellos`,
    /// `network`.
    #[serde(deserialize_with = "checks::beside")]
    pub(super) beside: Option<OneOrMany<String>>,
    /// `lean`, `real`, `openssl`.
    #[serde(deserialize_with = "checks::engine")]
    pub(super) engine: Option<OneOrMany<String>>,
}

/// As `courser_record::lab::Table`, with published figures by their name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TableFile {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) rows: String,
    pub(super) columns: String,
    #[serde(default, rename = "where")]
    pub(super) filter: BTreeMap<String, Vec<String>>,
    pub(super) values: Vec<Value>,
    pub(super) published: Option<String>,
}

/// As `courser_record::lab::Chart`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ChartFile {
    title: String,
    kind: ChartKind,
    x: Option<String>,
    #[serde(default)]
    value: Value,
    #[serde(default, rename = "where")]
    filter: BTreeMap<String, Vec<String>>,
}

impl From<ChartFile> for Chart {
    fn from(file: ChartFile) -> Self {
        Self { title: file.title, kind: file.kind, x: file.x, value: file.value, filter: file.filter }
    }
}

/// A row of the experiment that is not measured.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeftOutFile {
    pub(super) row: String,
    pub(super) reason: String,
}
