//! Deletions that are yet to be sent to the store. May not lose one in silence: a session that ended badly is otherwise
//! found there for as long as it lives.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::StoreCounters;
use crate::counters::StoreCount;

/// Names that wait to be deleted, the oldest first. When there are too many the oldest are lost, and counted: their
/// sessions are nearest to their end.
pub(crate) struct Deletions {
    names: RefCell<VecDeque<[u8; 32]>>,
    counters: Arc<StoreCounters>,
}

impl Deletions {
    pub(crate) fn new(counters: Arc<StoreCounters>) -> Self {
        Self { names: RefCell::default(), counters }
    }

    /// Adds a name, to be deleted when the store is there.
    pub(crate) fn add(&self, name: [u8; 32]) {
        let mut names = self.names.borrow_mut();
        if names.len() >= MAX_NAMES {
            names.pop_front();
            self.counters.count(StoreCount::DeletesLost);
        } else {
            self.counters.count(StoreCount::DeletesWaiting);
        }
        names.push_back(name);
    }

    /// The oldest. It goes when it is [`done`](Self::done) with.
    pub(crate) fn first(&self) -> Option<[u8; 32]> {
        self.names.borrow().front().copied()
    }

    /// The store has answered for this name, if it still waits as the first.
    pub(crate) fn complete(&self, name: &[u8; 32]) {
        let mut names = self.names.borrow_mut();
        if names.front() == Some(name) {
            names.pop_front();
            self.counters.uncount(StoreCount::DeletesWaiting, 1);
        }
    }
}

impl Drop for Deletions {
    fn drop(&mut self) {
        self.counters.uncount(StoreCount::DeletesWaiting, self.names.borrow().len() as u64);
    }
}

/// Of a worker: 128 KiB. Deletions are rare; as many take a client that does nothing else some seconds.
const MAX_NAMES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let counters = Arc::new(StoreCounters::new(|_| {}));
        let deletions = Deletions::new(Arc::clone(&counters));
        let name = |number: usize| {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_be_bytes());
            name
        };
        (0..MAX_NAMES + 10).for_each(|number| deletions.add(name(number)));
        let counted = |what| counters.get(what);
        assert_eq!(
            [StoreCount::DeletesWaiting, StoreCount::DeletesLost].map(counted),
            [MAX_NAMES as u64, 10]
        );
        deletions.complete(&name(3));
        for number in 10..MAX_NAMES + 10 {
            assert_eq!(deletions.first(), Some(name(number)));
            deletions.complete(&name(number));
        }
        assert_eq!((deletions.first(), counted(StoreCount::DeletesWaiting)), (None, 0));
        deletions.add(name(1));
        drop(deletions);
        assert_eq!(counted(StoreCount::DeletesWaiting), 0);
    }
}
