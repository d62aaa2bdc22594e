//! Sessions by ID, for clients without tickets: one bounded table that all workers share.
//!
//! May not outlive a session's lifespan, return it under another policy, or hold more than its bytes. May not wait:
//! a call takes one shard's lock, for the time of a few pointer changes.

mod answer;
mod cursor;
mod entry;
mod evicted;
mod index;
mod journal;
mod list;
mod shard;
mod slab;
mod stats;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard};

use crate::{Lifespan, PolicyHash, ResumptionFailure, SessionId, SharedSession, State, UnixSeconds};
pub use answer::{Provenance, Put, Stored};
pub use cursor::Cursor;
use entry::Entry;
pub use journal::Change;
use journal::Journal;
use shard::Shard;
use shard::export::Batch;
pub use stats::Stats;

/// Default number of shards: with 64, two of 16 busy workers seldom meet at a lock.
pub const DEFAULT_SHARDS: usize = 64;

/// The sessions of one host, by session ID.
///
/// # Which session goes when there is no room
/// Each shard is a segmented LRU. A session enters a probation segment, one for this host's sessions and one for
/// those from elsewhere, and moves to the protected segment when it is first used. Victims come from probation, so
/// a pass of new sessions, however long, does not flush those in use; and sessions from elsewhere displace each
/// other first, so a noisy peer flushes neither the sessions in use nor all that are new here. The protected
/// segment has at most 60 % of the bytes, and the one for sessions from elsewhere is the first to give way above 20 %.
/// Every operation takes constant time, averaged over those that made the room.
///
/// # What is counted
/// A session costs its record (112 bytes, links of lists and table included) and its state as allocated (two blocks,
/// each with 8 bytes of header and rounded up to 16, which is what glibc takes); a tombstone costs a record. The tables
/// that find sessions and remember evicted ones, 6 bytes for each bucket, come off the capacity beforehand. Not counted
/// are, for each shard, its own 384 bytes and up to 7 KiB of records in reserve. `examples/memory.rs` compares this
/// with what the process takes: within 1 %. A TLS 1.2 session without client certificate has a state of some 90 to 150
/// bytes, so it costs 260 to 330.
pub struct Cache {
    shards: Box<[Padded]>,
    /// Keyed, so that a peer who chooses IDs cannot aim at one shard or one bucket.
    hasher: RandomState,
    journal: Journal,
}

