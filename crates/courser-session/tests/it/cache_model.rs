//! The cache against a model too simple to be wrong: a map that never evicts.

use std::collections::HashMap;
use std::time::Duration;

use courser_session::{
    Cache, Lifespan, Provenance, Put, ResumptionFailure, State, Stats, Stored, UnixSeconds,
};
use proptest::prelude::*;

use crate::{NOW, policy, session_id};

const POLICIES: [&str; 2] = ["a", "b"];

#[derive(Clone, Debug)]
enum Op {
    Put { id: u64, policy: usize, state: Vec<u8>, lifetime: u64, origin: Provenance },
    Get { id: u64, policy: usize },
    Remove { id: u64 },
    Bury { id: u64, lifetime: u64 },
    Sweep,
    Wait { seconds: u64 },
}

fn ops(ids: u64) -> impl Strategy<Value = Vec<Op>> {
    let (id, policy) = (0..ids, 0..POLICIES.len());
    let origin = prop_oneof![Just(Provenance::Local), Just(Provenance::Remote)];
    // Drawn byte by byte, the states would take most of the test's time.
    let state = (any::<u8>(), 0..600_usize).prop_map(|(byte, len)| vec![byte; len]);
    let put = (id.clone(), policy.clone(), state, 1..100_u64, origin);
    let op = prop_oneof![
        8 => put.prop_map(|(id, policy, state, lifetime, origin)| Op::Put { id, policy, state, lifetime, origin }),
        8 => (id.clone(), policy.clone()).prop_map(|(id, policy)| Op::Get { id, policy }),
        1 => id.clone().prop_map(|id| Op::Remove { id }),
        2 => (id, 0..100_u64).prop_map(|(id, lifetime)| Op::Bury { id, lifetime }),
        1 => Just(Op::Sweep),
        2 => (0..30_u64).prop_map(|seconds| Op::Wait { seconds }),
    ];
    prop::collection::vec(op, 1..500)
}

proptest! {
    /// With room for all, each answer is the model's.
    #[test]
    fn a_roomy_cache_answers_as_the_model(ops in ops(40)) {
        run(&Cache::new(64 << 20, 8), ops, true);
    }

    /// Without room, a session may be gone; but what is returned is what the model has, never what was expired,
    /// replaced, removed or of another policy.
    #[test]
    fn a_tight_cache_returns_nothing_that_the_model_would_not(ops in ops(200)) {
        run(&Cache::new(16 * 1024, 1), ops, false);
    }
}

/// The model: what was put last under each ID, and how often each counter should have been raised.
#[derive(Default)]
struct Model {
    sessions: HashMap<u64, (usize, Vec<u8>, Lifespan)>,
    /// Until when each ID is buried.
    buried: HashMap<u64, UnixSeconds>,
    hits: u64,
    misses: u64,
    puts: u64,
}

impl Model {
    fn answer(
        &self,
        id: u64,
        policy: usize,
        now: UnixSeconds,
    ) -> Result<(&[u8], Lifespan), ResumptionFailure> {
        if let Some(until) = self.buried.get(&id) {
            return Err(if now < *until { ResumptionFailure::Deleted } else { ResumptionFailure::Expired });
        }
        let (bound_to, state, lifespan) = self.sessions.get(&id).ok_or(ResumptionFailure::NotFound)?;
        if now >= lifespan.expires {
            return Err(ResumptionFailure::Expired);
        }
        if *bound_to != policy {
            return Err(ResumptionFailure::OtherPolicy);
        }
        Ok((state, *lifespan))
    }

