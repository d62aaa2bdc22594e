//! What a put, a get and a remove mean.

use std::time::Duration;

use courser_session::{Cache, Lifespan, Provenance, Put, ResumptionFailure, State, UnixSeconds};

use crate::{NOW, policy, session_id, two_hours};

fn put(cache: &Cache, number: u64, state: &[u8], origin: Provenance) -> Put {
    cache.put(&session_id(number), policy("a"), State::from(state), two_hours(NOW), origin, NOW)
}

#[test]
fn returns_what_was_put_with_its_original_lifespan() {
    let cache = Cache::new(1 << 20, 4);
    assert_eq!(put(&cache, 1, b"state", Provenance::Local), Put::Stored);
    let stored = cache.get(&session_id(1), &policy("a"), UnixSeconds(NOW.0 + 3600)).unwrap();
    assert_eq!(&stored.state[..], b"state");
    assert_eq!(stored.lifespan, two_hours(NOW));
    assert_eq!(cache.get(&session_id(2), &policy("a"), NOW).unwrap_err(), ResumptionFailure::NotFound);
}

#[test]
fn another_policy_misses_and_leaves_the_session_to_its_own() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    assert_eq!(cache.get(&session_id(1), &policy("b"), NOW).unwrap_err(), ResumptionFailure::OtherPolicy);
    assert!(cache.get(&session_id(1), &policy("a"), NOW).is_ok());
}

#[test]
fn use_does_not_extend_a_life() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    for seconds in (0..7200).step_by(60) {
        assert!(cache.get(&session_id(1), &policy("a"), UnixSeconds(NOW.0 + seconds)).is_ok());
    }
    let end = UnixSeconds(NOW.0 + 7200);
    assert_eq!(cache.get(&session_id(1), &policy("a"), end).unwrap_err(), ResumptionFailure::Expired);
    assert_eq!(
        cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(),
        ResumptionFailure::NotFound,
        "it is gone"
    );
    assert_eq!(cache.stats().expired, 1);
}

#[test]
fn a_clock_set_back_hides_a_session_until_its_time() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    let before = UnixSeconds(NOW.0 - 61);
    assert_eq!(cache.get(&session_id(1), &policy("a"), before).unwrap_err(), ResumptionFailure::NotYetValid);
    assert!(cache.get(&session_id(1), &policy("a"), NOW).is_ok());
}

#[test]
fn remove_forgets_and_says_whether_there_was_something() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    assert!(cache.remove(&session_id(1)));
    assert!(!cache.remove(&session_id(1)));
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(), ResumptionFailure::NotFound);
}

#[test]
fn a_session_from_elsewhere_does_not_replace_one_that_lives() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"ours", Provenance::Local);
    assert_eq!(put(&cache, 1, b"theirs", Provenance::Remote), Put::Duplicate);
    assert_eq!(&cache.get(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"ours");
    assert_eq!(put(&cache, 1, b"newer", Provenance::Local), Put::Replaced);
    assert_eq!(&cache.get(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"newer");
}

#[test]
fn refuses_lives_that_are_over_or_not_begun() {
    let cache = Cache::new(1 << 20, 4);
    let hour = Duration::from_secs(3600);
    for created in [UnixSeconds(NOW.0 - 3600), UnixSeconds(NOW.0 + 61)] {
        let lifespan = Lifespan::new(created, hour);
        let put =
            cache.put(&session_id(1), policy("a"), State::from(&b"x"[..]), lifespan, Provenance::Remote, NOW);
        assert_eq!(put, Put::NotValid);
    }
    assert_eq!(cache.stats().puts[Put::NotValid as usize], 2);
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn refuses_what_would_evict_too_much() {
    let cache = Cache::new(64 * 1024, 1);
    assert_eq!(put(&cache, 1, &[1; 16 * 1024], Provenance::Local), Put::TooLarge);
    assert_eq!(put(&cache, 1, &[1; 4 * 1024], Provenance::Local), Put::Stored);
}

#[test]
fn a_cache_of_no_bytes_stores_nothing_and_works() {
    let cache = Cache::new(0, 64);
    assert_eq!(put(&cache, 1, b"state", Provenance::Local), Put::TooLarge);
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(), ResumptionFailure::NotFound);
}

#[test]
fn sweep_empties_an_idle_cache_of_what_has_expired() {
    let cache = Cache::new(1 << 20, 4);
    for number in 0..500 {
        put(&cache, number, b"state", Provenance::Local);
    }
    let late = Lifespan::new(UnixSeconds(NOW.0 + 60), 2 * Duration::from_secs(3600));
    for number in 500..600 {
        cache.put(&session_id(number), policy("a"), State::from(&b"x"[..]), late, Provenance::Local, NOW);
    }
    assert_eq!(cache.sweep(NOW), 0);
    assert_eq!(cache.sweep(two_hours(NOW).expires), 500);
    assert_eq!(cache.stats().entries, 100);
}

#[test]
fn each_look_up_is_counted_as_a_hit_or_as_failed() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    let look_ups = [(1, "a", NOW), (1, "b", NOW), (2, "a", NOW), (1, "a", two_hours(NOW).expires)];
    let failures =
        look_ups.map(|(number, name, now)| cache.get(&session_id(number), &policy(name), now).err());
    let (policy, expired) = (ResumptionFailure::OtherPolicy, ResumptionFailure::Expired);
    assert_eq!(failures, [None, Some(policy), Some(ResumptionFailure::NotFound), Some(expired)]);
    assert_eq!((cache.stats().hits, cache.stats().failed), (1, 3));
}

