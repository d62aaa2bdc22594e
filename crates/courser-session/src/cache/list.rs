//! One segment's order of use, newest first: a doubly linked list through the slab. May not own its nodes.

use super::slab::{NIL, Slab, Slot};

/// The ends of a list, and what its nodes cost together.
pub(super) struct List {
    head: Slot,
    tail: Slot,
    bytes: usize,
}

impl List {
    pub(super) fn new() -> Self {
        Self { head: NIL, tail: NIL, bytes: 0 }
    }

    /// The sum of its nodes' costs.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The one that was used longest ago.
    pub(super) fn oldest(&self) -> Option<Slot> {
        (self.tail != NIL).then_some(self.tail)
    }

    pub(super) fn is_newest(&self, slot: Slot) -> bool {
        self.head == slot
    }

    pub(super) fn push_front(&mut self, slab: &mut Slab, slot: Slot) {
        let old_head = self.head;
        slab[slot].prev = NIL;
        slab[slot].next = old_head;
        self.set_prev(slab, old_head, slot);
        self.head = slot;
        self.bytes += slab[slot].cost();
    }

    pub(super) fn unlink(&mut self, slab: &mut Slab, slot: Slot) {
        let (prev, next) = (slab[slot].prev, slab[slot].next);
        self.set_next(slab, prev, next);
        self.set_prev(slab, next, prev);
        self.bytes -= slab[slot].cost();
    }

    /// Corrects the links to a node that has moved to `slot`.
    pub(super) fn moved(&mut self, slab: &mut Slab, slot: Slot) {
        let (prev, next) = (slab[slot].prev, slab[slot].next);
        self.set_next(slab, prev, slot);
        self.set_prev(slab, next, slot);
    }

    /// Makes `next` follow `slot`, or be the head if there is no `slot`.
    fn set_next(&mut self, slab: &mut Slab, slot: Slot, next: Slot) {
        match slot {
            NIL => self.head = next,
            _ => slab[slot].next = next,
        }
    }

    /// Makes `prev` precede `slot`, or be the tail if there is no `slot`.
    fn set_prev(&mut self, slab: &mut Slab, slot: Slot, prev: Slot) {
        match slot {
            NIL => self.tail = prev,
            _ => slab[slot].prev = prev,
        }
    }
}
