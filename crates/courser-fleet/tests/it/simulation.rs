//! Sixteen hosts in virtual time, with a network, clocks, restarts and an attacker as bad as they come. After every step it
//! is checked that no host holds what it may not hold; in calm weather, that every host has what it should have.
//!
//! Everything follows from a seed. A failure prints it, and how to see it again. More seeds than a handful:
//! `COURSER_SIM_SEEDS=1000 cargo test -p courser-session --test it simulation`.

mod host;
mod ledger;
mod network;
mod promises;
mod sabotage;
mod story;
mod tally;
mod workload;
mod world;

use std::time::Duration;

use courser_session::{Cache, Cursor, SharedSession, UnixSeconds};

use crate::Random;
use host::{Host, Settings};
use ledger::Check;
use sabotage::Sabotage;
use story::right_clock;
use tally::Tally;
use workload::{Work, Workload};
use world::{Event, World};

const HOSTS: usize = 16;

/// What a run is of.
#[derive(Clone, Debug)]
struct Plan {
    seed: u64,
    storms: u64,
    sabotage: Sabotage,
}

impl Plan {
    fn new(seed: u64) -> Self {
        Self { seed, storms: 3, sabotage: Sabotage::None }
    }
}

#[test]
fn nothing_forbidden_happens_and_calm_heals() {
    for seed in seeds() {
        let (tally, outcome) = run(&Plan::new(seed));
        if let Err(violation) = outcome {
            panic!(
                "seed {seed}: {}\nagain with: COURSER_SIM_SEED={seed} cargo test -p courser-session --test it \
                 simulation",
                violation.0
            );
        }
        assert_eventful(&tally);
    }
}

#[test]
fn a_seed_is_all_there_is_to_a_run() {
    let plan = Plan { storms: 1, ..Plan::new(7) };
    let [one, two] = [run(&plan), run(&plan)].map(|(tally, outcome)| {
        outcome.expect("this seed is as good as any");
        (tally.steps, tally.fingerprint())
    });
    assert_eq!(one, two);
}

fn seeds() -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse().expect("a number"));
    match (number("COURSER_SIM_SEED"), number("COURSER_SIM_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, count) => (1..=count.unwrap_or(4)).collect(),
    }
}

/// One story from its beginning to its end, or to the first violation.
fn run(plan: &Plan) -> (Tally, Check) {
    let mut world = stormy_world(plan);
    let outcome = world.run_until(world.end).and_then(|()| world.audit_all());
    let outcome =
        outcome.map_err(|violation| ledger::Violation(format!("at {} ms, {}", world.time, violation.0)));
    (world.tally, outcome)
}

/// Hosts of both modes, with clocks that are right; one that is far off, one of a future version, two of one name,
/// each in some of the seeds. Keys roll twice; in half of the seeds the fleet gets a new secret meanwhile.
fn stormy_world(plan: &Plan) -> World {
    let mut random = Random(plan.seed ^ 0x5eed);
    let lifetime = Duration::from_secs(30 + random.below(60));
    let settings = Settings { lifetime, cache_bytes: 2 << 20, epoch_seconds: 60, secrets: vec![1] };
    let mut hosts: Vec<_> = (0..HOSTS)
        .map(|number| Host::new(number, random.below(2) == 0, right_clock(random.next()), settings.clone()))
        .collect();
    if random.below(2) == 0 {
        hosts[5] = Host::new(5, random.below(2) == 0, far_off_clock(&mut random), settings.clone());
    }
    hosts[6].speaks_v3 = random.below(2) == 0;
    if random.below(3) == 0 {
        hosts[8].name = hosts[7].name.clone();
        (hosts[7].is_clone, hosts[8].is_clone) = (true, true);
    }
    let mut world = World::new(plan.seed, hosts, Workload::LIVELY, plan.sabotage);
    world.tell_storms(plan.storms);
    if random.below(2) == 0 {
        let begin = random.below(20_000);
        world.tell_rekeying(begin, lifetime.as_secs() * 1000);
    }
    world.after(1, Event::Work(Work::Make));
    world
}

/// From three minutes to an hour ahead or behind.
fn far_off_clock(random: &mut Random) -> i64 {
    let off = i64::try_from(180_000 + random.below(3_420_000)).expect("a small number");
    if random.below(2) == 0 { off } else { -off }
}

/// All that a cache holds.
fn held(cache: &Cache, now: UnixSeconds) -> Vec<SharedSession> {
    let (mut sessions, mut cursor) = (Vec::new(), Some(Cursor::START));
    while let Some(at) = cursor {
        let (batch, next) = cache.export(at, usize::MAX, now);
        sessions.extend(batch);
        cursor = next;
    }
    sessions
}

/// A run in which nothing happened shows nothing.
fn assert_eventful(tally: &Tally) {
    let enough = [
        (tally.made, 500),
        (tally.deleted, 5),
        (tally.resumed, 300),
        (tally.pulled, 1),
        (tally.tickets_resumed, 300),
        (tally.reached, 50),
        (tally.altered, 500),
        (tally.replayed, 100),
        (tally.starts, 5),
    ];
    assert!(enough.iter().all(|(count, least)| count >= least), "{tally:?}");
}
