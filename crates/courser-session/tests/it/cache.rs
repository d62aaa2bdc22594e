//! What a put, a get, a take and a remove mean.

use std::time::Duration;

use courser_session::{Cache, Lifespan, Miss, Origin, Put, State, UnixSeconds};

use crate::{NOW, policy, session_id, two_hours};

fn put(cache: &Cache, number: u64, state: &[u8], origin: Origin) -> Put {
    cache.put(&session_id(number), policy("a"), State::from(state), two_hours(NOW), origin, NOW)
}

#[test]
fn returns_what_was_put_with_its_original_lifespan() {
    let cache = Cache::new(1 << 20, 4);
    assert_eq!(put(&cache, 1, b"state", Origin::Local), Put::Stored);
    let stored = cache.get(&session_id(1), &policy("a"), UnixSeconds(NOW.0 + 3600)).unwrap();
    assert_eq!(&stored.state[..], b"state");
    assert_eq!(stored.lifespan, two_hours(NOW));
    assert_eq!(cache.get(&session_id(2), &policy("a"), NOW).unwrap_err(), Miss::NotFound);
}

#[test]
fn another_policy_misses_and_leaves_the_session_to_its_own() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    assert_eq!(cache.get(&session_id(1), &policy("b"), NOW).unwrap_err(), Miss::OtherPolicy);
    assert_eq!(cache.take(&session_id(1), &policy("b"), NOW).unwrap_err(), Miss::OtherPolicy);
    assert!(cache.get(&session_id(1), &policy("a"), NOW).is_ok());
}

#[test]
fn use_does_not_extend_a_life() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    for seconds in (0..7200).step_by(60) {
        assert!(cache.get(&session_id(1), &policy("a"), UnixSeconds(NOW.0 + seconds)).is_ok());
    }
    let end = UnixSeconds(NOW.0 + 7200);
    assert_eq!(cache.get(&session_id(1), &policy("a"), end).unwrap_err(), Miss::Expired);
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(), Miss::NotFound, "it is gone");
    assert_eq!(cache.stats().expired, 1);
}

#[test]
fn a_clock_set_back_hides_a_session_until_its_time() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    let before = UnixSeconds(NOW.0 - 61);
    assert_eq!(cache.get(&session_id(1), &policy("a"), before).unwrap_err(), Miss::NotYetValid);
    assert!(cache.get(&session_id(1), &policy("a"), NOW).is_ok());
}

#[test]
fn take_gives_a_session_once() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    assert_eq!(&cache.take(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"state");
    assert_eq!(cache.take(&session_id(1), &policy("a"), NOW).unwrap_err(), Miss::NotFound);
}

#[test]
fn remove_forgets_and_says_whether_there_was_something() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    assert!(cache.remove(&session_id(1)));
    assert!(!cache.remove(&session_id(1)));
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(), Miss::NotFound);
}

#[test]
fn a_session_from_elsewhere_does_not_replace_one_that_lives() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"ours", Origin::Local);
    assert_eq!(put(&cache, 1, b"theirs", Origin::Remote), Put::Kept);
    assert_eq!(&cache.get(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"ours");
    assert_eq!(put(&cache, 1, b"newer", Origin::Local), Put::Replaced);
    assert_eq!(&cache.get(&session_id(1), &policy("a"), NOW).unwrap().state[..], b"newer");
}

#[test]
fn refuses_lives_that_are_over_or_not_begun() {
    let cache = Cache::new(1 << 20, 4);
    let hour = Duration::from_secs(3600);
    for created in [UnixSeconds(NOW.0 - 3600), UnixSeconds(NOW.0 + 61)] {
        let lifespan = Lifespan::new(created, hour);
        let put =
            cache.put(&session_id(1), policy("a"), State::from(&b"x"[..]), lifespan, Origin::Remote, NOW);
        assert_eq!(put, Put::NotAlive);
    }
    assert_eq!(cache.stats().refused_not_alive, 2);
    assert_eq!(cache.stats().entries, 0);
}

#[test]
fn refuses_what_would_evict_too_much() {
    let cache = Cache::new(64 * 1024, 1);
    assert_eq!(put(&cache, 1, &[1; 16 * 1024], Origin::Local), Put::TooLarge);
    assert_eq!(put(&cache, 1, &[1; 4 * 1024], Origin::Local), Put::Stored);
}

#[test]
fn a_cache_of_no_bytes_stores_nothing_and_works() {
    let cache = Cache::new(0, 64);
    assert_eq!(put(&cache, 1, b"state", Origin::Local), Put::TooLarge);
    assert_eq!(cache.get(&session_id(1), &policy("a"), NOW).unwrap_err(), Miss::NotFound);
}

#[test]
fn sweep_empties_an_idle_cache_of_what_has_expired() {
    let cache = Cache::new(1 << 20, 4);
    for number in 0..500 {
        put(&cache, number, b"state", Origin::Local);
    }
    let late = Lifespan::new(UnixSeconds(NOW.0 + 60), 2 * Duration::from_secs(3600));
    for number in 500..600 {
        cache.put(&session_id(number), policy("a"), State::from(&b"x"[..]), late, Origin::Local, NOW);
    }
    assert_eq!(cache.sweep(NOW), 0);
    assert_eq!(cache.sweep(two_hours(NOW).expires), 500);
    assert_eq!(cache.stats().entries, 100);
}

#[test]
fn misses_are_counted_by_reason() {
    let cache = Cache::new(1 << 20, 4);
    put(&cache, 1, b"state", Origin::Local);
    let _ = cache.get(&session_id(1), &policy("a"), NOW);
    let _ = cache.get(&session_id(1), &policy("b"), NOW);
    let _ = cache.get(&session_id(2), &policy("a"), NOW);
    let _ = cache.get(&session_id(3), &policy("a"), NOW);
    let _ = cache.get(&session_id(1), &policy("a"), two_hours(NOW).expires);
    let stats = cache.stats();
    assert_eq!(stats.hits, 1);
    let counted: Vec<_> = stats.misses.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(Miss::NotFound, 2), (Miss::Expired, 1), (Miss::OtherPolicy, 1)]);
    assert_eq!(stats.misses.total(), 4);
}
