//! Where a shard's sessions lie in memory. May not know in which order they leave.
//!
//! Always dense: the last one moves into the gap of one that is removed. So what is allocated follows what is held,
//! also after many small sessions have given way to few large ones; a free list would keep the most there ever was.
//! In blocks, so that growing never copies the table while a worker waits for the lock.

use std::ops::{Index, IndexMut};

use super::entry::{Entry, Segment};
use crate::State;

/// Position of a session in the slab; valid until the next removal.
pub(super) type Slot = u32;

/// No slot: the end of a list or of a bucket.
pub(super) const NIL: Slot = Slot::MAX;

/// A session and its links.
pub(super) struct Node {
    pub(super) entry: Entry,
    /// Neighbours in the list of its segment.
    pub(super) prev: Slot,
    pub(super) next: Slot,
    /// The next one in its bucket.
    pub(super) chain: Slot,
    pub(super) segment: Segment,
}

impl Entry {
    /// What it takes to hold this, in bytes.
    pub(super) fn cost(&self) -> usize {
        let state = self.state.as_ref().map_or(0, |state| State::heap_bytes(state.len()));
        size_of::<Node>().saturating_add(state)
    }
}

impl Node {
    /// What the session costs: this record and its state on the heap.
    pub(super) fn cost(&self) -> usize {
        self.entry.cost()
    }

    /// The segment of a session; `None` for a tombstone.
    pub(super) fn session_segment(&self) -> Option<Segment> {
        (self.segment != Segment::Tombstone).then_some(self.segment)
    }
}

/// Densely stored nodes.
#[derive(Default)]
pub(super) struct Slab {
    /// All full but the last one in use, and at most one empty after it: so that sessions which come and go at a
    /// block's edge do not allocate each time.
    blocks: Vec<Vec<Node>>,
    len: usize,
}

impl Slab {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, node: Node) -> Slot {
        let block = self.len / BLOCK;
        if block == self.blocks.len() {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        self.blocks[block].push(node);
        self.len += 1;
        Slot::try_from(self.len - 1).expect("a shard's byte limit keeps it below 2^32 sessions")
    }

    /// Removes a node. If it was not the last, the last one has moved to `slot`, from the slot that is returned.
    pub(super) fn swap_remove(&mut self, slot: Slot) -> (Node, Option<Slot>) {
        self.len -= 1;
        let last = self.blocks[self.len / BLOCK].pop().expect("a slot in use implies a last node");
        self.blocks.truncate(self.len / BLOCK + 2);
        if slot as usize == self.len {
            return (last, None);
        }
        let node = std::mem::replace(&mut self[slot], last);
        let moved_from = Slot::try_from(self.len).expect("smaller than a length that fitted");
        (node, Some(moved_from))
    }

    /// How many nodes there is room for.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.blocks.iter().map(Vec::capacity).sum()
    }
}

impl Index<Slot> for Slab {
    type Output = Node;

    fn index(&self, slot: Slot) -> &Node {
        &self.blocks[slot as usize / BLOCK][slot as usize % BLOCK]
    }
}

impl IndexMut<Slot> for Slab {
    fn index_mut(&mut self, slot: Slot) -> &mut Node {
        &mut self.blocks[slot as usize / BLOCK][slot as usize % BLOCK]
    }
}

/// Nodes in a block: 4 KiB, little enough to be wasted once in each shard.
const BLOCK: usize = 32;
