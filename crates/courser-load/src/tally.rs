//! What is counted: per connection, per transaction, per second. Filled by one thread each, merged at the end.
//!
//! A transaction is a request, or the handshake where nothing is requested. A connection that fails before its first
//! answer fails one transaction.

use std::time::Duration;

use courser_record::{Completions, Second, WireCost};
use courser_stats::{Counts, Histogram};
use courser_tls::names;
use courser_tls_client::ClientHandshakeInfo;

use crate::failure::{Class, Failed};
use crate::offered::Session;

/// Failures whose words are kept.
const KEPT_FAILURES: usize = 8;

/// What a handshake came to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// Version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Key exchange group, code point; none for a TLS 1.2 resumption.
    pub group: Option<u16>,
    /// Signature scheme, code point; none for a resumption.
    pub scheme: Option<u16>,
    /// By what it resumed; `None` for a full handshake.
    pub resumed: Session,
    /// Whether the server asked for another key share (HelloRetryRequest, RFC 8446, section 4.1.4).
    pub retried: bool,
    /// Whether early data was accepted; none if it was not offered.
    pub early_data: Option<bool>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
}

impl Negotiated {
    pub(crate) fn new(facts: ClientHandshakeInfo, offered: Session) -> Self {
        Self {
            version: facts.version,
            suite: facts.suite,
            group: facts.group,
            scheme: facts.scheme,
            resumed: if facts.resumed { offered } else { Session::None },
            retried: facts.retried,
            early_data: facts.early_data,
            alpn: facts.alpn,
        }
    }
}

impl Negotiated {
    /// Name of the version, or its number.
    pub fn version_name(&self) -> String {
        named(names::version, self.version)
    }

    /// Name of the suite, or its number.
    pub fn suite_name(&self) -> String {
        named(names::suite, self.suite)
    }

    /// Name of the group, or its number.
    pub fn group_name(&self) -> Option<String> {
        self.group.map(|code| named(names::group, code))
    }

    /// Name of the signature scheme, or its number.
    pub fn scheme_name(&self) -> Option<String> {
        self.scheme.map(|code| named(names::scheme, code))
    }
}

fn named(name: impl Fn(u16) -> Option<&'static str>, code: u16) -> String {
    name(code).map_or_else(|| format!("0x{code:04x}"), Into::into)
}

/// How the server ended a connection that had done what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PeerClose {
    /// close_notify and FIN.
    CloseNotify,
    /// FIN alone.
    Fin,
    /// RST.
    Reset,
    /// Not in the time that it was given.
    Lingered,
    /// We did not wait for it.
    NotAwaited,
}

/// Times of a connection's steps, each from the start of its connect.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// TCP is connected.
    pub connect: Histogram,
    /// The server's first bytes: its ServerHello.
    pub server_hello: Histogram,
    /// The handshake is done at the client.
    pub handshake: Histogram,
    /// The first sign that it is done at the server.
    pub confirmed: Histogram,
    /// First byte of the first answer.
    pub first_byte: Histogram,
    /// Last byte of the first answer.
    pub last_byte: Histogram,
}

impl Times {
    fn merge(&mut self, other: &Self) {
        self.connect.merge(&other.connect);
        self.server_hello.merge(&other.server_hello);
        self.handshake.merge(&other.handshake);
        self.confirmed.merge(&other.confirmed);
        self.first_byte.merge(&other.first_byte);
        self.last_byte.merge(&other.last_byte);
    }
}

/// Everything about the connections and transactions that were meant to start in one window, and what was served in it.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sessions that arrived.
    pub sessions: u64,
    /// Connections tried.
    pub connections: u64,
    /// Connections that did everything that they were for.
    pub connections_succeeded: u64,
    /// Transactions tried.
    pub attempted: u64,
    /// Transactions that succeeded.
    pub succeeded: u64,
    /// What ended in the window as it should, whenever it began.
    pub completed: Completions,
    /// Transactions that failed, by class.
    pub failures: Counts<Class>,
    /// The first of them in words.
    pub failure_samples: Vec<String>,
    /// Handshakes.
    pub negotiated: Counts<Negotiated>,
    /// What was offered to resume with.
    pub offered: Counts<Session>,
    /// Handshakes of clients that had been there before.
    pub returned: u64,
    /// Those of them with nothing to resume with.
    pub returned_empty: u64,
    /// Tickets received per handshake.
    pub tickets: Counts<u32>,
    /// Answers by the server that they are of, where they say so.
    pub pages: Counts<u8>,
    /// How servers ended connections.
    pub endings: Counts<PeerClose>,
    /// From the last byte of the answer to the end of the connection.
    pub lingering: Histogram,
    /// Times of full handshakes.
    pub full: Times,
    /// Times of resumed handshakes.
    pub resumed: Times,
    /// From the intended start to the last byte of the answer.
    pub response_intended: Histogram,
    /// From the actual start to the last byte of the answer.
    pub response_actual: Histogram,
    /// From the intended to the actual start.
    pub lag: Histogram,
    /// On the wire, of the connections that were looked at closely.
    pub wire: WireCost,
    /// Plaintext sent.
    pub payload_out: u64,
    /// Plaintext received.
    pub payload_in: u64,
    /// ClientHellos that did not offer what was asked, in words: the experiment is wrong.
    pub wrong_offers: u64,
    /// How late the generator's threads woke from short sleeps: whether they got their processor.
    pub beat: Histogram,
}

