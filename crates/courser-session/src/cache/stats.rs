//! What the cache counts. May not name a session.

use super::answer::{Provenance, Put};

/// Counters since the start, and what is held now.
///
/// They reconcile: `entries` is the puts that [stored](Put::Stored) minus `expired`, `removed`, `evicted_probation` and
/// `evicted_protected`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions held now, expired ones included until they are found.
    pub entries: usize,
    /// Tombstones of deleted sessions held now, expired ones included until they are found.
    pub tombstones: usize,
    /// What they and the table cost now, in bytes: see [`Cache`](crate::Cache).
    pub bytes: usize,
    /// What they may cost, in bytes.
    pub capacity_bytes: usize,
    /// Look-ups that found a session.
    pub hits: u64,
    /// Those of them whose session was made on another host.
    pub hits_remote: u64,
    /// Look-ups that did not.
    pub failed: u64,
    /// Puts by [outcome](Put), in the order of declaration.
    pub puts: [u64; Put::TooLarge as usize + 1],
    /// Sessions that were forgotten because their lifespan was over.
    pub expired: u64,
    /// Sessions that were removed by ID.
    pub removed: u64,
    /// Sessions that made room before they were used, or long after.
    pub evicted_probation: u64,
    /// Sessions in use that made room: if this grows, the cache is too small.
    pub evicted_protected: u64,
    /// Tombstones that made room before their time: if this grows, a session that was deleted could come back.
    pub evicted_tombstones: u64,
}

impl Stats {
    /// Adds those of another shard.
    pub(super) fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.tombstones += other.tombstones;
        self.bytes += other.bytes;
        self.capacity_bytes += other.capacity_bytes;
        self.hits += other.hits;
        self.hits_remote += other.hits_remote;
        self.failed += other.failed;
        self.puts.iter_mut().zip(other.puts).for_each(|(sum, count)| *sum += count);
        self.expired += other.expired;
        self.removed += other.removed;
        self.evicted_probation += other.evicted_probation;
        self.evicted_protected += other.evicted_protected;
        self.evicted_tombstones += other.evicted_tombstones;
    }

    pub(super) fn count_hit(&mut self, origin: Provenance) {
        self.hits += 1;
        self.hits_remote += u64::from(origin == Provenance::Remote);
    }
}
