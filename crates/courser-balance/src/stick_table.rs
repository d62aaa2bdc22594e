//! Which server has a client's session: a table of fixed size, for what cannot be computed from the client's side.
//!
//! The key chooses a bucket of eight entries. A new entry takes the place of an expired one, or of the one that was used longest
//! ago: who fills the table shortens the memory of others, and takes none. A bucket has its own lock, which is held for a
//! look at eight entries; two workers meet there as often as two keys do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::affinity::AffinityKey;
use crate::server::Server;

/// Entries of a bucket: few enough to look at all, and enough that buckets fill evenly.
const WAYS: usize = 8;

/// Servers by the keys of sessions.
#[derive(Debug)]
pub struct StickTable {
    buckets: Box<[Mutex<[Entry; WAYS]>]>,
    lifetime: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    key: u64,
    /// [`Server::identity`].
    server: u64,
    /// Seconds; 0 for an entry that never was.
    expires: u32,
}

impl StickTable {
    /// A table for this many sessions (rounded up), each remembered for `lifetime` after it was last stored.
    pub fn new(sessions: usize, lifetime: Duration) -> Self {
        let buckets = sessions.div_ceil(WAYS).max(1);
        Self { buckets: (0..buckets).map(|_| Mutex::default()).collect(), lifetime }
    }

    /// Remembers that `server` has the session of this key: a hash that strangers cannot predict.
    pub fn store<T>(&self, key: u64, server: &Server<T>, now: Duration) {
        let expires = seconds(now + self.lifetime).max(1);
        let entry = Entry { key, server: server.identity, expires };
        let mut bucket = self.bucket(key);
        let same = bucket.iter().position(|known| known.key == key);
        let oldest = (0..WAYS).min_by_key(|index| bucket[*index].expires).unwrap_or_default();
        bucket[same.unwrap_or(oldest)] = entry;
    }

    /// The server that has the session of this key.
    pub fn find(&self, key: u64, now: Duration) -> Option<AffinityKey> {
        let bucket = self.bucket(key);
        let entry = bucket.iter().find(|entry| entry.key == key && entry.expires > seconds(now))?;
        Some(AffinityKey::of_server(entry.server))
    }

    fn bucket(&self, key: u64) -> MutexGuard<'_, [Entry; WAYS]> {
        #[expect(clippy::cast_possible_truncation, reason = "a place")]
        let place = key as usize % self.buckets.len();
        self.buckets[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(time: Duration) -> u32 {
    time.as_secs().try_into().unwrap_or(u32::MAX)
}
