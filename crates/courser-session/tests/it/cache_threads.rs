//! One cache, many workers.

use std::sync::atomic::{AtomicU64, Ordering};

use courser_session::{Cache, Provenance, Put, State};

use crate::{NOW, Random, policy, session_id, two_hours};

const THREADS: u64 = 8;

/// A state that tells which session it belongs to.
fn state_of(number: u64) -> State {
    State::from(number.to_be_bytes().repeat(20))
}

#[test]
fn eight_workers_never_see_each_others_states_mixed_up() {
    let cache = Cache::new(256 * 1024, 4);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let cache = &cache;
            scope.spawn(move || work(cache, Random(thread)));
        }
    });
    let stats = cache.stats();
    assert!(
        stats.hits > 0 && stats.evicted_probation > 0,
        "the test is of a cache under pressure: {stats:?}"
    );
    assert!(stats.bytes <= stats.capacity_bytes);
    let gone = stats.expired + stats.removed + stats.evicted_probation + stats.evicted_protected;
    assert_eq!(stats.entries as u64 + gone, stats.puts[Put::Stored as usize]);
}

fn work(cache: &Cache, mut random: Random) {
    for _ in 0..20_000 {
        let number = random.below(3_000);
        let id = session_id(number);
        match random.below(8) {
            0..3 => {
                cache.put(&id, policy("a"), state_of(number), two_hours(NOW), Provenance::Local, NOW);
            }
            3..5 => drop(cache.remove(&id)),
            _ => {
                if let Ok(stored) = cache.get(&id, &policy("a"), NOW) {
                    assert_eq!(stored.state[..], state_of(number)[..]);
                }
            }
        }
    }
}

#[test]
fn of_eight_workers_that_remove_a_session_one_finds_it() {
    let cache = Cache::new(1 << 20, 4);
    for number in 0..1_000 {
        cache.put(&session_id(number), policy("a"), state_of(number), two_hours(NOW), Provenance::Local, NOW);
    }
    let removed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let got = (0..1_000).filter(|number| cache.remove(&session_id(*number)));
                removed.fetch_add(got.count() as u64, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(removed.into_inner(), 1_000);
    assert_eq!(cache.stats().entries, 0);
}
