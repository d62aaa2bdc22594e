//! Servers that fail, and pools of which nothing is left.

use std::time::Duration;

use std::num::NonZeroU32;

use courser_balance::{Availability, Balance, Drain, Pick, Pool, Request, ServerSettings, Sharer};

use crate::support::{counts, place, pool, request};

fn at(seconds: u64) -> Duration {
    Duration::from_secs(1000 + seconds)
}

#[test]
fn a_dead_server_costs_three_connections_and_then_one_now_and_then() {
    let pool = pool(Balance::Least, &[1; 4], None);
    let mut attempts = 0;
    for second in 0..60 {
        for number in 0..100 {
            let chosen = place(&pool, second * 100 + number, at(second)).unwrap();
            if chosen.server().target == 2 {
                attempts += 1;
                pool.failed(chosen.server(), at(second));
            } else {
                chosen.server().answered();
            }
        }
    }
    // Three at first; then one after 5, 15 and 35 seconds, at a tenth of its weight each time.
    assert!((4..=7).contains(&attempts), "{attempts}");
}

#[test]
fn at_most_half_of_a_pool_is_ejected() {
    for servers in 1..=5 {
        let pool = pool(Balance::Least, &vec![1; servers], None);
        for server in pool.servers().iter() {
            for _ in 0..10 {
                pool.failed(server, at(0));
            }
        }
        let ejected = pool
            .servers()
            .iter()
            .filter(|server| server.availability(at(0)) == Availability::Ejected)
            .count();
        assert_eq!(ejected, servers / 2, "of {servers}");
    }
}

#[test]
fn where_all_are_bad_all_are_used() {
    let pool = pool(Balance::Least, &[1; 4], None);
    for server in pool.servers().iter() {
        server.set_down(true, at(0));
    }
    assert_eq!(counts(&pool, 100, 0, at(1)), [25; 4]);
    pool.servers()[1].set_drained(Drain::Operator, true, at(1));
    assert_eq!(counts(&pool, 99, 0, at(1)), [33, 0, 33, 33], "what the operator has drained is not");
}

#[test]
fn a_server_that_has_failed_a_connection_is_not_chosen_for_it_again() {
    let pool = pool(Balance::Least, &[1; 3], None);
    let mut tried = Vec::new();
    for _ in 0..3 {
        let Pick::Server(place) = pool.choose(&Request { tried: &tried, ..request(5) }, at(0)) else {
            panic!("{} of 3 tried, and none left", tried.len());
        };
        tried.push(std::sync::Arc::clone(place.server()));
    }
    tried.sort_by_key(|server| server.target);
    assert_eq!(tried.iter().map(|server| server.target).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(matches!(pool.choose(&Request { tried: &tried, ..request(5) }, at(0)), Pick::None));
}

#[test]
fn a_server_that_came_back_gets_little_at_first_unless_all_did() {
    let some = pool(Balance::RoundRobin, &[1; 4], None);
    some.servers()[0].set_down(true, at(0));
    some.servers()[0].set_down(false, at(10));
    let counts = |pool: &_, second| counts(pool, 3100, 0, at(second));
    assert!((90..=110).contains(&counts(&some, 10)[0]), "a tenth of the others' weight");
    assert_eq!(counts(&some, 40), [775; 4]);
    let all = pool(Balance::RoundRobin, &[1; 4], None);
    for server in all.servers().iter() {
        server.set_down(true, at(0));
        server.set_down(false, at(10));
    }
    assert_eq!(counts(&all, 10), [775; 4]);
}

#[test]
fn servers_of_a_lower_priority_are_for_when_the_others_cannot() {
    let pool = Pool::new(Balance::Least, false);
    let server = |target: usize, priority| {
        let (name, weight) = (target.to_string(), NonZeroU32::MIN);
        pool.server(ServerSettings { name, target, weight, limit: None, priority })
    };
    let servers = vec![server(0, 20), server(1, 10), server(2, 10)];
    let pool = pool.with(servers);
    assert_eq!(counts(&pool, 100, 0, at(0)), [0, 50, 50]);
    pool.servers()[1].set_down(true, at(0));
    assert_eq!(counts(&pool, 100, 0, at(0)), [0, 0, 100]);
    pool.servers()[2].set_down(true, at(0));
    assert_eq!(counts(&pool, 100, 0, at(0)), [100, 0, 0]);
}

#[test]
fn a_weight_of_nothing_gets_nothing() {
    let pool = pool(Balance::Least, &[1, 1], None);
    pool.servers()[0].set_percent(Sharer::Operator, 0);
    assert_eq!(counts(&pool, 100, 10, at(0)), [0, 100]);
    pool.servers()[1].set_down(true, at(0));
    assert_eq!(counts(&pool, 100, 10, at(0)), [0, 100], "not even as the last resort");
    pool.servers()[1].set_down(false, at(0));
    pool.servers()[0].set_percent(Sharer::Operator, 50);
    let counts = counts(&pool, 3000, 0, at(60));
    assert!((990..=1010).contains(&counts[0]), "{counts:?}");
}

#[test]
fn neither_the_operator_nor_the_agent_undoes_what_the_other_says_of_a_weight() {
    let pool = pool(Balance::Least, &[1, 1], None);
    let servers = pool.servers();
    let server = &servers[0];
    assert!(server.set_percent(Sharer::Operator, 50));
    assert!(server.set_percent(Sharer::Agent, 50));
    assert!(!server.set_percent(Sharer::Agent, 50), "nothing has changed");
    assert_eq!(server.percent(), 25);
    let shares = counts(&pool, 5000, 0, at(0));
    assert!((990..=1010).contains(&shares[0]), "{shares:?}");
    server.set_percent(Sharer::Agent, 0);
    assert!(server.set_percent(Sharer::Operator, 100));
    assert_eq!(counts(&pool, 10, 0, at(0)), [0, 10]);
    server.set_percent(Sharer::Agent, 200);
    assert_eq!(server.percent(), 200, "an agent may ask for more");
}

#[test]
fn a_limit_that_is_set_later_holds_and_one_that_is_lifted_lets_in() {
    let pool = pool(Balance::Least, &[1], None);
    let servers = pool.servers();
    let held: Vec<_> = (0..3).filter_map(|_| servers[0].try_take()).collect();
    assert!(servers[0].set_limit(NonZeroU32::new(3)));
    assert!(servers[0].try_take().is_none());
    drop(held);
    let held: Vec<_> = (0..5).filter_map(|_| servers[0].try_take()).collect();
    assert_eq!(held.len(), 3);
    assert!(servers[0].set_limit(None));
    assert!(servers[0].try_take().is_some());
}

#[test]
fn that_a_pool_has_nothing_good_left_is_news_once() {
    let pool = pool(Balance::Least, &[1, 1], None);
    let heard: Vec<_> =
        [false, true, true, false, true].map(|is| pool.set_desperate(is)).into_iter().collect();
    assert_eq!(heard, [false, true, false, true, true]);
}
