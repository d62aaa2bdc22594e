//! One shard: a table and four lists over one slab, under one lock. May not lock or wait.

pub(super) mod export;
mod order;
#[cfg(test)]
mod tests;
mod tombstone;

use super::answer::{Provenance, Put, Stored};
use super::entry::{Entry, Segment};
use super::evicted::Evicted;
use super::index::Index;
use super::list::List;
use super::slab::{NIL, Node, Slab, Slot};
use super::stats::Stats;
use crate::{PolicyHash, ResumptionFailure, SessionId, SharedSession, UnixSeconds};

pub(super) struct Shard {
    slab: Slab,
    index: Index,
    evicted: Evicted,
    /// By [`Segment`].
    lists: [List; 4],
    /// How many of the slab's entries are tombstones.
    tombstones: usize,
    /// How many bytes all entries may cost together.
    limit: usize,
    /// Where the next look for expired sessions begins.
    hand: Slot,
    /// Counters alone: what is held is added on asking.
    counts: Stats,
}

impl Shard {
    /// A shard that takes at most `capacity_bytes`, its tables included.
    pub(super) fn new(capacity_bytes: usize) -> Self {
        // Slots have 32 bits; a session costs more than a byte.
        let capacity_bytes = capacity_bytes.min(u32::MAX as usize);
        let index = Index::new(capacity_bytes);
        let evicted = Evicted::new(index.buckets());
        let limit = capacity_bytes.saturating_sub(index.bytes() + evicted.bytes());
        Self {
            slab: Slab::default(),
            index,
            evicted,
            lists: std::array::from_fn(|_| List::new()),
            tombstones: 0,
            limit,
            hand: 0,
            counts: Stats::default(),
        }
    }

    pub(super) fn put(&mut self, entry: Entry, now: UnixSeconds) -> Put {
        let put = self.try_put(entry, now);
        self.counts.puts[put as usize] += 1;
        put
    }

    fn try_put(&mut self, entry: Entry, now: UnixSeconds) -> Put {
        if entry.lifespan.check(now).is_err() {
            return Put::NotValid;
        }
        if entry.cost() > self.limit / MAX_SHARE_OF_ONE {
            return Put::TooLarge;
        }
        self.sweep(SWEEP_PER_PUT, now);
        let replaced = match self.find_unexpired(entry.hash, &entry.id, now) {
            Ok(slot) if entry.origin == Provenance::Remote => return self.refusal(slot),
            Ok(slot) => self.remove(slot).session_segment(),
            Err(_) => None,
        };
        self.evicted.forget(entry.hash);
        self.make_room(entry.cost());
        let segment = replaced.unwrap_or(entry.origin.segment());
        self.insert(entry, segment);
        if replaced.is_some() { Put::Replaced } else { Put::Stored }
    }

    /// Why a session from elsewhere does not replace what is in `slot`.
    fn refusal(&self, slot: Slot) -> Put {
        match self.slab[slot].segment {
            Segment::Tombstone => Put::Tombstoned,
            Segment::Remote | Segment::Fresh | Segment::Protected => Put::Duplicate,
        }
    }