    /// Compares an answer. Where there is no room for all, or once the cache has swept, an unknown session is right.
    fn judge(
        &mut self,
        id: u64,
        policy: usize,
        now: UnixSeconds,
        got: &Result<Stored, ResumptionFailure>,
        exact: bool,
    ) {
        let expected = self.answer(id, policy, now);
        match got {
            Ok(stored) => assert_eq!(Ok((&stored.state[..], stored.lifespan)), expected),
            Err(ResumptionFailure::NotFound) if !exact || expected == Err(ResumptionFailure::Expired) => {}
            Err(ResumptionFailure::Evicted) => assert!(!exact),
            // A tombstone that would have stood longer had to make room; the one that came after it is over.
            Err(ResumptionFailure::Expired) if !exact && expected == Err(ResumptionFailure::Deleted) => {}
            Err(miss) => assert_eq!(Err(*miss), expected),
        }
        match got {
            Ok(_) => self.hits += 1,
            Err(_) => self.misses += 1,
        }
    }
}

fn run(cache: &Cache, ops: Vec<Op>, exact: bool) {
    let mut model = Model::default();
    let mut now = NOW;
    for op in ops {
        step(cache, &mut model, op, &mut now, exact);
        assert_reconciles(&cache.stats(), &model);
    }
}

fn step(cache: &Cache, model: &mut Model, op: Op, now: &mut UnixSeconds, exact: bool) {
    match op {
        Op::Put { id, policy: p, state, lifetime, origin } => {
            let lifespan = Lifespan::new(*now, Duration::from_secs(lifetime));
            let put = cache.put(
                &session_id(id),
                policy(POLICIES[p]),
                State::from(&state[..]),
                lifespan,
                origin,
                *now,
            );
            model.puts += 1;
            let remote = origin == Provenance::Remote;
            let lives = model.sessions.get(&id).is_some_and(|(.., lifespan)| *now < lifespan.expires);
            let buried = model.buried.get(&id).is_some_and(|until| *now < *until);
            let refused = [(Put::Duplicate, lives && remote), (Put::Tombstoned, buried && remote)]
                .into_iter()
                .find(|(_, so)| *so);
            let refused = refused.map(|(reason, _)| reason);
            assert!(put.is_stored() || Some(put) == refused, "{put:?}");
            assert!(!exact || put.is_stored() == refused.is_none(), "{put:?}");
            if put.is_stored() {
                model.buried.remove(&id);
                model.sessions.insert(id, (p, state, lifespan));
            }
        }
        Op::Get { id, policy: p } => {
            let peeked = cache.peek(&session_id(id), &policy(POLICIES[p]), *now);
            let got = cache.get(&session_id(id), &policy(POLICIES[p]), *now);
            assert_eq!(peeked.err(), got.as_ref().err().copied(), "a look says what a use will");
            model.judge(id, p, *now, &got, exact);
        }
        Op::Remove { id } => {
            let was_there = cache.remove(&session_id(id));
            let known = model.sessions.remove(&id).is_some();
            assert!(known || !was_there, "a session that was never put was removed");
        }
        Op::Bury { id, lifetime } => {
            let until = now.plus(Duration::from_secs(lifetime));
            let was_there = cache.delete(&session_id(id), until, *now);
            let known = model.sessions.remove(&id).is_some();
            assert!(known || !was_there, "a session that was never put was buried");
            let stands = model.buried.get(&id).copied().filter(|until| *now < *until);
            model.buried.insert(id, until.max(stands.unwrap_or(until)));
        }
        Op::Sweep => drop(cache.sweep(*now)),
        Op::Wait { seconds } => now.0 += seconds,
    }
}

fn assert_reconciles(stats: &Stats, model: &Model) {
    assert!(stats.bytes <= stats.capacity_bytes, "{stats:?}");
    assert_eq!(stats.hits, model.hits);
    assert_eq!(stats.failed, model.misses);
    let refused = stats.puts[Put::Duplicate as usize..].iter().sum::<u64>();
    assert_eq!(stats.puts[Put::Stored as usize] + stats.puts[Put::Replaced as usize] + refused, model.puts);
    let gone = stats.expired + stats.removed + stats.evicted_probation + stats.evicted_protected;
    assert_eq!(stats.entries as u64 + gone, stats.puts[Put::Stored as usize], "{stats:?}");
    assert!(stats.entries <= model.sessions.len(), "more is held than was put and not removed");
}
