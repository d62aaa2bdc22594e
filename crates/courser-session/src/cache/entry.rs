//! What the cache knows of one session. May not know where it lies.

use super::answer::{Provenance, Stored};
use crate::{Lifespan, PolicyHash, ResumptionFailure, SessionId, SharedSession, State, UnixSeconds};

/// A session as the cache holds it, or the tombstone of one.
pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) hash: u32,
    pub(super) policy: PolicyHash,
    pub(super) lifespan: Lifespan,
    pub(super) origin: Provenance,
    /// None in a tombstone.
    pub(super) state: Option<State>,
}

impl Entry {
    pub(super) fn is_expired(&self, now: UnixSeconds) -> bool {
        self.lifespan.check(now) == Err(ResumptionFailure::Expired)
    }

    /// The session as it travels, if it lives.
    pub(super) fn shared(&self, now: UnixSeconds) -> Option<SharedSession> {
        let state = self.state.as_ref().filter(|_| self.lifespan.check(now).is_ok())?;
        Some(SharedSession {
            id: self.id,
            policy: self.policy,
            lifespan: self.lifespan,
            state: state.clone(),
        })
    }

    /// The session, if it may be resumed under `policy`.
    pub(super) fn resumable(
        &self,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<Stored, ResumptionFailure> {
        let state = self.state.as_ref().ok_or(ResumptionFailure::Deleted)?;
        self.lifespan.check(now)?;
        if self.policy != *policy {
            return Err(ResumptionFailure::OtherPolicy);
        }
        Ok(Stored { state: state.clone(), lifespan: self.lifespan, origin: self.origin })
    }
}

/// Where in the order of eviction a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// Probation: made elsewhere, not used here yet.
    Remote,
    /// Probation: made here and not used yet, or not used for long.
    Fresh,
    /// Used.
    Protected,
    /// Tombstones, by when they were put up.
    Tombstone,
}

impl Provenance {
    pub(super) fn segment(self) -> Segment {
        match self {
            Self::Local => Segment::Fresh,
            Self::Remote => Segment::Remote,
        }
    }
}