    pub(super) fn get(
        &mut self,
        hash: u32,
        id: &SessionId,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<Stored, ResumptionFailure> {
        let (slot, stored) = self.look_up(hash, id, policy, now)?;
        self.promote(slot);
        Ok(stored)
    }

    /// What [`get`](Self::get) would return. Counts, promotes and removes nothing.
    pub(super) fn peek(
        &self,
        hash: u32,
        id: &SessionId,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<(), ResumptionFailure> {
        let slot = self.find(hash, id)?;
        let entry = &self.slab[slot].entry;
        if entry.is_expired(now) {
            return Err(ResumptionFailure::Expired);
        }
        entry.resumable(policy, now).map(drop)
    }

    pub(super) fn copy(&self, hash: u32, id: &SessionId, now: UnixSeconds) -> Option<SharedSession> {
        self.slab[self.find(hash, id).ok()?].entry.shared(now)
    }

    pub(super) fn remove_id(&mut self, hash: u32, id: &SessionId) -> bool {
        let Some(slot) = self.index.find(&self.slab, hash, id) else { return false };
        if self.slab[slot].segment == Segment::Tombstone {
            return false;
        }
        self.remove(slot);
        self.counts.removed += 1;
        true
    }

    /// Looks at up to `count` entries, beginning where the last call ended, and removes those that have expired. Says
    /// how many sessions that were.
    pub(super) fn sweep(&mut self, count: usize, now: UnixSeconds) -> usize {
        let expired_before = self.counts.expired;
        for _ in 0..count.min(self.slab.len()) {
            if self.hand as usize >= self.slab.len() {
                self.hand = 0;
            }
            let slot = self.hand;
            if self.slab[slot].entry.is_expired(now) {
                // Another entry has moved to this slot: the hand stays.
                self.expire(slot);
            } else {
                self.hand += 1;
            }
        }
        usize::try_from(self.counts.expired - expired_before).expect("at most count")
    }

    /// Makes the next sweep begin at the first entry, and returns how many there are: as many looks see them all.
    pub(super) fn rewind(&mut self) -> usize {
        self.hand = 0;
        self.slab.len()
    }

    /// Forgets all sessions and tombstones, and counts the sessions as removed.
    pub(super) fn clear(&mut self) {
        self.counts.removed += (self.slab.len() - self.tombstones) as u64;
        let empty = Self::new(self.limit + self.tables());
        *self = Self { counts: self.counts.clone(), ..empty };
    }

    pub(super) fn stats(&self) -> Stats {
        Stats {
            entries: self.slab.len() - self.tombstones,
            tombstones: self.tombstones,
            bytes: self.bytes() + self.tables(),
            capacity_bytes: self.limit + self.tables(),
            ..self.counts.clone()
        }
    }

    /// Finds a session that may be resumed, and counts the hit or the miss.
    fn look_up(
        &mut self,
        hash: u32,
        id: &SessionId,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<(Slot, Stored), ResumptionFailure> {
        let found = self
            .find_unexpired(hash, id, now)
            .and_then(|slot| Ok((slot, self.slab[slot].entry.resumable(policy, now)?)));
        match &found {
            Ok((_, stored)) => self.counts.count_hit(stored.origin),
            Err(_) => self.counts.failed += 1,
        }
        found
    }

    /// Finds a session or a tombstone that has not expired; removes it if it has.
    ///
    /// One that is not yet valid was valid when it was put: the clock went back, and may come forward again.
    fn find_unexpired(
        &mut self,
        hash: u32,
        id: &SessionId,
        now: UnixSeconds,
    ) -> Result<Slot, ResumptionFailure> {
        let slot = self.find(hash, id)?;
        if self.slab[slot].entry.is_expired(now) {
            self.expire(slot);
            return Err(ResumptionFailure::Expired);
        }
        Ok(slot)
    }

    fn find(&self, hash: u32, id: &SessionId) -> Result<Slot, ResumptionFailure> {
        let missing = || {
            if self.evicted.contains(hash) { ResumptionFailure::Evicted } else { ResumptionFailure::NotFound }
        };
        self.index.find(&self.slab, hash, id).ok_or_else(missing)
    }

    /// Removes what has expired. The end of a tombstone is not worth a count.
    fn expire(&mut self, slot: Slot) {
        if self.remove(slot).session_segment().is_some() {
            self.counts.expired += 1;
        }
    }

    fn insert(&mut self, entry: Entry, segment: Segment) {
        self.tombstones += usize::from(segment == Segment::Tombstone);
        let slot = self.slab.push(Node { entry, prev: NIL, next: NIL, chain: NIL, segment });
        self.index.insert(&mut self.slab, slot);
        self.lists[segment as usize].push_front(&mut self.slab, slot);
    }

    fn remove(&mut self, slot: Slot) -> Node {
        let segment = self.slab[slot].segment;
        self.tombstones -= usize::from(segment == Segment::Tombstone);
        self.index.unlink(&mut self.slab, slot);
        self.lists[segment as usize].unlink(&mut self.slab, slot);
        let (node, moved_from) = self.slab.swap_remove(slot);
        if let Some(from) = moved_from {
            let segment = self.slab[slot].segment;
            self.index.moved(&mut self.slab, from, slot);
            self.lists[segment as usize].moved(&mut self.slab, slot);
        }
        node
    }

    /// What all entries cost together.
    fn bytes(&self) -> usize {
        self.lists.iter().map(List::bytes).sum()
    }

    /// What the tables cost, however many entries there are.
    fn tables(&self) -> usize {
        self.index.bytes() + self.evicted.bytes()
    }

    fn list(&self, segment: Segment) -> &List {
        &self.lists[segment as usize]
    }
}

/// A session that takes more than one part in this many of a shard would evict too much for what it saves.
const MAX_SHARE_OF_ONE: usize = 8;
/// How many sessions a put checks for expiry. Two, because it adds one: the sweep gains on the growth.
const SWEEP_PER_PUT: usize = 2;
