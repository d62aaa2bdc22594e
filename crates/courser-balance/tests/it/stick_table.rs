//! Sessions and their servers: found while they live, forgotten in order, at a fixed size.

use std::sync::Arc;
use std::time::Duration;

use courser_balance::{Balance, Pick, Pool, Request, Server, StickTable};

use crate::support::{pool, request};

const NOW: Duration = Duration::from_secs(1000);
const LIFETIME: Duration = Duration::from_secs(3600);

fn server(pool: &Pool<usize>, index: usize) -> Arc<Server<usize>> {
    Arc::clone(&pool.servers()[index])
}

/// The server of a session, where the table has one and it takes the connection, else any.
fn chosen(pool: &Pool<usize>, table: &StickTable, session: u64, now: Duration) -> usize {
    match pool.choose(&Request { key: table.find(session, now), ..request(0) }, now) {
        Pick::Server(place) => place.server().target,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_is_at_its_server_until_it_expires() {
    let (pool, table) = (pool(Balance::RoundRobin, &[1; 4], None), StickTable::new(64, LIFETIME));
    table.store(7, &server(&pool, 3), NOW);
    assert_eq!(chosen(&pool, &table, 7, NOW + LIFETIME - Duration::from_secs(1)), 3);
    assert_eq!(table.find(7, NOW + LIFETIME), None);
    assert_eq!(table.find(8, NOW), None);
}

#[test]
fn one_that_is_stored_again_lives_on_and_may_have_moved() {
    let (pool, table) = (pool(Balance::RoundRobin, &[1; 4], None), StickTable::new(64, LIFETIME));
    table.store(7, &server(&pool, 3), NOW);
    table.store(7, &server(&pool, 2), NOW + LIFETIME / 2);
    assert_eq!(chosen(&pool, &table, 7, NOW + LIFETIME), 2);
}

#[test]
fn a_server_that_takes_nothing_passes_its_sessions_on() {
    let (pool, table) = (pool(Balance::RoundRobin, &[1; 4], Some(1)), StickTable::new(64, LIFETIME));
    let (full, drained) = (server(&pool, 3), server(&pool, 2));
    table.store(7, &full, NOW);
    table.store(8, &drained, NOW);
    let _place = full.try_take();
    drained.set_drained(courser_balance::Drain::Operator, true, NOW);
    assert_eq!([chosen(&pool, &table, 7, NOW), chosen(&pool, &table, 8, NOW)], [0, 0], "the first in turn");
}

#[test]
fn a_full_table_forgets_what_was_used_longest_ago() {
    // One bucket of eight.
    let (pool, table) = (pool(Balance::RoundRobin, &[1; 4], None), StickTable::new(8, LIFETIME));
    let at = |second: u64| NOW + Duration::from_secs(second);
    (0..8).for_each(|session| table.store(session, &server(&pool, 1), at(session)));
    table.store(0, &server(&pool, 1), at(8));
    table.store(100, &server(&pool, 2), at(9));
    assert_eq!(table.find(1, at(9)), None, "0 was used again, so 1 is the oldest");
    assert!([0, 2, 3, 4, 5, 6, 7, 100].into_iter().all(|session| table.find(session, at(9)).is_some()));
}

#[test]
fn a_table_holds_most_of_as_many_sessions_as_it_is_made_for() {
    const SESSIONS: u32 = 1 << 14;
    let (pool, table) = (pool(Balance::RoundRobin, &[1; 4], None), StickTable::new(1 << 14, LIFETIME));
    // Odd multiples of a large number: no two in one place of the table more often than by chance.
    let key = |session: u32| (u64::from(session) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    (0..SESSIONS / 2).for_each(|session| table.store(key(session), &server(&pool, 1), NOW));
    let found = (0..SESSIONS / 2).filter(|session| table.find(key(*session), NOW).is_some()).count();
    assert!(found * 100 >= SESSIONS as usize / 2 * 98, "{found} of {}", SESSIONS / 2);
}