#[test]
fn a_look_counts_promotes_and_removes_nothing() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Provenance::Local);
    let before = cache.stats();
    assert!(cache.contains(&session_id(1), &policy("a"), NOW));
    assert!(!cache.contains(&session_id(1), &policy("b"), NOW));
    assert_eq!(cache.peek(&session_id(2), &policy("a"), NOW), Err(ResumptionFailure::NotFound));
    assert_eq!(
        cache.peek(&session_id(1), &policy("a"), two_hours(NOW).expires),
        Err(ResumptionFailure::Expired)
    );
    assert_eq!(cache.stats(), before);
}

#[test]
fn says_where_a_session_was_made() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"ours", Provenance::Local);
    put(&cache, 2, b"theirs", Provenance::Remote);
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap().origin, Provenance::Local);
    for _ in 0..3 {
        let stored = cache.get(&session_id(2), &policy("a"), NOW).unwrap();
        assert_eq!(stored.origin, Provenance::Remote, "use does not make it ours");
    }
    assert_eq!((cache.stats().hits, cache.stats().hits_remote), (4, 3));
}

#[test]
fn what_was_deleted_does_not_come_back_from_elsewhere_in_whatever_order() {
    let cache = Cache::new(1 << 20, 4);
    let until = two_hours(NOW).expires;
    assert!(!cache.delete(&session_id(1), until, NOW), "the deletion came first");
    put(&cache, 2, b"state", Provenance::Local);
    assert!(cache.delete(&session_id(2), until, NOW), "the session came first");
    for number in [1, 2] {
        assert_eq!(put(&cache, number, b"replayed", Provenance::Remote), Put::Tombstoned);
        assert_eq!(
            cache.get(&session_id(number), &policy("a"), NOW).unwrap_err(),
            ResumptionFailure::Deleted
        );
        assert!(!cache.remove(&session_id(number)), "a tombstone is no session");
    }
    let stats = cache.stats();
    assert_eq!(
        (stats.entries, stats.tombstones, stats.puts[Put::Tombstoned as usize], stats.removed),
        (0, 2, 2, 1)
    );
}

#[test]
fn a_session_of_our_own_lifts_a_tombstone() {
    let cache = Cache::new(1 << 20, 4);
    cache.delete(&session_id(1), two_hours(NOW).expires, NOW);
    assert_eq!(put(&cache, 1, b"another", Provenance::Local), Put::Stored);
    assert_eq!(&cache.get(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"another");
    assert_eq!(cache.stats().tombstones, 0);
}

#[test]
fn a_tombstone_stands_until_its_time_and_an_earlier_end_does_not_shorten_it() {
    let cache = Cache::new(1 << 20, 4);
    cache.delete(&session_id(1), UnixSeconds(NOW.0 + 100), NOW);
    cache.delete(&session_id(1), UnixSeconds(NOW.0 + 10), NOW);
    let put_at = |seconds| {
        let now = UnixSeconds(NOW.0 + seconds);
        cache.put(
            &session_id(1),
            policy("a"),
            State::from(&b"x"[..]),
            two_hours(NOW),
            Provenance::Remote,
            now,
        )
    };
    assert_eq!(put_at(99), Put::Tombstoned);
    assert_eq!(put_at(100), Put::Stored);
}

#[test]
fn a_tombstone_for_ever_is_swept_after_a_week() {
    let cache = Cache::new(1 << 20, 4);
    cache.delete(&session_id(1), UnixSeconds(u64::MAX), NOW);
    let week_later = UnixSeconds(NOW.0 + 7 * 24 * 3600);
    assert_eq!(cache.sweep(UnixSeconds(week_later.0 - 1)), 0);
    assert_eq!(cache.stats().tombstones, 1);
    assert_eq!(cache.sweep(week_later), 0, "no session has expired");
    assert_eq!((cache.stats().tombstones, cache.stats().expired), (0, 0));
}

#[test]
fn a_flood_of_deletions_flushes_no_sessions_and_is_counted() {
    let cache = Cache::new(64 * 1024, 1);
    for number in 0..100 {
        put(&cache, number, b"state", Provenance::Local);
    }
    for number in 1_000..100_000 {
        cache.delete(&session_id(number), two_hours(NOW).expires, NOW);
    }
    let stats = cache.stats();
    assert_eq!((stats.entries, stats.evicted_probation), (100, 0));
    assert!(stats.bytes <= stats.capacity_bytes);
    assert_eq!(stats.evicted_tombstones + stats.tombstones as u64, 99_000);
}

#[test]
fn tells_an_evicted_session_from_one_that_never_was() {
    let cache = Cache::new(64 * 1024, 1);
    for number in 0..1_000 {
        put(&cache, number, b"state", Provenance::Local);
    }
    let miss = |number| cache.get(&session_id(number), &policy("a"), NOW).unwrap_err();
    let evicted = 1_000 - cache.stats().entries as u64;
    let told = (0..evicted).filter(|number| miss(*number) == ResumptionFailure::Evicted).count();
    assert!(told > 100, "{told} of {evicted} evictions are remembered");
    let strangers = (10_000..20_000).filter(|number| miss(*number) == ResumptionFailure::Evicted).count();
    assert!(strangers < 10, "{strangers} of 10,000 strangers are taken for evicted");
}
