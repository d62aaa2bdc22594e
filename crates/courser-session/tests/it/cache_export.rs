//! What an export copies, also while others use the cache.

use std::collections::HashMap;

use courser_session::{
    Cache, Change, Cursor, Provenance, ResumptionFailure, SessionId, SharedSession, State, UnixSeconds,
};
use proptest::prelude::*;

use crate::{NOW, Random, policy, session_id, two_hours};

fn put(cache: &Cache, number: u64, state_len: usize) {
    let state = State::from(vec![7; state_len]);
    cache.put(&session_id(number), policy("a"), state, two_hours(NOW), Provenance::Local, NOW);
}

/// How often each session is in the batches of one export; `between` is done after each batch.
fn export(cache: &Cache, max_bytes: usize, mut between: impl FnMut()) -> HashMap<SessionId, usize> {
    let (mut seen, mut cursor) = (HashMap::new(), Some(Cursor::START));
    while let Some(at) = cursor {
        let (batch, next) = cache.export(at, max_bytes, NOW);
        assert_fits(&batch, max_bytes);
        assert_ne!(next, cursor, "each call gets on");
        for session in batch {
            *seen.entry(session.id).or_default() += 1;
        }
        cursor = next;
        between();
    }
    seen
}

fn assert_fits(batch: &[SharedSession], max_bytes: usize) {
    let bytes: usize = batch.iter().map(SharedSession::encoded_len).sum();
    assert!(bytes <= max_bytes || batch.len() == 1, "{bytes} bytes in {} sessions", batch.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn an_undisturbed_export_has_each_session_once(
        sessions in 0..2_000_u64, shards in 1..64_usize, max_bytes in 0..20_000_usize,
    ) {
        let cache = Cache::new(64 << 20, shards);
        (0..sessions).for_each(|number| put(&cache, number, (number % 300) as usize));
        let seen = export(&cache, max_bytes, || {});
        prop_assert_eq!(seen.len() as u64, sessions);
        prop_assert!(seen.values().all(|times| *times == 1));
    }

    #[test]
    fn what_stays_is_exported_whatever_comes_and_goes(seed: u64, max_bytes in 300..5_000_usize) {
        const STAYING: u64 = 500;
        let (cache, mut random) = (Cache::new(64 << 20, 4), Random(seed));
        (0..2 * STAYING).for_each(|number| put(&cache, number, 100));
        let seen = export(&cache, max_bytes, || for _ in 0..3 {
            cache.remove(&session_id(STAYING + random.below(STAYING)));
            cache.delete(&session_id(STAYING + random.below(STAYING)), two_hours(NOW).expires, NOW);
            put(&cache, 10_000 + random.below(1 << 40), 100);
        });
        let missing = (0..STAYING).filter(|number| !seen.contains_key(&session_id(*number))).count();
        prop_assert_eq!(missing, 0);
    }
}

#[test]
fn copies_a_session_whole() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, 200);
    let (batch, next) = cache.export(Cursor::START, 4096, NOW);
    let [session] = &batch[..] else { panic!("{batch:?}") };
    assert_eq!(session.id, session_id(1));
    assert_eq!((session.policy, session.lifespan), (policy("a"), two_hours(NOW)));
    assert_eq!(session.state[..], [7; 200]);
    assert_eq!(next, None);
}

#[test]
fn leaves_out_what_expired_or_was_deleted_and_changes_nothing() {
    let cache = Cache::new(1 << 20, 4);
    (0..50).for_each(|number| put(&cache, number, 50));
    for number in 0..10 {
        cache.delete(&session_id(number), two_hours(NOW).expires, NOW);
    }
    let before = cache.stats();
    assert_eq!(export(&cache, 1_000, || {}).len(), 40);
    let (batch, next) = cache.export(Cursor::START, 1 << 20, two_hours(NOW).expires);
    assert!(batch.is_empty() && next.is_none());
    assert_eq!(cache.stats(), before);
}

#[test]
fn a_call_is_short_however_full_the_cache() {
    let cache = Cache::new(64 << 20, 1);
    (0..10_000).for_each(|number| put(&cache, number, 10));
    let (batch, next) = cache.export(Cursor::START, usize::MAX, NOW);
    assert_eq!(batch.len(), 256);
    assert!(next.is_some());
    let (batch, next) = cache.export(Cursor::START, usize::MAX, UnixSeconds(NOW.0 + 7_200));
    assert!(batch.is_empty() && next.is_some(), "nothing lives, and it is not the end");
}

#[test]
fn any_number_is_a_cursor() {
    let cache = Cache::new(1 << 20, 4);
    (0..100).for_each(|number| put(&cache, number, 10));
    for number in [0, 1, u64::MAX, 1 << 32, (4 << 32) - 1, 5 << 32, u64::from(u32::MAX)] {
        let _ = cache.export(Cursor::from_u64(number), 1_000, NOW);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// As an upgrade does it: a copy, and then what has changed since its beginning.
    #[test]
    fn a_copy_and_then_the_changes_are_the_same_as_the_cache(seed: u64, max_bytes in 300..5_000_usize) {
        let (cache, copied, mut random) = (Cache::new(64 << 20, 4), Cache::new(64 << 20, 4), Random(seed));
        (0..500).for_each(|number| put(&cache, number, 100));
        cache.delete(&session_id(600), two_hours(NOW).expires, NOW);
        cache.note_changes(true);
        for (id, until) in cache.tombstones(NOW) {
            copied.delete(&id, until, NOW);
        }
        let mut cursor = Some(Cursor::START);
        while let Some(at) = cursor {
            let (batch, next) = cache.export(at, max_bytes, NOW);
            let mut take = |session: SharedSession| {
                let SharedSession { id, policy, lifespan, state } = session;
                copied.put(&id, policy, state, lifespan, Provenance::Local, NOW);
            };
            batch.into_iter().for_each(&mut take);
            cursor = next;
            put(&cache, random.below(700), 100);
            cache.remove(&session_id(random.below(700)));
            cache.delete(&session_id(random.below(700)), two_hours(NOW).expires, NOW);
        }
        for change in cache.changes() {
            match change {
                Change::Put(id) => if let Some(SharedSession { id, policy, lifespan, state }) = cache.copy(&id, NOW) {
                    copied.put(&id, policy, state, lifespan, Provenance::Local, NOW);
                },
                Change::Removed(id) => drop(copied.remove(&id)),
                Change::Deleted(id, until) => drop(copied.delete(&id, until, NOW)),
            }
        }
        for number in 0..700 {
            let look = |cache: &Cache| cache.peek(&session_id(number), &policy("a"), NOW);
            let (one, other) = (look(&cache), look(&copied));
            prop_assert_eq!(one.is_ok(), other.is_ok(), "session {}: {:?}, {:?}", number, one, other);
            // What this host has made anew and removed is not deleted any more: its copy may stay so.
            let is_deleted = one == Err(ResumptionFailure::Deleted);
            prop_assert!(!is_deleted || other == one, "session {} is not deleted: {:?}", number, other);
        }
        cache.note_changes(false);
        put(&cache, 1, 100);
        prop_assert!(cache.changes().is_empty());
    }
}
