//! What the cache counts. May not name a session.

use super::answer::Provenance;
use crate::ResumptionFailure;

/// Counters since the start, and what is held now.
///
/// They reconcile: `entries` is `stored` minus `expired`, `removed`, `evicted_probation` and
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
    /// Look-ups that did not, by reason.
    pub failures: FailureCounts,
    /// Puts of a session with a new ID.
    pub stored: u64,
    /// Puts that replaced a session.
    pub replaced: u64,
    /// Puts from elsewhere that met a session and left it.
    pub duplicates: u64,
    /// Puts from elsewhere refused because the session was deleted.
    pub refused_tombstoned: u64,
    /// Puts refused because the lifespan was over or not begun.
    pub refused_not_valid: u64,
    /// Puts refused because of the state's size.
    pub refused_too_large: u64,
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
        self.failures.add(&other.failures);
        self.stored += other.stored;
        self.replaced += other.replaced;
        self.duplicates += other.duplicates;
        self.refused_tombstoned += other.refused_tombstoned;
        self.refused_not_valid += other.refused_not_valid;
        self.refused_too_large += other.refused_too_large;
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

/// How often each [`ResumptionFailure`] occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureCounts([u64; ResumptionFailure::ALL.len()]);

impl FailureCounts {
    /// Counts one more.
    pub fn count(&mut self, failure: ResumptionFailure) {
        self.0[failure as usize] += 1;
    }

    /// How often `failure` occurred.
    pub fn of(&self, failure: ResumptionFailure) -> u64 {
        self.0[failure as usize]
    }

    /// Every reason with its count.
    pub fn iter(&self) -> impl Iterator<Item = (ResumptionFailure, u64)> {
        ResumptionFailure::ALL.into_iter().zip(self.0)
    }

    /// All failures.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}
