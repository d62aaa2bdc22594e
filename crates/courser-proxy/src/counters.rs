//! What a worker counts of its handshakes. Each worker has its own, written by it alone; others read.

use std::sync::atomic::{AtomicU64, Ordering};

use courser_session::{Provenance, ResumptionFailure};
use courser_telemetry::Resumption;
use courser_tls::HandshakeInfo;

/// The counters of one worker, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    full: AtomicU64,
    by_id: AtomicU64,
    by_id_from_elsewhere: AtomicU64,
    by_ticket: AtomicU64,
    by_psk: AtomicU64,
    misses: [AtomicU64; ResumptionFailure::ALL.len()],
    /// Sessions that were looked for elsewhere, and where they were found.
    pub(crate) asked: AtomicU64,
    pub(crate) found_in_fleet: AtomicU64,
    pub(crate) found_in_store: AtomicU64,
    pub(crate) not_asked: AtomicU64,
}

/// Counts since the start, of one worker or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Full handshakes.
    pub full: u64,
    /// Resumed by a session ID that was made on this host.
    pub by_id: u64,
    /// Resumed by a session ID that was made on another host.
    pub by_id_from_elsewhere: u64,
    /// Resumed by a TLS 1.2 ticket.
    pub by_ticket: u64,
    /// Resumed by a TLS 1.3 pre-shared key.
    pub by_psk: u64,
    /// Offered and not resumed, by reason in the order of [`Miss::ALL`].
    pub misses: [u64; ResumptionFailure::ALL.len()],
    /// Sessions that other hosts or a store were asked for.
    pub asked: u64,
    /// Of these, what another host had.
    pub found_in_fleet: u64,
    /// Of these, what the store had.
    pub found_in_store: u64,
    /// Sessions that nobody was asked for, because the client's source has used up its budget, or too many are being
    /// asked for already.
    pub not_asked: u64,
}

impl Counters {
    /// Notes a finished handshake that offered to resume `by`, or nothing.
    pub(crate) fn handshake(&self, by: Resumption, facts: &HandshakeInfo, miss: Option<ResumptionFailure>) {
        if let Some(miss) = miss {
            count(&self.misses[miss as usize]);
        }
        count(match by {
            Resumption::Full => &self.full,
            Resumption::SessionId if is_from_elsewhere(facts) => &self.by_id_from_elsewhere,
            Resumption::SessionId => &self.by_id,
            Resumption::Ticket => &self.by_ticket,
            Resumption::Psk => &self.by_psk,
        });
    }

    /// What was counted so far.
    #[must_use]
    pub fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            full: read(&self.full),
            by_id: read(&self.by_id),
            by_id_from_elsewhere: read(&self.by_id_from_elsewhere),
            by_ticket: read(&self.by_ticket),
            by_psk: read(&self.by_psk),
            misses: std::array::from_fn(|reason| read(&self.misses[reason])),
            asked: read(&self.asked),
            found_in_fleet: read(&self.found_in_fleet),
            found_in_store: read(&self.found_in_store),
            not_asked: read(&self.not_asked),
        }
    }
}

fn is_from_elsewhere(facts: &HandshakeInfo) -> bool {
    facts.session.is_some_and(|session| session.provenance == Provenance::Remote)
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// Adds another worker's.
    pub fn add(&mut self, other: &Self) {
        self.full += other.full;
        self.by_id += other.by_id;
        self.by_id_from_elsewhere += other.by_id_from_elsewhere;
        self.by_ticket += other.by_ticket;
        self.by_psk += other.by_psk;
        self.misses.iter_mut().zip(other.misses).for_each(|(sum, misses)| *sum += misses);
        self.asked += other.asked;
        self.found_in_fleet += other.found_in_fleet;
        self.found_in_store += other.found_in_store;
        self.not_asked += other.not_asked;
    }

    /// All finished handshakes.
    #[must_use]
    pub fn handshakes(&self) -> u64 {
        self.full + self.by_id + self.by_id_from_elsewhere + self.by_ticket + self.by_psk
    }

    /// How often a session was not resumed for this reason.
    #[must_use]
    pub fn missed(&self, miss: ResumptionFailure) -> u64 {
        self.misses[miss as usize]
    }
}
