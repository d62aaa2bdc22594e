//! The shard's structure after any sequence of operations: lists, table, slab and counters tell the same story.

use std::collections::HashSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{Lifespan, State};

#[derive(Clone, Debug)]
enum Op {
    Put { id: u8, len: usize, lifetime: u64, remote: bool },
    Get { id: u8 },
    Remove { id: u8 },
    Bury { id: u8, lifetime: u64 },
    Sweep { count: usize },
    Wait { seconds: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    let id = 0..80_u8;
    prop_oneof![
        6 => (id.clone(), 0..400_usize, 1..50_u64, any::<bool>())
            .prop_map(|(id, len, lifetime, remote)| Op::Put { id, len, lifetime, remote }),
        6 => id.clone().prop_map(|id| Op::Get { id }),
        1 => id.clone().prop_map(|id| Op::Remove { id }),
        2 => (id, 0..50_u64).prop_map(|(id, lifetime)| Op::Bury { id, lifetime }),
        1 => (0..10_usize).prop_map(|count| Op::Sweep { count }),
        1 => (0..20_u64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_leaves_a_sound_shard(ops in prop::collection::vec(op(), 1..400)) {
        let mut shard = Shard::new(8 * 1024);
        let mut now = UnixSeconds(1_000);
        for op in ops {
            apply(&mut shard, &op, &mut now);
            assert_sound(&shard);
        }
        shard.clear();
        assert_sound(&shard);
        prop_assert_eq!(shard.slab.len(), 0);
    }
}

#[test]
fn slots_that_move_keep_their_links_across_blocks() {
    let mut shard = Shard::new(1 << 20);
    let now = UnixSeconds(1_000);
    let put = |shard: &mut Shard, id| shard.put(entry(id, 10, 100, now, Provenance::Local), now);
    for id in 0..200 {
        assert_eq!(put(&mut shard, id), Put::Stored);
    }
    // From both ends and the middle, so that the last one moves into every kind of gap.
    for id in [0, 199, 100, 1, 198, 32, 31, 33, 63, 64, 65].into_iter().chain(66..180) {
        let _ = shard.remove_id(hash(id), &session_id(id));
        assert_sound(&shard);
    }
    assert_eq!(shard.get(hash(50), &session_id(50), &policy(), now).unwrap().state[..], [50; 10]);
}

#[test]
fn the_record_is_as_large_as_documented() {
    assert_eq!(size_of::<Node>(), 112, "correct the documentation of Cache too");
    assert_eq!(size_of::<crate::cache::Padded>(), 384, "correct the documentation of Cache too");
}

#[test]
fn an_expired_session_of_the_past_is_swept_by_the_puts_of_others() {
    let mut shard = Shard::new(1 << 20);
    for id in 0..50 {
        shard.put(entry(id, 10, 5, UnixSeconds(1_000), Provenance::Local), UnixSeconds(1_000));
    }
    let later = UnixSeconds(2_000);
    for id in 50..100 {
        shard.put(entry(id, 10, 100, later, Provenance::Local), later);
    }
    assert_eq!(shard.slab.len(), 50, "fifty puts look at a hundred sessions");
    assert_eq!(shard.stats().expired, 50);
}

fn apply(shard: &mut Shard, op: &Op, now: &mut UnixSeconds) {
    match *op {
        Op::Put { id, len, lifetime, remote } => {
            let origin = if remote { Provenance::Remote } else { Provenance::Local };
            shard.put(entry(id, len, lifetime, *now, origin), *now);
        }
        Op::Get { id } => drop(shard.get(hash(id), &session_id(id), &policy(), *now)),
        Op::Remove { id } => drop(shard.remove_id(hash(id), &session_id(id))),
        Op::Bury { id, lifetime } => {
            let until = now.plus(Duration::from_secs(lifetime));
            shard.delete(hash(id), &session_id(id), until, *now);
        }
        Op::Sweep { count } => drop(shard.sweep(count, *now)),
        Op::Wait { seconds } => now.0 += seconds,
    }
}

fn assert_sound(shard: &Shard) {
    let mut seen = HashSet::new();
    for segment in [Segment::Remote, Segment::Fresh, Segment::Protected, Segment::Tombstone] {
        assert_list_sound(shard, segment, &mut seen);
    }
    assert_eq!(seen.len(), shard.slab.len(), "each session is in one list");
    for slot in seen {
        let Node { entry, segment, .. } = &shard.slab[slot];
        assert_eq!(entry.state.is_none(), *segment == Segment::Tombstone, "a tombstone holds no state");
        assert_eq!(shard.index.find(&shard.slab, entry.hash, &entry.id), Some(slot));
    }
    assert!(shard.bytes() <= shard.limit, "{} of {} bytes", shard.bytes(), shard.limit);
    let tombstones = shard.list(Segment::Tombstone).bytes();
    assert!(tombstones <= shard.share(5), "{tombstones} bytes of tombstones");
    assert_eq!(tombstones, shard.tombstones * size_of::<Node>());
    assert!(shard.slab.capacity() <= shard.slab.len() + 2 * 32, "what is allocated follows what is held");
    assert_counters_reconcile(&shard.stats());
}

fn assert_list_sound(shard: &Shard, segment: Segment, seen: &mut HashSet<Slot>) {
    let list = shard.list(segment);
    let (mut bytes, mut at, mut newer) = (0, list.oldest(), None);
    while let Some(slot) = at {
        let node = &shard.slab[slot];
        assert_eq!(node.segment, segment);
        assert_eq!((node.next != NIL).then_some(node.next), newer, "links agree in both directions");
        assert!(seen.insert(slot), "a session is in two lists, or a list is a ring");
        bytes += node.cost();
        newer = Some(slot);
        at = (node.prev != NIL).then_some(node.prev);
    }
    assert!(newer.is_none_or(|slot| list.is_newest(slot)), "the last one reached is the head");
    assert_eq!(bytes, list.bytes());
}

fn assert_counters_reconcile(stats: &Stats) {
    let gone = stats.expired + stats.removed + stats.evicted_probation + stats.evicted_protected;
    assert_eq!(stats.entries as u64, stats.puts[Put::Stored as usize] - gone, "{stats:?}");
}

fn entry(id: u8, len: usize, lifetime: u64, now: UnixSeconds, origin: Provenance) -> Entry {
    Entry {
        id: session_id(id),
        hash: hash(id),
        policy: policy(),
        lifespan: Lifespan::new(now, Duration::from_secs(lifetime)),
        origin,
        state: Some(State::from(vec![id; len])),
    }
}

fn session_id(id: u8) -> SessionId {
    SessionId::try_from(&[id; 32][..]).unwrap()
}

/// Poor on purpose: chains of several sessions, some of them with equal hashes.
fn hash(id: u8) -> u32 {
    u32::from(id) % 23
}

fn policy() -> PolicyHash {
    PolicyHash::builder("listener", "host").finish()
}
