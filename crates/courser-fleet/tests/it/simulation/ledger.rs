//! What is true: every session that was ever made, and what hosts may do with it.

use std::collections::HashMap;

use courser_session::{
    PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, Stored, UnixSeconds,
};

use super::host::Host;

/// A promise that was broken.
#[derive(Debug)]
pub(super) struct Violation(pub(super) String);

pub(super) type Check = Result<(), Violation>;

/// Fails with `what` unless it `holds`.
pub(super) fn ensure(holds: bool, what: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Violation(what())) }
}

/// A session that was made.
pub(super) struct Made {
    pub(super) session: SharedSession,
    pub(super) maker: usize,
    /// Whether the maker's clock is so wrong that nobody may take this.
    pub(super) is_far_off: bool,
    pub(super) is_deleted: bool,
    /// Hosts that know that it was deleted, as bits.
    known_to: u32,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) made: Vec<Made>,
    by_id: HashMap<SessionId, usize>,
    deleted: Vec<usize>,
}

impl Ledger {
    pub(super) fn note(&mut self, session: &SharedSession, maker: &Host) -> usize {
        let number = self.made.len();
        let (is_far_off, maker) = (maker.is_far_off, maker.number);
        let session = session.clone();
        self.by_id.insert(session.id, number);
        self.made.push(Made { session, maker, is_far_off, is_deleted: false, known_to: 0 });
        number
    }

    /// The number of a session.
    pub(super) fn find(&self, id: &SessionId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(super) fn note_deletion(&mut self, number: usize, host: usize) {
        let made = &mut self.made[number];
        made.is_deleted = true;
        made.known_to |= 1 << host;
        self.deleted.push(number);
    }

    /// Looks which deletions `host` has heard of.
    pub(super) fn note_told(&mut self, host: &Host, now: UnixSeconds) {
        for number in self.deleted.iter().rev().take(RECENT) {
            let Made { session, known_to, .. } = &mut self.made[*number];
            if host.cache.peek(&session.id, &session.policy, now) == Err(ResumptionFailure::Deleted) {
                *known_to |= 1 << host.number;
            }
        }
    }

    /// A host has lost its memory: nobody can expect it to know what was deleted.
    pub(super) fn note_cold_start(&mut self, host: usize) {
        for number in &self.deleted {
            self.made[*number].known_to &= !(1 << host);
        }
    }

    /// Whether a host may hold this session.
    pub(super) fn audit(&self, host: &Host, held: &SharedSession) -> Check {
        let name = &host.name;
        let made = self.by_id.get(&held.id).map(|number| &self.made[*number]);
        let Some(Made { session, is_far_off, known_to, .. }) = made else {
            return Err(Violation(format!("{name} holds a session that nobody made")));
        };
        ensure(held.policy == session.policy, || format!("{name} holds a session under another policy"))?;
        ensure(held.lifespan == session.lifespan, || format!("{name} holds a session of another lifespan"))?;
        ensure(held.state[..] == session.state[..], || format!("{name} holds a session with other bytes"))?;
        ensure(known_to & (1 << host.number) == 0, || {
            format!("{name} holds a session that it knows was deleted")
        })?;
        ensure(*is_far_off == host.is_far_off, || {
            format!("{name} holds a session from beyond a clock that is far off")
        })
    }

    /// Whether this answer to a client that returned with session `number` is right.
    pub(super) fn judge(
        &self,
        number: usize,
        host: &Host,
        policy: &PolicyHash,
        now: UnixSeconds,
        got: &Result<Stored, ResumptionFailure>,
    ) -> Check {
        let Ok(stored) = got else { return Ok(()) };
        let (Made { session, maker, .. }, name) = (&self.made[number], &host.name);
        ensure(*policy == session.policy, || format!("{name} resumed a session under another policy"))?;
        ensure(now < session.lifespan.expires, || format!("{name} resumed a session after its end"))?;
        ensure(stored.origin == Provenance::Remote || *maker == host.number, || {
            format!("{name} takes a session from another host for its own")
        })?;
        let (id, state) = (session.id, stored.state.clone());
        self.audit(host, &SharedSession { id, policy: *policy, lifespan: stored.lifespan, state })
    }
}

/// How many deletions may be on their way at a time.
const RECENT: usize = 40;
