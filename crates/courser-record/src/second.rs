//! One second of a run.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::encode::{Packed, Summary};
use crate::format::VERSION;

/// One second of a run: what ended in it, whenever it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Second {
    /// Seconds since the run began.
    pub second: u64,
    /// When it began, by the wall clock.
    pub start_unix_us: u64,
    /// The phase in which it began.
    pub phase: Phase,
    /// Arrivals a second that the schedule asked for; null in a closed loop.
    pub offered_rate: Option<f64>,
    /// Connections begun.
    pub attempted: u64,
    /// Connections that ended as they should.
    pub succeeded: u64,
    /// Connections that did not.
    pub failed: u64,
    /// Requests answered as they should be.
    pub requests: u64,
    /// Full handshakes.
    pub full: u64,
    /// Resumed handshakes.
    pub resumed: u64,
    /// Connections open at its end.
    pub in_flight: u64,
    /// Response times from the intended start (in a closed loop from the actual one).
    #[cfg_attr(test, schemars(with = "crate::encode::Encoded"))]
    pub response: Packed,
    /// Bytes of answers, without what TLS adds.
    pub received_bytes: u64,
    /// Bytes of requests, without what TLS adds.
    pub sent_bytes: u64,
}

impl Second {
    /// One line of NDJSON, without its newline: the second with `"type": "second"`, the version of the format and
    /// the label of the run; of the response times the summary.
    pub fn to_ndjson(&self, run: &str) -> String {
        let line = Line {
            r#type: "second",
            version: VERSION,
            run,
            second: self.second,
            start_unix_us: self.start_unix_us,
            phase: self.phase,
            offered_rate: self.offered_rate,
            attempted: self.attempted,
            succeeded: self.succeeded,
            failed: self.failed,
            requests: self.requests,
            full: self.full,
            resumed: self.resumed,
            in_flight: self.in_flight,
            response: self.response.summary(),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
        };
        serde_json::to_string(&line).expect("plain fields are always JSON")
    }
}

/// A line of NDJSON.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    version: u32,
    run: &'a str,
    second: u64,
    start_unix_us: u64,
    phase: Phase,
    offered_rate: Option<f64>,
    attempted: u64,
    succeeded: u64,
    failed: u64,
    requests: u64,
    full: u64,
    resumed: u64,
    in_flight: u64,
    response: &'a Summary,
    received_bytes: u64,
    sent_bytes: u64,
}

/// Phases of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Caches fill.
    WarmUp,
    /// The rate climbs.
    Ramp,
    /// What is measured.
    Steady,
    /// What is open comes to its end.
    Drain,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WarmUp => "warm-up",
            Self::Ramp => "ramp",
            Self::Steady => "steady",
            Self::Drain => "drain",
        })
    }
}
