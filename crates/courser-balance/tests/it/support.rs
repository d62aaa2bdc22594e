//! Pools to try, and what counts their connections.

use std::num::NonZeroU32;
use std::time::Duration;

use courser_balance::{AffinityKey, Balance, Pick, Pool, Request, ServerPermit, ServerSettings};

/// A pool of servers with these weights, and each with the same limit. What a server is reached by is its index.
pub(crate) fn pool(balance: Balance, weights: &[u32], limit: Option<u32>) -> Pool<usize> {
    let pool = Pool::new(balance, false);
    let limit = limit.and_then(NonZeroU32::new);
    let server = |(index, weight): (usize, &u32)| {
        let (name, weight) = (format!("10.0.0.{index}:80"), NonZeroU32::new(*weight).expect("a weight"));
        pool.server(ServerSettings { name, target: index, weight, limit, priority: 0 })
    };
    let servers = weights.iter().enumerate().map(server).collect();
    pool.with(servers)
}

pub(crate) fn request(number: u64) -> Request<'static, usize> {
    Request { number, seed: 7, key: None, tried: &[] }
}

pub(crate) fn place(pool: &Pool<usize>, number: u64, now: Duration) -> Option<ServerPermit<usize>> {
    match pool.choose(&request(number), now) {
        Pick::Server(place) => Some(place),
        Pick::Full | Pick::None => None,
    }
}

pub(crate) fn keyed(pool: &Pool<usize>, key: AffinityKey, now: Duration) -> ServerPermit<usize> {
    match pool.choose(&Request { key: Some(key), ..request(0) }, now) {
        Pick::Server(place) => place,
        other => panic!("no server for the key: {other:?}"),
    }
}

/// How many of `connections` each server got, of which always `open` are open.
pub(crate) fn counts(pool: &Pool<usize>, connections: u64, open: usize, now: Duration) -> Vec<u64> {
    let mut counts = vec![0; pool.servers().len()];
    let mut held = std::collections::VecDeque::new();
    for number in 0..connections {
        let place = place(pool, number, now).expect("every server has room");
        counts[place.server().target] += 1;
        held.push_back(place);
        if held.len() > open {
            held.pop_front();
        }
    }
    counts
}
