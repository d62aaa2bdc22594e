//! What happens to a cache while it is copied: so that a copy, and then each change, is the same as the cache. May not hold a
//! session.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{SessionId, UnixSeconds};

/// What has happened to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was put, or replaced; [`Cache::copy`](crate::Cache::copy) has it, if it is still there.
    Put(SessionId),
    /// It was removed without a tombstone.
    Removed(SessionId),
    /// It was deleted, and its tombstone stands until this time.
    Deleted(SessionId, UnixSeconds),
}

/// Off, but for the time of an upgrade: then it costs a put one atomic load.
#[derive(Default)]
pub(super) struct Journal {
    is_kept: AtomicBool,
    changes: Mutex<Vec<Change>>,
}

impl Journal {
    /// Notes changes from now on, or no more.
    pub(super) fn keep(&self, is_kept: bool) {
        // After the flag is up, whoever takes a shard's lock later sees it; who held the lock before, has put before the copy.
        self.is_kept.store(is_kept, Ordering::SeqCst);
        drop(self.take());
    }

    /// What has happened since the last call.
    pub(super) fn take(&self) -> Vec<Change> {
        std::mem::take(&mut *self.lock())
    }

    pub(super) fn note(&self, change: Change) {
        if self.is_kept.load(Ordering::SeqCst) {
            let mut changes = self.lock();
            if changes.len() < MOST {
                changes.push(change);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 48 MiB: 10,000 changes a second for longer than an upgrade may take. What is beyond costs full handshakes.
const MOST: usize = 1 << 20;
