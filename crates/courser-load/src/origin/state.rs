//! What the connections of a thread share: buffers, prepared responses, counters.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::answer::{Answer, Shape};
use super::{Counters, Mode, Proxy};

/// Room for what most requests and most pieces of a body need.
const BUFFER: usize = 32 * 1024;
/// Free buffers kept: more than are ever read at the same time by one thread that never waits with one in hand.
const SPARE: usize = 32;
/// Answers kept; each has 64 KiB at most.
const PREPARED: usize = 64;

/// What the connections of a thread share.
pub(super) struct State {
    pub(super) proxy: Proxy,
    pub(super) mode: Mode,
    pub(super) counters: Arc<Counters>,
    buffers: RefCell<Vec<Vec<u8>>>,
    prepared: RefCell<HashMap<Shape, Rc<Answer>>>,
}

impl State {
    pub(super) fn new(proxy: Proxy, mode: Mode, counters: Arc<Counters>) -> Self {
        Self { proxy, mode, counters, buffers: RefCell::default(), prepared: RefCell::default() }
    }

    /// Gives `buffer` room for some reading: one that has none is replaced, so a connection that waits needs none.
    pub(super) fn make_room(&self, buffer: &mut Vec<u8>) {
        if buffer.capacity() == 0 {
            *buffer = self.buffers.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(BUFFER));
        } else if buffer.len() == buffer.capacity() {
            buffer.reserve(BUFFER);
        }
    }

    /// Takes an emptied buffer back.
    pub(super) fn give_back(&self, mut buffer: Vec<u8>) {
        let mut buffers = self.buffers.borrow_mut();
        if buffer.capacity() == BUFFER && buffers.len() < SPARE {
            buffer.clear();
            buffers.push(buffer);
        }
    }

    /// The answer of this shape, made once.
    pub(super) fn answer(&self, shape: Shape) -> Rc<Answer> {
        let mut prepared = self.prepared.borrow_mut();
        // Objects of more different sizes than these are not the rule; what is thrown away is soon made again.
        if prepared.len() >= PREPARED && !prepared.contains_key(&shape) {
            prepared.clear();
        }
        Rc::clone(prepared.entry(shape).or_insert_with(|| Rc::new(Answer::new(shape, None))))
    }
}

/// Only the counter's own thread writes it, so that no locked instruction is needed.
pub(super) fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
