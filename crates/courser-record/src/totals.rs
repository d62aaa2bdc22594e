//! What came out of the steady window.

use std::collections::BTreeMap;
use std::fmt;

use courser_stats::number::float;
use courser_stats::{Counts, Histogram};
use serde::{Deserialize, Serialize};

use crate::encode::{self, MOST};
use crate::second::{add, add_histogram};

/// How many failures are kept in their own words.
pub const FAILURE_SAMPLES: usize = 20;

/// What came out of the steady window: of what was to start in it, followed to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Totals {
    /// Length of the window.
    pub window_us: u64,
    /// TLS sessions begun; 0 in models without sessions.
    pub sessions: u64,
    /// TCP connections with all that belongs to them.
    pub connections: Outcomes,
    /// Requests.
    pub requests: Outcomes,
    /// What was served within the window, whenever it was to start; null in records that do not have it.
    #[serde(default)]
    pub completed: Option<Completions>,
    /// Bytes of answers, without what TLS adds.
    pub received_bytes: u64,
    /// Bytes of requests, without what TLS adds.
    pub sent_bytes: u64,
    /// Failed connections by class: refused, reset, timeout, alert and so on.
    #[serde(with = "encode::counts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub failures: Counts<String>,
    /// The first few failures in their own words, at most [`FAILURE_SAMPLES`].
    pub failure_samples: Vec<FailureSample>,
    /// What servers agreed to, and how often.
    pub negotiated: Vec<Negotiated>,
    /// What clients offered for resumption, by handshake: none, `session_id`, ticket, psk.
    #[serde(with = "encode::counts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub offered: Counts<String>,
    /// How many handshakes were followed by so many tickets.
    #[serde(with = "encode::counts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<u32, u64>"))]
    pub tickets_received: Counts<u32>,
    /// Answers by the server that they are of, where each has a page of its own; empty in records that do not have it.
    #[serde(default, with = "encode::counts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub pages: Counts<String>,
    /// Handshakes whose early data the server accepted.
    pub early_data_accepted: u64,
    /// Application protocols agreed on, by handshake; the empty name is none.
    #[serde(with = "encode::counts")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, u64>"))]
    pub alpn: Counts<String>,
    /// Times by name; the names are in [`crate::times`].
    #[serde(with = "encode::times")]
    #[cfg_attr(test, schemars(with = "BTreeMap<String, encode::Encoded>"))]
    pub times: BTreeMap<String, Histogram>,
}

impl Totals {
    /// Adds what another generator has counted in its window of the same run. The length of the window stays.
    pub fn add(&mut self, more: &Self) {
        add(&mut self.sessions, more.sessions);
        self.connections.add(&more.connections);
        self.requests.add(&more.requests);
        self.completed = self.completed.zip(more.completed).map(|(mut sum, more)| {
            sum.add(&more);
            sum
        });
        add(&mut self.received_bytes, more.received_bytes);
        add(&mut self.sent_bytes, more.sent_bytes);
        add_counts(&mut self.failures, &more.failures);
        self.failure_samples.extend(more.failure_samples.iter().cloned());
        more.negotiated.iter().for_each(|kind| add_negotiated(&mut self.negotiated, kind));
        add_counts(&mut self.offered, &more.offered);
        add_counts(&mut self.tickets_received, &more.tickets_received);
        add_counts(&mut self.pages, &more.pages);
        add(&mut self.early_data_accepted, more.early_data_accepted);
        add_counts(&mut self.alpn, &more.alpn);
        for (name, histogram) in &more.times {
            add_histogram(self.times.entry(name.clone()).or_default(), histogram);
        }
    }

    /// Handshakes that were done, full and resumed.
    pub fn handshakes(&self) -> u64 {
        self.negotiated.iter().fold(0, |sum, kind| sum.saturating_add(kind.count))
    }

    /// Connections served in the window; in records without completions those that were to start in it and succeeded.
    pub fn connections_served(&self) -> u64 {
        self.completed.map_or(self.connections.succeeded, |completed| completed.connections)
    }

    /// So many in the window, as a rate per second; `None` without a window.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        (self.window_us > 0).then(|| float(count) * 1e6 / float(self.window_us))
    }
}

fn add_counts<K: Ord + Clone>(sum: &mut Counts<K>, more: &Counts<K>) {
    for (kind, times) in more {
        let room = MOST.saturating_sub(sum.total());
        sum.add(kind.clone(), room.min(*times));
    }
}

fn add_negotiated(sum: &mut Vec<Negotiated>, more: &Negotiated) {
    let alike = |kind: &&mut Negotiated| Negotiated { count: more.count, ..(**kind).clone() } == *more;
    match sum.iter_mut().find(alike) {
        Some(kind) => add(&mut kind.count, more.count),
        None => sum.push(more.clone()),
    }
}

/// How attempts ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// Begun, or due and not begun for want of a port or descriptor.
    pub attempted: u64,
    /// Ended as they should.
    pub succeeded: u64,
    /// Did not.
    pub failed: u64,
}

impl Outcomes {
    /// Adds those of another thread or generator.
    pub fn add(&mut self, more: &Self) {
        add(&mut self.attempted, more.attempted);
        add(&mut self.succeeded, more.succeeded);
        add(&mut self.failed, more.failed);
    }
}

/// What ended as it should within a window, whenever it was to start: what the server's own log counts, and what a rate
/// is made of. Of a server that is offered more than it serves, successes by their intended start are no rate: they go on
/// while the last ones are waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Completions {
    /// Requests; where nothing is requested, handshakes.
    pub transactions: u64,
    /// Connections.
    pub connections: u64,
    /// Full handshakes.
    pub full: u64,
    /// Resumed handshakes.
    pub resumed: u64,
}

impl Completions {
    /// Adds those of another thread or generator.
    pub fn add(&mut self, more: &Self) {
        add(&mut self.transactions, more.transactions);
        add(&mut self.connections, more.connections);
        add(&mut self.full, more.full);
        add(&mut self.resumed, more.resumed);
    }
}

/// One failure in its own words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailureSample {
    /// When.
    pub at_unix_us: u64,
    /// Its class, as in [`Totals::failures`].
    pub class: String,
    /// What was seen.
    pub detail: String,
}

/// Handshakes that were alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Negotiated {
    /// Full, or resumed by what.
    pub handshake: Handshake,
    /// Version, for instance `TLS 1.3`.
    pub version: String,
    /// Cipher suite, IANA name.
    pub suite: String,
    /// Key exchange group; null without one.
    pub group: Option<String>,
    /// Scheme of the server's signature; null when it signed nothing.
    pub scheme: Option<String>,
    /// Whether the server asked for another key share (`HelloRetryRequest`).
    pub retried: bool,
    /// How many.
    pub count: u64,
}

/// How a session came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Handshake {
    /// A full handshake.
    Full,
    /// Resumed by session ID (RFC 5246, section 7.3).
    SessionId,
    /// Resumed by session ticket (RFC 5077).
    Ticket,
    /// Resumed by pre-shared key (RFC 8446, section 2.2).
    Psk,
}

impl fmt::Display for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::SessionId => "resumed by session ID",
            Self::Ticket => "resumed by ticket",
            Self::Psk => "resumed by PSK",
        })
    }
}
