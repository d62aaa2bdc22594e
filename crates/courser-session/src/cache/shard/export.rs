//! Copies out what a shard holds, a part at a time. May not change anything.

use super::{Entry, Shard};
use crate::cache::slab::Slot;
use crate::{SharedSession, UnixSeconds};

impl Shard {
    /// Adds sessions that live to `batch`, from the slot before `below` downwards, until it is full. Returns the slot
    /// to go on below; zero when all were seen.
    ///
    /// Downwards, because the slab fills a gap with its last entry: one that has not been copied yet can only move to a
    /// slot that is still to come, so none is missed; one that has been may be met again.
    pub(crate) fn export(&self, below: Slot, batch: &mut Batch, now: UnixSeconds) -> Slot {
        let len = Slot::try_from(self.slab.len()).expect("a length is a slot's number or NIL");
        let mut below = below.min(len);
        while below > 0 && batch.admits(&self.slab[below - 1].entry, now) {
            below -= 1;
        }
        below
    }
}

/// Sessions that are copied out by one call, and what it may still do.
pub(crate) struct Batch {
    pub(crate) sessions: Vec<SharedSession>,
    /// How many bytes of encoded sessions fit.
    bytes: usize,
    /// How many entries may be looked at.
    looks: usize,
}

impl Batch {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { sessions: Vec::new(), bytes: max_bytes, looks: LOOKS }
    }

    /// Copies a session if it lives; false if there is no room for it. There is for the first one.
    fn admits(&mut self, entry: &Entry, now: UnixSeconds) -> bool {
        if self.looks == 0 {
            return false;
        }
        if let Some(session) = entry.shared(now) {
            let len = session.encoded_len();
            if len > self.bytes && !self.sessions.is_empty() {
                return false;
            }
            self.bytes = self.bytes.saturating_sub(len);
            self.sessions.push(session);
        }
        self.looks -= 1;
        true
    }
}

/// How many entries a call looks at: some tens of microseconds, for which a worker may wait.
const LOOKS: usize = 256;