impl Cache {
    /// A cache of at most `capacity_bytes`, spread over `shards` (see [`DEFAULT_SHARDS`]).
    ///
    /// Shards are made a power of two, and fewer if each would otherwise have under 64 KiB. A capacity of zero
    /// stores nothing. Memory is taken as sessions come, but for the tables (under 2.5 % of the capacity).
    pub fn new(capacity_bytes: usize, shards: usize) -> Self {
        let shards = shard_count(capacity_bytes, shards);
        let shard = || Padded(Mutex::new(Shard::new(capacity_bytes / shards)));
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher: RandomState::new(),
            journal: Journal::default(),
        }
    }

    /// Remembers a session, in place of an older one of the same ID.
    ///
    /// A session from elsewhere never replaces one that lives: IDs are visible on the wire, and a peer could
    /// otherwise break a client's resumption by sending another state under its ID. Nor does it come back once it is
    /// [deleted](Self::delete); one from this host does, as it is another session.
    pub fn put(
        &self,
        id: &SessionId,
        policy: PolicyHash,
        state: State,
        lifespan: Lifespan,
        origin: Provenance,
        now: UnixSeconds,
    ) -> Put {
        let (hash, mut shard) = self.shard(id);
        let put = shard.put(Entry { id: *id, hash, policy, lifespan, origin, state: Some(state) }, now);
        drop(shard);
        if matches!(put, Put::Stored | Put::Replaced) {
            self.journal.note(Change::Put(*id));
        }
        put
    }

    /// Looks a session up, and counts that as its use.
    ///
    /// # Errors
    /// [`ResumptionFailure::NotFound`], [`ResumptionFailure::Evicted`], [`ResumptionFailure::Deleted`],
    /// [`ResumptionFailure::Expired`] (the session is then gone), [`ResumptionFailure::NotYetValid`] or
    /// [`ResumptionFailure::OtherPolicy`] (it stays for its own policy).
    pub fn get(
        &self,
        id: &SessionId,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<Stored, ResumptionFailure> {
        let (hash, mut shard) = self.shard(id);
        shard.get(hash, id, policy, now)
    }

    /// Removes a session without a tombstone; returns whether there was one. Call it only for a session whose owner is
    /// known, that is after its handshake was verified: anyone can send an ID.
    pub fn remove(&self, id: &SessionId) -> bool {
        let (hash, mut shard) = self.shard(id);
        let was_there = shard.remove_id(hash, id);
        drop(shard);
        self.journal.note(Change::Removed(*id));
        was_there
    }

    /// What [`get`](Self::get) would return, as a look alone: nothing is counted, used or removed. For who decides
    /// whether to ask other hosts; it is worth asking after [`ResumptionFailure::NotFound`] and
    /// [`ResumptionFailure::Evicted`] alone.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn peek(
        &self,
        id: &SessionId,
        policy: &PolicyHash,
        now: UnixSeconds,
    ) -> Result<(), ResumptionFailure> {
        let (hash, shard) = self.shard(id);
        shard.peek(hash, id, policy, now)
    }

    /// Whether [`get`](Self::get) would find the session: see [`peek`](Self::peek).
    pub fn contains(&self, id: &SessionId, policy: &PolicyHash, now: UnixSeconds) -> bool {
        self.peek(id, policy, now).is_ok()
    }

    /// Copies a session for another host, whatever its policy: as [`peek`](Self::peek), nothing is counted or used.
    pub fn copy(&self, id: &SessionId, now: UnixSeconds) -> Option<SharedSession> {
        let (hash, shard) = self.shard(id);
        shard.copy(hash, id, now)
    }

    /// Forgets a session, and refuses it from elsewhere until `until` (at most [`MAX_LIFETIME`](crate::MAX_LIFETIME)
    /// from now): whatever order messages come in, and whoever repeats one, it does not come back. Says whether there
    /// was a session. As with [`remove`](Self::remove), its owner has to be known.
    ///
    /// Tombstones are entries of the cache, counted in its bytes and limited to 5 % of them: beyond that, the oldest
    /// goes before its time (and is counted). Choose the end of the session's lifespan and
    /// [`CLOCK_SKEW`](crate::CLOCK_SKEW) more: a clock that is set back could otherwise find the tombstone gone and the
    /// session alive.
    pub fn delete(&self, id: &SessionId, until: UnixSeconds, now: UnixSeconds) -> bool {
        let (hash, mut shard) = self.shard(id);
        let was_there = shard.delete(hash, id, until, now);
        drop(shard);
        self.journal.note(Change::Deleted(*id, until));
        was_there
    }

    /// Copies sessions that live, for another host or a file: from `cursor` on, as many as have at most `max_bytes`
    /// encoded (one that is larger comes alone), and where to go on; `None` at the end.
    ///
    /// A call looks at 256 entries at most, so it can return few sessions or none and still not be at the end. What
    /// is put meanwhile may be missing, and what is copied may be copied again when others are removed; what stays is
    /// never missing, and the end is reached.
    pub fn export(
        &self,
        cursor: Cursor,
        max_bytes: usize,
        now: UnixSeconds,
    ) -> (Vec<SharedSession>, Option<Cursor>) {
        let (mut batch, mut cursor) = (Batch::new(max_bytes), cursor);
        while let Some(shard) = self.shards.get(cursor.shard()) {
            let below = shard.lock().export(cursor.below, &mut batch, now);
            if below > 0 {
                return (batch.sessions, Some(Cursor { below, ..cursor }));
            }
            cursor = cursor.next_shard();
        }
        (batch.sessions, None)
    }

    /// The IDs that were deleted, and until when each is refused from elsewhere.
    pub fn tombstones(&self, now: UnixSeconds) -> Vec<(SessionId, UnixSeconds)> {
        self.shards.iter().flat_map(|shard| shard.lock().tombstones(now)).collect()
    }

    /// From now on, until it is called with `false`, notes every change for [`changes`](Self::changes): an
    /// [export](Self::export) that begins now, and then the changes, miss nothing.
    pub fn note_changes(&self, are_noted: bool) {
        self.journal.keep(are_noted);
    }

    /// What has changed since the last call, in an order in which it can be done again.
    pub fn changes(&self) -> Vec<Change> {
        self.journal.take()
    }

    /// Removes sessions that have expired, and returns how many. [`put`](Self::put) does a little of this each time;
    /// call this now and then so that secrets do not stay in the memory of an idle host.
    pub fn sweep(&self, now: UnixSeconds) -> usize {
        let mut left: Vec<_> = self.shards.iter().map(|shard| shard.lock().rewind()).collect();
        let mut expired = 0;
        while left.iter().any(|left| *left > 0) {
            for (shard, left) in self.shards.iter().zip(&mut left) {
                let step = SWEEP_STEP.min(*left);
                expired += shard.lock().sweep(step, now);
                *left -= step;
            }
        }
        expired
    }

    /// Counts of everything since the start, and what is held now. Takes each shard's lock in turn, so sums over
    /// busy shards are not of one instant.
    pub fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for shard in &self.shards {
            sum.add(&shard.lock().stats());
        }
        sum
    }

    /// The shard for `id`, locked. Its number comes from the upper half of the hash, the bucket from the lower.
    fn shard(&self, id: &SessionId) -> (u32, MutexGuard<'_, Shard>) {
        let hash = self.hasher.hash_one(id);
        let [upper, lower] = [hash >> 32, hash & u64::from(u32::MAX)];
        #[expect(clippy::cast_possible_truncation, reason = "both halves have 32 bits")]
        let (shard, bucket_hash) = (upper as usize & (self.shards.len() - 1), lower as u32);
        (bucket_hash, self.shards[shard].lock())
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

/// Two cache lines apart: processors fetch lines in pairs.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Padded {
    /// Locks the shard. One that a panic left behind locked may have half-changed links, so it is emptied first:
    /// sessions are worth less than a worker.
    fn lock(&self) -> MutexGuard<'_, Shard> {
        self.0.lock().unwrap_or_else(|poisoned| {
            let mut shard = poisoned.into_inner();
            shard.clear();
            self.0.clear_poison();
            shard
        })
    }
}

