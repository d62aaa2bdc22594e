//! Finds a session by its ID: a hash table of chains through the slab. May not own its nodes.
//!
//! Its size is fixed at the start from the bytes that the shard may hold, so it is never rehashed. std's HashMap
//! would store each ID twice and rehash thousands of them at once under the lock.

use super::slab::{NIL, Slab, Slot};
use crate::SessionId;

/// Heads of the chains; a power of two.
pub(super) struct Index {
    buckets: Box<[Slot]>,
}

impl Index {
    /// A table for a shard of `capacity_bytes`.
    pub(super) fn new(capacity_bytes: usize) -> Self {
        let buckets = (capacity_bytes / BYTES_PER_BUCKET).max(1);
        Self { buckets: vec![NIL; 1 << buckets.ilog2()].into() }
    }

    /// What the table itself takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.buckets.len() * size_of::<Slot>()
    }

    /// How many buckets there are: a power of two.
    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub(super) fn find(&self, slab: &Slab, hash: u32, id: &SessionId) -> Option<Slot> {
        let mut slot = self.buckets[self.bucket(hash)];
        while slot != NIL {
            let node = &slab[slot];
            if node.entry.hash == hash && node.entry.id == *id {
                return Some(slot);
            }
            slot = node.chain;
        }
        None
    }

    pub(super) fn insert(&mut self, slab: &mut Slab, slot: Slot) {
        let bucket = self.bucket(slab[slot].entry.hash);
        slab[slot].chain = self.buckets[bucket];
        self.buckets[bucket] = slot;
    }

    pub(super) fn unlink(&mut self, slab: &mut Slab, slot: Slot) {
        let next = slab[slot].chain;
        self.relink(slab, slab[slot].entry.hash, slot, next);
    }

    /// Corrects the link to a node that has moved from one slot to another.
    pub(super) fn moved(&mut self, slab: &mut Slab, from: Slot, to: Slot) {
        self.relink(slab, slab[to].entry.hash, from, to);
    }

    /// Makes the link that pointed to `old`, in the chain of `hash`, point to `new`.
    fn relink(&mut self, slab: &mut Slab, hash: u32, old: Slot, new: Slot) {
        let bucket = self.bucket(hash);
        if self.buckets[bucket] == old {
            self.buckets[bucket] = new;
            return;
        }
        let mut before = self.buckets[bucket];
        while slab[before].chain != old {
            before = slab[before].chain;
        }
        slab[before].chain = new;
    }

    fn bucket(&self, hash: u32) -> usize {
        hash as usize & (self.buckets.len() - 1)
    }
}

/// About the cost of a small session (a TLS 1.2 state without client certificate has some 150 bytes), so a full
/// shard has one to two in a chain.
const BYTES_PER_BUCKET: usize = 256;
