//! How a suite's answer is laid out: as it was published, so that figures can be laid beside each other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Table {
    /// Its name within the suite.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What rows are: `target`, `case`, or a dimension.
    pub rows: String,
    /// What columns are: `target`, `case`, `client` (labels of windows), a dimension, or `value` when there is one
    /// column for each of `values` (of figures: one for each name).
    pub columns: String,
    /// Which cases are in it: dimension (or `case`, `era`, `measure`) to the values that it may have; all when empty.
    /// A case without the dimension is not in it. `target` selects targets instead.
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<String, Vec<String>>,
    /// What a cell shows.
    pub values: Vec<Value>,
    /// The published figures of this table; null when there are none.
    pub published: Option<Published>,
}

/// What a cell of a table or a point of a plot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Transactions a second; inconclusive when the generator was the limit.
    #[default]
    Tps,
    /// Transactions a second that the target's cores could make, from its processor time for each.
    TpsOfCpu,
    /// Full handshakes a second.
    Handshakes,
    /// Processor time of the target per connection.
    Cpu,
    /// The kernel's share of it.
    KernelShare,
    /// The physical limit over what was spent.
    LimitShare,
    /// Highest rate of a staircase.
    MaxTps,
    /// Highest rate whose average response was below 100 ms.
    MaxTpsAvg100ms,
    /// Highest rate whose average response was below 500 ms.
    MaxTpsAvg500ms,
    /// Highest rate with a loss below 0.01 %.
    MaxTpsLoss,
    /// Highest rate with a loss below 0.1 % and an average below 100 ms.
    MaxTpsRule,
    /// Mean response time.
    Mean,
    /// Median response time.
    P50,
    /// 99th percentile of response times.
    P99,
    /// Throughput of answers.
    Throughput,
    /// Memory of the target.
    Memory,
    /// Share of handshakes that were resumed.
    Resumed,
    /// Share of the sessions on offer that were resumed.
    ResumedOfOffered,
    /// A result without a network; its name is the column.
    Figure,
}

/// Figures that were published.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Published {
    /// Who, when, on what machine, under which conditions.
    pub source: String,
    /// What the figures are.
    pub unit: String,
    /// Names of the columns: those of our table where they are the same.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<PublishedRow>,
}

/// A row of published figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedRow {
    /// As it was called.
    pub label: String,
    /// One for each column, as it was printed; `-` for none.
    pub cells: Vec<String>,
}

/// A plot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Chart {
    /// Its heading.
    pub title: String,
    /// What it looks like.
    pub kind: ChartKind,
    /// The dimension along its horizontal axis, of a curve.
    pub x: Option<String>,
    /// What is shown, of bars and curves.
    pub value: Value,
    /// Which cases are in it, as in [`Table::filter`].
    #[serde(default, rename = "where")]
    pub filter: BTreeMap<String, Vec<String>>,
}

/// What a plot looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChartKind {
    /// Attempted, successful and failed transactions a second over time, the response time below: a plot for each cell.
    Staircase,
    /// A bar with its interval for each target, in groups by case.
    #[default]
    Bars,
    /// A line for each target over a dimension.
    Curve,
    /// Response time against offered load, a line for each target.
    Latency,
    /// Where processor time went, stacked, for each target: user and kernel, or the classes of a profile; with the
    /// physical limit.
    Cpu,
    /// Response times by percentile, a line for each target.
    Percentiles,
}