/// How many sessions of a shard a sweep looks at before it turns to the next shard: whoever waits for this one waits
/// for one step, not for all of them, as locks go to those that come first rather than to those that wait.
const SWEEP_STEP: usize = 64;

fn shard_count(capacity_bytes: usize, wanted: usize) -> usize {
    const MIN_SHARD_BYTES: usize = 64 * 1024;
    const MAX_SHARDS: usize = 4096;
    let affordable = (capacity_bytes / MIN_SHARD_BYTES).clamp(1, MAX_SHARDS);
    let wanted = wanted.clamp(1, MAX_SHARDS).next_power_of_two();
    wanted.min(1 << affordable.ilog2())
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn shards_are_a_power_of_two_that_the_capacity_can_afford() {
        assert_eq!(shard_count(64 << 20, 64), 64);
        assert_eq!(shard_count(64 << 20, 48), 64);
        assert_eq!(shard_count(64 << 20, 0), 1);
        assert_eq!(shard_count(256 * 1024, 64), 4);
        assert_eq!(shard_count(255 * 1024, 64), 2);
        assert_eq!(shard_count(0, 64), 1);
        assert_eq!(shard_count(usize::MAX, usize::MAX), 4096);
    }

    #[test]
    fn a_shard_that_a_panic_left_locked_is_emptied_and_serves_on() {
        let cache = Cache::new(64 * 1024, 1);
        let (now, id) = (UnixSeconds(1_000), SessionId::try_from(&[1; 32][..]).unwrap());
        let policy = PolicyHash::builder("listener", "host").finish();
        let lifespan = Lifespan { created: now, expires: UnixSeconds(2_000) };
        let put = || cache.put(&id, policy, State::from(&b"state"[..]), lifespan, Provenance::Local, now);
        assert_eq!(put(), Put::Stored);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _locked = cache.shards[0].lock();
            panic!("on purpose");
        }));
        assert!(panicked.is_err());
        assert_eq!(cache.get(&id, &policy, now).unwrap_err(), ResumptionFailure::NotFound);
        assert_eq!(put(), Put::Stored);
        assert!(cache.get(&id, &policy, now).is_ok());
        assert_eq!(cache.stats().removed, 1);
    }
}
