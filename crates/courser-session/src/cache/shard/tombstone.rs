//! Tombstones: what was deleted must not come back with a message that was sent before, or again. May not hold a state.

use super::{Entry, Segment, Shard};
use crate::cache::answer::Provenance;
use crate::cache::slab::NIL;
use crate::{Lifespan, PolicyHash, SessionId, UnixSeconds};

impl Shard {
    /// Forgets a session and puts up its tombstone until `until`; returns whether there was a session.
    pub(crate) fn delete(&mut self, hash: u32, id: &SessionId, until: UnixSeconds, now: UnixSeconds) -> bool {
        let was_there = self.remove_id(hash, id);
        let earlier =
            self.index.find(&self.slab, hash, id).map(|slot| self.remove(slot).entry.lifespan.expires);
        let lifespan = Lifespan { created: now, expires: until.max(earlier.unwrap_or(until)) };
        let tombstone =
            Entry { id: *id, hash, policy: NO_POLICY, lifespan, origin: Provenance::Remote, state: None };
        if !tombstone.is_expired(now) && self.make_room_for_tombstone(tombstone.cost()) {
            self.insert(tombstone, Segment::Tombstone);
        }
        was_there
    }

    /// Those that still stand, and until when.
    pub(crate) fn tombstones(&self, now: UnixSeconds) -> Vec<(SessionId, UnixSeconds)> {
        let (list, mut all) = (self.list(Segment::Tombstone), Vec::with_capacity(self.tombstones));
        let mut next = list.oldest();
        while let Some(slot) = next {
            let node = &self.slab[slot];
            let entry = &node.entry;
            all.extend((!entry.is_expired(now)).then_some((entry.id, entry.lifespan.expires)));
            next = (node.prev != NIL).then_some(node.prev);
        }
        all
    }

    /// Tombstones displace each other once they have their share, so that no series of them flushes sessions.
    fn make_room_for_tombstone(&mut self, cost: usize) -> bool {
        let share = self.share(TOMBSTONE_PERCENT);
        while self.list(Segment::Tombstone).bytes() + cost > share {
            let Some(oldest) = self.list(Segment::Tombstone).oldest() else { return false };
            self.remove(oldest);
            self.counts.evicted_tombstones += 1;
        }
        self.make_room(cost);
        true
    }
}

/// How much of a shard tombstones may have. A cache of 64 MiB holds 29,000: deletions are rare, since only a handshake
/// that was verified and then ended badly deletes.
const TOMBSTONE_PERCENT: usize = 5;
/// A tombstone stands whatever the session was bound to.
const NO_POLICY: PolicyHash = PolicyHash::from_bytes([0; 32]);
