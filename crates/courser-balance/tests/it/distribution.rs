//! Who gets how much.

use std::collections::BTreeMap;
use std::time::Duration;

use courser_balance::{AffinityKey, Balance};
use statrs::distribution::{ChiSquared, ContinuousCDF};

use crate::support::{counts, keyed, place, pool};

const NOW: Duration = Duration::from_secs(1000);
const CONNECTIONS: u64 = 100_000;

/// How probable a distribution at least this uneven is, if each server gets its weight's part at random (chi-square test).
#[expect(clippy::cast_precision_loss, reason = "counts of a test")]
fn p_value(counts: &[u64], weights: &[u32]) -> f64 {
    let (all, whole) = (counts.iter().sum::<u64>() as f64, f64::from(weights.iter().sum::<u32>()));
    let deviation = |(count, weight): (&u64, &u32)| {
        let expected = all * f64::from(*weight) / whole;
        (*count as f64 - expected).powi(2) / expected
    };
    let statistic = counts.iter().zip(weights).map(deviation).sum();
    ChiSquared::new((counts.len() - 1) as f64).expect("two servers at least").sf(statistic)
}

#[test]
fn every_policy_distributes_evenly_among_equals() {
    for balance in [Balance::Least, Balance::RoundRobin, Balance::Random, Balance::Latency] {
        for (servers, open) in [(2, 0), (5, 3), (16, 100), (40, 1000)] {
            let weights = vec![1; servers];
            let counts = counts(&pool(balance, &weights, None), CONNECTIONS, open, NOW);
            let p = p_value(&counts, &weights);
            assert!(p > 0.001, "{balance:?}, {servers} servers, {open} open: p = {p}, {counts:?}");
        }
    }
}

#[test]
fn weights_are_kept_to_one_percent() {
    let weights = [100, 50, 25, 25];
    for (balance, open) in [(Balance::Least, 0), (Balance::Least, 400), (Balance::RoundRobin, 400)] {
        let counts = counts(&pool(balance, &weights, None), CONNECTIONS, open, NOW);
        for (count, weight) in counts.iter().zip(weights) {
            let expected = CONNECTIONS * u64::from(weight) / 200;
            assert!(count.abs_diff(expected) * 100 <= expected, "{balance:?}, {open} open: {counts:?}");
        }
    }
    let counts = counts(&pool(Balance::Random, &weights, None), CONNECTIONS, 0, NOW);
    assert!(p_value(&counts, &weights) > 0.001, "{counts:?}");
}

#[test]
fn equals_take_strict_turns_while_nobody_has_a_connection() {
    for balance in [Balance::Least, Balance::RoundRobin] {
        let pool = pool(balance, &[1, 1, 1], None);
        let order: Vec<_> = (0..6).map(|number| place(&pool, number, NOW).unwrap().server().target).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
    }
}

/// Mean time of connections to servers of which two take a hundred times as long, in units of a fast server's.
fn mean_time(balance: Balance, servers: usize) -> f64 {
    let pool = pool(balance, &vec![1; servers], None);
    let (mut open, mut sum) = (BTreeMap::<u64, Vec<_>>::new(), 0u32);
    let connections = 50_000u32;
    for number in 0..connections {
        // As many arrive in a unit of time as there are servers.
        let now = u64::from(number) / servers as u64;
        open = open.split_off(&(now + 1));
        let place = place(&pool, u64::from(number), NOW).expect("no server has a limit");
        let time = if place.server().target < 2 { 100 } else { 1 };
        sum += time;
        open.entry(now + u64::from(time)).or_default().push(place);
    }
    f64::from(sum) / f64::from(connections)
}

#[test]
fn slow_servers_get_little() {
    for servers in [4, 40] {
        let (least, random) = (mean_time(Balance::Least, servers), mean_time(Balance::Random, servers));
        assert!(least * 3.0 < random, "{servers} servers: least {least}, random {random}");
    }
}

#[test]
fn latency_avoids_the_server_that_is_slow_to_connect() {
    let pool = pool(Balance::Latency, &[1, 1, 1], None);
    for server in pool.servers().iter() {
        let taken = if server.target == 0 { 50 } else { 1 };
        server.connected(Duration::from_millis(taken), NOW);
    }
    let counts = counts(&pool, 1000, 20, NOW);
    assert!(counts[0] < 20, "{counts:?}");
}

fn owners(pool: &courser_balance::Pool<usize>) -> Vec<String> {
    let key = |number: u32| AffinityKey::of(format!("192.0.2.{number}").as_bytes());
    (0..20_000).map(|number| keyed(pool, key(number), NOW).server().name.clone()).collect()
}

#[test]
fn a_key_stays_and_a_server_that_goes_moves_its_own_alone() {
    let (before, after) =
        (owners(&pool(Balance::Least, &[1; 10], None)), owners(&pool(Balance::Least, &[1; 9], None)));
    let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    let gone = before.iter().filter(|name| *name == "10.0.0.9:80").count();
    assert_eq!(moved, gone, "only clients of the server that is gone move");
    assert!((1600..2400).contains(&gone), "it had a tenth of all: {gone}");
}

#[test]
fn keys_are_spread_by_weight() {
    let weights = [3, 1];
    let mut counts = [0; 2];
    for owner in owners(&pool(Balance::Least, &weights, None)) {
        counts[usize::from(owner == "10.0.0.1:80")] += 1;
    }
    assert!(p_value(&counts, &weights) > 0.001, "{counts:?}");
}

#[test]
fn one_key_that_everybody_has_does_not_sink_its_server() {
    let pool = pool(Balance::Least, &[1; 4], None);
    let key = AffinityKey::of(b"a carrier's one address");
    let places: Vec<_> = (0..400).map(|_| keyed(&pool, key, NOW)).collect();
    let most = pool.servers().iter().map(|server| server.in_flight()).max().unwrap();
    assert!((140..=142).contains(&most), "a quarter above its share of 100, and 16: {most}");
    drop(places);
}

#[test]
fn a_client_with_several_connections_stays_whole_in_a_quiet_pool() {
    let pool = pool(Balance::Least, &[1; 4], None);
    let key = AffinityKey::of(b"a browser");
    let places: Vec<_> = (0..6).map(|_| keyed(&pool, key, NOW)).collect();
    let first = &places[0].server().name;
    assert!(places.iter().all(|place| place.server().name == *first), "six connections, one server");
}
