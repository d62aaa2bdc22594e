//! Policies: which of the servers that could take a connection gets it.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use crate::hash::mix;
use crate::server::Server;

/// Servers of which `least` looks at all. Up to here all of them are as cheap as a few, and better.
const LOOKED_AT: usize = 16;

/// Servers of which `least` takes the best beyond that. With two, a pool in which some servers are slow sends them too much:
/// both of the two are slow too often.
const SAMPLE: usize = 4;

/// Attempts to find a sample among servers of which some get no connections.
const PROBES: u64 = 16;

/// How a pool's connections are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// To the server with the fewest connections by its weight.
    #[default]
    Least,
    /// In turn, by weight.
    RoundRobin,
    /// At random, by weight.
    Random,
    /// To the server with the least product of connect time and connections.
    Latency,
}

/// What a choice depends on beside the servers.
#[derive(Clone, Copy)]
pub(crate) struct Draw {
    pub(crate) number: u64,
    /// Keeps workers apart whose numbers are alike.
    pub(crate) seed: u64,
    pub(crate) now: Duration,
}

impl Draw {
    fn random(self, draw: u64) -> u64 {
        mix(mix(self.number.wrapping_add(self.seed)).wrapping_add(draw))
    }
}

impl Balance {
    /// A server among those with a weight.
    pub(crate) fn choose<T>(
        self,
        servers: &[Arc<Server<T>>],
        turn: Draw,
        weight: impl Fn(&Server<T>) -> u64,
    ) -> Option<&Arc<Server<T>>> {
        let weighed = weighed(&weight);
        let all = servers.iter().filter_map(weighed);
        let (before, after) = servers.split_at(place(turn.number, servers.len()));
        let rotated = after.iter().chain(before).filter_map(weighed);
        match self {
            Self::RoundRobin => in_turn(all, turn.number),
            Self::Random => at(all, turn.random(0)),
            Self::Least if servers.len() > LOOKED_AT => {
                let some = sample(servers, turn).filter_map(weighed).take(SAMPLE);
                // None, where nearly all servers get no connections.
                least(some).or_else(|| least(rotated))
            }
            Self::Least if is_quiet(all.clone()) => in_turn(all, turn.number),
            Self::Least => least(rotated),
            Self::Latency => fastest(rotated, turn.now),
        }
    }
}

/// Leaves out the servers without a weight.
fn weighed<'a, T>(
    weight: &impl Fn(&Server<T>) -> u64,
) -> impl Fn(&'a Arc<Server<T>>) -> Option<Weighed<'a, T>> + Copy {
    move |server| Some((server, weight(server))).filter(|(_, weight)| *weight > 0)
}

type Weighed<'a, T> = (&'a Arc<Server<T>>, u64);

/// Whether no server has a connection. By `least` the heaviest would get every connection of a quiet pool.
fn is_quiet<'a, T: 'a>(mut weighed: impl Iterator<Item = Weighed<'a, T>>) -> bool {
    weighed.all(|(server, _)| server.in_flight() == 0)
}

/// The least (connections + 1) / weight, of equals the first. Where equals took turns among themselves, their changing
/// number and the turn could fall into step, and pass one server over for good; so the caller turns the whole list.
fn least<'a, T: 'a>(weighed: impl Iterator<Item = Weighed<'a, T>>) -> Option<&'a Arc<Server<T>>> {
    // Loaded once for each: what other workers count meanwhile must not upset the comparison.
    let loads = weighed.map(|(server, weight)| (server, u64::from(server.in_flight()) + 1, weight));
    loads.min_by(|a, b| compare((a.1, a.2), (b.1, b.2))).map(|(server, ..)| server)
}

/// Compares two fractions.
fn compare(a: (u64, u64), b: (u64, u64)) -> Ordering {
    (u128::from(a.0) * u128::from(b.1)).cmp(&(u128::from(b.0) * u128::from(a.1)))
}

/// The least product of connect time and connections, by weight. A server of which nothing is known is tried.
fn fastest<'a, T: 'a>(
    weighed: impl Iterator<Item = Weighed<'a, T>>,
    now: Duration,
) -> Option<&'a Arc<Server<T>>> {
    #[expect(clippy::cast_precision_loss, reason = "a comparison")]
    let cost = |(server, weight): Weighed<'a, T>| {
        (server, server.latency_micros(now) * f64::from(server.in_flight() + 1) / weight as f64)
    };
    weighed.map(cost).min_by(|a, b| a.1.total_cmp(&b.1)).map(|(server, _)| server)
}

/// Servers at random, more than are needed: some of them may get no connections.
fn sample<T>(servers: &[Arc<Server<T>>], turn: Draw) -> impl Iterator<Item = &Arc<Server<T>>> + Clone {
    (1..=PROBES).map(move |probe| &servers[share(turn.random(probe), servers.len() as u64)])
}

/// One in turn, by weight: strictly in turn where all weigh the same, else spread as evenly as weights allow by steps of
/// the golden ratio (a Weyl sequence).
fn in_turn<'a, T: 'a, I: Iterator<Item = Weighed<'a, T>> + Clone>(
    mut weighed: I,
    number: u64,
) -> Option<&'a Arc<Server<T>>> {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let (_, first) = weighed.clone().next()?;
    if weighed.clone().any(|(_, weight)| weight != first) {
        return at(weighed, number.wrapping_mul(GOLDEN));
    }
    weighed.nth(place(number, weighed.clone().count())).map(|(server, _)| server)
}

/// The server at a point of all weights laid end to end, the whole being 2^64.
fn at<'a, T: 'a>(
    mut weighed: impl Iterator<Item = Weighed<'a, T>> + Clone,
    point: u64,
) -> Option<&'a Arc<Server<T>>> {
    let mut left = share(point, weighed.clone().map(|(_, weight)| weight).sum()) as u64;
    let is_there = |(_, weight): &Weighed<'a, T>| match left.checked_sub(*weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    };
    weighed.find(is_there).map(|(server, _)| server)
}

/// A turn's place among so many.
fn place(number: u64, count: usize) -> usize {
    usize::try_from(number % (count.max(1) as u64)).unwrap_or(0)
}

/// The part of `whole` that `point` is of 2^64.
#[expect(clippy::cast_possible_truncation, reason = "less than `whole`")]
fn share(point: u64, whole: u64) -> usize {
    ((u128::from(point) * u128::from(whole)) >> 64) as usize
}
