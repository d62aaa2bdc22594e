//! One second of a run: the one list of what is counted by second, from the thread that counts to every record.

use std::fmt;

use courser_stats::Histogram;
use serde::{Deserialize, Serialize};

use crate::encode::{MOST, Packed, Summary};
use crate::format::VERSION;

/// One second of a run. What was begun counts in the second of its start, a result in the second in which it came.
///
/// `R` is the form of the response times: a [`Histogram`] while it is counted, [`Packed`] in the record of a run, a
/// [`Summary`] in the record of a suite and in a line of NDJSON. A transaction is a request, or the handshake where
/// nothing is requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Second"))]
pub struct Second<R = Packed> {
    /// Seconds since the run began.
    pub second: u64,
    /// When it began, by the wall clock.
    pub start_unix_us: u64,
    /// The phase in which it began.
    pub phase: Phase,
    /// Arrivals a second that the schedule asked for; null in a closed loop.
    pub offered_rate: Option<f64>,
    /// Transactions begun.
    pub attempted: u64,
    /// Transactions that ended as they should.
    pub succeeded: u64,
    /// Transactions that did not.
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
    pub response: R,
    /// Bytes from the server, with what TLS adds.
    pub received_bytes: u64,
    /// Bytes to the server, with what TLS adds.
    pub sent_bytes: u64,
}

impl<R> Second<R> {
    /// The same second with its response times in another form.
    pub fn with<T>(&self, form: impl FnOnce(&R) -> T) -> Second<T> {
        Second {
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
            response: form(&self.response),
            received_bytes: self.received_bytes,
            sent_bytes: self.sent_bytes,
        }
    }
}

impl Second<Histogram> {
    /// Adds what another thread or generator has counted in the same second; it is steady when it is so for all.
    pub fn add(&mut self, more: &Self) {
        self.phase = if self.phase == Phase::Steady { more.phase } else { self.phase };
        self.offered_rate = self.offered_rate.zip(more.offered_rate).map(|(sum, more)| sum + more);
        for (sum, more) in [
            (&mut self.attempted, more.attempted),
            (&mut self.succeeded, more.succeeded),
            (&mut self.failed, more.failed),
            (&mut self.requests, more.requests),
            (&mut self.full, more.full),
            (&mut self.resumed, more.resumed),
            (&mut self.in_flight, more.in_flight),
            (&mut self.received_bytes, more.received_bytes),
            (&mut self.sent_bytes, more.sent_bytes),
        ] {
            add(sum, more);
        }
        add_histogram(&mut self.response, &more.response);
    }
}

/// The numbers come from files that anybody may have written: a sum stops at the end of its range, which no measured
/// one comes near.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

pub(crate) fn add_histogram(sum: &mut Histogram, more: &Histogram) {
    if sum.count() + more.count() <= MOST {
        sum.merge(more);
    }
}

impl Second {
    /// One line of NDJSON, without its newline: the second with `"type": "second"`, the version of the format and
    /// the label of the run; of the response times the summary.
    pub fn to_ndjson(&self, run: &str) -> String {
        let second = self.with(|response| *response.summary());
        let line = Line { r#type: "second", version: VERSION, run, second };
        serde_json::to_string(&line).expect("plain fields are always JSON")
    }
}

/// A line of NDJSON.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    version: u32,
    run: &'a str,
    #[serde(flatten)]
    second: Second<Summary>,
}

/// Phases of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Caches fill.
    #[default]
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
