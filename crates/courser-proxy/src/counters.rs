//! What a worker counts of its handshakes. Each worker has its own, written by it alone; others read.

use std::sync::atomic::{AtomicU64, Ordering};

use courser_session::{Provenance, ResumptionFailure};
use courser_sharing::Lookup;
use courser_telemetry::Resumption;
use courser_tls::HandshakeInfo;

/// The counters of one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    full: AtomicU64,
    by_id: AtomicU64,
    by_remote_id: AtomicU64,
    by_ticket: AtomicU64,
    by_psk: AtomicU64,
    misses: [AtomicU64; ResumptionFailure::ALL.len()],
    /// Sessions that were looked for elsewhere, and where they were found.
    lookups_started: AtomicU64,
    found_in_fleet: AtomicU64,
    found_in_store: AtomicU64,
    lookups_suppressed: AtomicU64,
}

/// Counts since the start, of one worker or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Full handshakes.
    pub full: u64,
    /// Resumed by a session ID that was made on this host.
    pub by_id: u64,
    /// Resumed by a session ID that was made on another host.
    pub by_remote_id: u64,
    /// Resumed by a TLS 1.2 ticket.
    pub by_ticket: u64,
    /// Resumed by a TLS 1.3 pre-shared key.
    pub by_psk: u64,
    /// Offered and not resumed, by reason in the order of [`ResumptionFailure::ALL`].
    pub misses: [u64; ResumptionFailure::ALL.len()],
    /// Sessions that other hosts or a store were asked for.
    pub lookups_started: u64,
    /// Of these, what another host had.
    pub found_in_fleet: u64,
    /// Of these, what the store had.
    pub found_in_store: u64,
    /// Sessions that nobody was asked for, because the client's source has used up its budget, or too many are being
    /// asked for already.
    pub lookups_suppressed: u64,
}

impl Counters {
    /// Notes a finished handshake that offered to resume `by`, or nothing.
    pub(crate) fn handshake(&self, by: Resumption, facts: &HandshakeInfo, miss: Option<ResumptionFailure>) {
        if let Some(miss) = miss {
            count(&self.misses[miss as usize]);
        }
        count(match by {
            Resumption::Full => &self.full,
            Resumption::SessionId if is_from_elsewhere(facts) => &self.by_remote_id,
            Resumption::SessionId => &self.by_id,
            Resumption::Ticket => &self.by_ticket,
            Resumption::Psk => &self.by_psk,
        });
    }

    pub(crate) fn lookup(&self, lookup: Lookup) {
        count(match lookup {
            Lookup::Started => &self.lookups_started,
            Lookup::FoundInFleet => &self.found_in_fleet,
            Lookup::FoundInStore => &self.found_in_store,
            Lookup::Suppressed => &self.lookups_suppressed,
        });
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            full: read(&self.full),
            by_id: read(&self.by_id),
            by_remote_id: read(&self.by_remote_id),
            by_ticket: read(&self.by_ticket),
            by_psk: read(&self.by_psk),
            misses: std::array::from_fn(|reason| read(&self.misses[reason])),
            lookups_started: read(&self.lookups_started),
            found_in_fleet: read(&self.found_in_fleet),
            found_in_store: read(&self.found_in_store),
            lookups_suppressed: read(&self.lookups_suppressed),
        }
    }
}

fn is_from_elsewhere(facts: &HandshakeInfo) -> bool {
    facts.session.is_some_and(|session| session.origin == Provenance::Remote)
}

/// One more.
fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.full += other.full;
        self.by_id += other.by_id;
        self.by_remote_id += other.by_remote_id;
        self.by_ticket += other.by_ticket;
        self.by_psk += other.by_psk;
        self.misses.iter_mut().zip(other.misses).for_each(|(sum, misses)| *sum += misses);
        self.lookups_started += other.lookups_started;
        self.found_in_fleet += other.found_in_fleet;
        self.found_in_store += other.found_in_store;
        self.lookups_suppressed += other.lookups_suppressed;
    }

    /// All finished handshakes.
    #[must_use]
    pub fn handshakes(&self) -> u64 {
        self.full + self.by_id + self.by_remote_id + self.by_ticket + self.by_psk
    }

    /// How often a session was not resumed for this reason.
    #[must_use]
    pub fn missed(&self, miss: ResumptionFailure) -> u64 {
        self.misses[miss as usize]
    }
}