impl Tally {
    /// Transactions that failed.
    pub fn failed(&self) -> u64 {
        self.failures.total()
    }

    pub(crate) fn fail(&mut self, failed: &Failed) {
        self.failures.add(failed.class.clone(), 1);
        if self.failure_samples.len() < KEPT_FAILURES {
            self.failure_samples.push(failed.to_string());
        }
    }

    /// Adds what another thread has counted for the same window.
    pub fn merge(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.connections += other.connections;
        self.connections_succeeded += other.connections_succeeded;
        self.attempted += other.attempted;
        self.succeeded += other.succeeded;
        self.completed.add(&other.completed);
        self.failures.merge(other.failures);
        self.failure_samples.extend(other.failure_samples);
        self.failure_samples.truncate(KEPT_FAILURES);
        self.negotiated.merge(other.negotiated);
        self.offered.merge(other.offered);
        self.returned += other.returned;
        self.returned_empty += other.returned_empty;
        self.tickets.merge(other.tickets);
        self.pages.merge(other.pages);
        self.endings.merge(other.endings);
        self.lingering.merge(&other.lingering);
        self.full.merge(&other.full);
        self.resumed.merge(&other.resumed);
        self.response_intended.merge(&other.response_intended);
        self.response_actual.merge(&other.response_actual);
        self.lag.merge(&other.lag);
        self.wire.add(&other.wire);
        self.payload_out += other.payload_out;
        self.payload_in += other.payload_in;
        self.wrong_offers += other.wrong_offers;
        self.beat.merge(&other.beat);
    }
}

/// One thread's statistics: a tally per window, and the second that is running.
#[derive(Debug)]
pub(crate) struct ThreadStats {
    windows: Vec<(Duration, Duration)>,
    pub(crate) tallies: Vec<Tally>,
    /// The second that is running.
    pub(crate) second: Second<Histogram>,
    /// Attempts that are meant to start in the second after the running one are counted when that runs.
    pub(crate) in_flight: u64,
    pub(crate) most_in_flight: u64,
    /// All handshakes, in whichever phase: the generator's own cost is shared out over them.
    pub(crate) handshakes: u64,
    /// All failures, in whichever phase.
    pub(crate) failures: u64,
}

impl ThreadStats {
    pub(crate) fn new(windows: Vec<(Duration, Duration)>) -> Self {
        let tallies = windows.iter().map(|_| Tally::default()).collect();
        Self {
            windows,
            tallies,
            second: Second::default(),
            in_flight: 0,
            most_in_flight: 0,
            handshakes: 0,
            failures: 0,
        }
    }

    /// The tally for what was meant to start at this time; none outside the steady phase.
    pub(crate) fn at(&mut self, intended: Duration) -> Option<&mut Tally> {
        let window = self.windows.iter().position(|&(from, to)| (from..to).contains(&intended))?;
        self.tallies.get_mut(window)
    }

    /// The running second is over.
    pub(crate) fn next_second(&mut self) -> Second<Histogram> {
        let next = Second { second: self.second.second + 1, ..Second::default() };
        Second { in_flight: self.in_flight, ..std::mem::replace(&mut self.second, next) }
    }

    /// What came after the last whole second, unless nothing did.
    pub(crate) fn last_second(&mut self) -> Option<Second<Histogram>> {
        let Second { second, sent_bytes, received_bytes, .. } = self.second;
        let nothing = Second { second, sent_bytes, received_bytes, ..Second::default() };
        (self.second != nothing).then(|| self.next_second())
    }

    pub(crate) fn opened(&mut self) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_the_last_whole_second_is_told_once() {
        let mut stats = ThreadStats::new(Vec::new());
        stats.second.attempted = 2;
        assert_eq!(stats.next_second().second, 0);
        assert!(stats.last_second().is_none(), "nothing came after it");
        stats.second.full = 1;
        let last = stats.last_second().expect("a handshake of the drain");
        assert_eq!((last.second, last.full, last.attempted), (1, 1, 0));
        assert!(stats.last_second().is_none());
    }
}
