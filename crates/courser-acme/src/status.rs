//! What an agent says of itself.

use serde::{Deserialize, Serialize};

use crate::plan::{Setback, Why};

/// One certificate that is ordered here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SetStatus {
    /// Its names.
    pub names: Vec<String>,
    /// The challenge by which they are proved.
    pub challenge: String,
    /// The CA's directory.
    pub directory: String,
    /// End of the certificate that there is, Unix seconds.
    pub not_after: Option<i64>,
    /// An order is being worked at.
    pub is_ordering: bool,
    /// URL of an order that is under way.
    pub order: Option<String>,
    /// When it is ordered next, Unix seconds; a time that is over means as soon as may be.
    pub next: i64,
    /// Why then.
    pub why: Why,
    /// Failures in a row.
    pub failures: u32,
    /// The last of them.
    pub failure: Option<FailureStatus>,
}

/// A failure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FailureStatus {
    /// When, Unix seconds.
    pub at: i64,
    /// What it means for the next try.
    pub setback: Setback,
    /// In the CA's words.
    pub words: String,
}

/// A TXT record that proves names for good.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TxtRecord {
    /// Its name, without the final dot.
    pub name: String,
    /// Its text.
    pub value: String,
    /// The account that it is for: of another one it proves nothing.
    pub account: String,
}

/// How a trial order has ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DryRun {
    /// Its names.
    pub names: Vec<String>,
    /// Where it was made.
    pub directory: String,
    /// Why it failed.
    pub failure: Option<String>,
}
