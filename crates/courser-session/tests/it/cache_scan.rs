//! Whether new sessions in masses flush those in use. Hit ratios are printed: `cargo test scan -- --nocapture`.

use std::collections::{BTreeMap, HashMap};

use courser_session::{Cache, Provenance, State};

use crate::{NOW, Random, policy, session_id, two_hours};

/// What one session costs here: 112 bytes of record, 48 and 160 of state.
const COST: usize = 320;
const STATE: [u8; 150] = [7; 150];
const CAPACITY: usize = 1_000;

/// One shard, so that all shares are of the whole.
fn cache() -> Cache {
    // The table's 4 bytes for each 256 at most come off.
    Cache::new(CAPACITY * COST * 65 / 64, 1)
}

fn put(cache: &Cache, id: u64, origin: Provenance) {
    assert!(
        cache
            .put(&session_id(id), policy("a"), State::from(&STATE[..]), two_hours(NOW), origin, NOW)
            .is_stored()
    );
}

fn hit(cache: &Cache, id: u64) -> bool {
    cache.get(&session_id(id), &policy("a"), NOW).is_ok()
}

/// Of the sessions `ids`, how many are still here.
fn left(cache: &Cache, ids: std::ops::Range<u64>) -> usize {
    ids.filter(|id| hit(cache, *id)).count()
}

#[test]
fn a_pass_of_new_sessions_does_not_flush_those_in_use() {
    let cache = cache();
    for id in 0..500 {
        put(&cache, id, Provenance::Local);
        assert!(hit(&cache, id));
    }
    for id in 1_000..11_000 {
        put(&cache, id, Provenance::Local);
    }
    let left = left(&cache, 0..500);
    println!("scan of 10 capacities: {left} of 500 sessions in use are left");
    assert_eq!(left, 500);
}

#[test]
fn a_session_in_use_whose_state_is_replaced_stays_in_use() {
    let cache = cache();
    put(&cache, 0, Provenance::Local);
    assert!(hit(&cache, 0));
    put(&cache, 0, Provenance::Local);
    for id in 1_000..3_000 {
        put(&cache, id, Provenance::Local);
    }
    assert!(hit(&cache, 0));
}

#[test]
fn a_flood_from_elsewhere_flushes_neither_used_nor_new_local_sessions() {
    let cache = cache();
    for id in 0..500 {
        put(&cache, id, Provenance::Local);
        assert!(hit(&cache, id));
    }
    for id in 500..700 {
        put(&cache, id, Provenance::Local);
    }
    for id in 1_000..11_000 {
        put(&cache, id, Provenance::Remote);
    }
    let (used, new) = (left(&cache, 0..500), left(&cache, 500..700));
    println!(
        "flood of 10 capacities from elsewhere: {used} of 500 used and {new} of 200 new local sessions are left"
    );
    assert_eq!((used, new), (500, 200));
}

#[test]
fn sessions_from_elsewhere_are_kept_where_there_is_room() {
    let cache = cache();
    for id in 0..900 {
        put(&cache, id, Provenance::Remote);
    }
    assert_eq!(left(&cache, 0..900), 900);
}

/// Returning clients among ones that never return, against a plain LRU of as many sessions.
#[test]
fn a_scan_costs_less_than_with_a_plain_lru() {
    let (ours, lru) = simulate(&Workload { strangers_percent: 60, clients: 2_000, drift: 0 }, 0x5eed);
    println!("60 % strangers: hit ratio {ours:.3}, plain LRU {lru:.3}");
    assert!(ours > lru + 0.2, "{ours:.3} against {lru:.3}");
}

/// Segments must not cost where there is nothing to scan.
#[test]
fn without_a_scan_it_is_as_good_as_a_plain_lru() {
    let (ours, lru) = simulate(&Workload { strangers_percent: 0, clients: 2_000, drift: 0 }, 0x5eed);
    println!("no strangers: hit ratio {ours:.3}, plain LRU {lru:.3}");
    assert!(ours >= lru, "{ours:.3} against {lru:.3}");
}

/// Clients that come for a while and then never again: old favourites in the protected segment are of no use here.
#[test]
fn when_the_clients_change_it_loses_at_most_three_points() {
    let (ours, lru) = simulate(&Workload { strangers_percent: 0, clients: 2_000, drift: 10 }, 0x5eed);
    println!("clients change: hit ratio {ours:.3}, plain LRU {lru:.3}");
    assert!(ours > lru - 0.03, "{ours:.3} against {lru:.3}");
}

struct Workload {
    strangers_percent: u64,
    /// How many clients may return at a time.
    clients: u64,
    /// After how many arrivals one of them goes for good and a new one takes its place; 0 if never.
    drift: u64,
}

/// Hit ratios of returning clients: the cache's and a plain LRU's, on the same arrivals.
fn simulate(workload: &Workload, seed: u64) -> (f64, f64) {
    println!("seed {seed:#x}");
    let (cache, mut lru, mut random) = (cache(), Lru::default(), Random(seed));
    let (mut ours, mut theirs, mut returns) = (0, 0, 0);
    for arrival in 0..200_000_u64 {
        let stranger = random.below(100) < workload.strangers_percent;
        let gone = arrival.checked_div(workload.drift).unwrap_or(0);
        let id = if stranger { 1_000_000 + arrival } else { gone + skewed(&mut random, workload.clients) };
        let (our_hit, lru_hit) = (hit(&cache, id), lru.visit(id));
        if !our_hit {
            put(&cache, id, Provenance::Local);
        }
        // The first tenth fills both.
        if !stranger && arrival > 20_000 {
            returns += 1;
            ours += u32::from(our_hit);
            theirs += u32::from(lru_hit);
        }
    }
    (f64::from(ours) / f64::from(returns), f64::from(theirs) / f64::from(returns))
}

/// A client: the lower numbers come more often (the density falls as one over the square root).
fn skewed(random: &mut Random, clients: u64) -> u64 {
    let (a, b) = (random.below(clients), random.below(clients));
    a * b / clients
}

/// A plain LRU of as many sessions as the cache holds.
#[derive(Default)]
struct Lru {
    last_visit: HashMap<u64, u64>,
    by_visit: BTreeMap<u64, u64>,
    visits: u64,
}

impl Lru {
    /// Whether the session was here; it is now the newest.
    fn visit(&mut self, id: u64) -> bool {
        self.visits += 1;
        let before = self.last_visit.insert(id, self.visits);
        if let Some(visit) = before {
            self.by_visit.remove(&visit);
        }
        self.by_visit.insert(self.visits, id);
        if self.by_visit.len() > CAPACITY {
            let (_, oldest) = self.by_visit.pop_first().expect("there are more than the capacity");
            self.last_visit.remove(&oldest);
        }
        before.is_some()
    }
}
