//! Which server belongs to a key: weighted rendezvous hashing with bounded loads.
//!
//! Each server draws a number from the key and its own name, and the highest one wins (Thaler and Ravishankar, "A
//! Name-Based Mapping Scheme for Rendezvous", 1996; with weights: Schindelhauer and Schomaker, 2005). No table; a server
//! that goes moves its own keys alone. A server with a quarter more than its share, and a few, passes keys on to its
//! runner-up (Mirrokni et al., "Consistent Hashing with Bounded Loads", 2016), so that a key that half of all clients have
//! does not sink the server that it belongs to.

use std::sync::Arc;

use crate::hash::{hash, mix};
use crate::server::Server;

/// Load of a server in percent of its share, from which on keys go to the next one.
const BOUND_PERCENT: u64 = 125;

/// Connections that a server may have above that bound: a browser opens six at once, which a quarter of the share of a quiet
/// pool, less than one, would scatter.
const SLACK: u128 = 16;

/// What keeps a client at its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityKey(Key);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// Draws a server.
    Drawn(u64),
    /// Names one by its identity.
    Server(u64),
}

impl AffinityKey {
    /// The key of these bytes: an address, a name.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Key::Drawn(hash(bytes)))
    }

    pub(crate) fn of_server(identity: u64) -> Self {
        Self(Key::Server(identity))
    }
}

/// The server of the key among those with a weight; `None` where the key names a server that is not among them.
pub(crate) fn choose<T>(
    key: AffinityKey,
    servers: &[Arc<Server<T>>],
    weight: impl Fn(&Server<T>) -> u64,
) -> Option<&Arc<Server<T>>> {
    match key.0 {
        Key::Drawn(key) => drawn(key, servers, weight),
        Key::Server(identity) => {
            servers.iter().find(|server| server.identity == identity && weight(server) > 0)
        }
    }
}

/// The server that the key draws, below its bound; where all are above, the one that the key belongs to.
fn drawn<T>(
    key: u64,
    servers: &[Arc<Server<T>>],
    weight: impl Fn(&Server<T>) -> u64,
) -> Option<&Arc<Server<T>>> {
    let weighed = || servers.iter().map(|server| (server, weight(server))).filter(|(_, weight)| *weight > 0);
    let (load, whole) = weighed().fold((1u64, 0u64), |(load, whole), (server, weight)| {
        (load + u64::from(server.in_flight()), whole + weight)
    });
    let has_room = |server: &Server<T>, weight: u64| {
        let share = u128::from(load) * u128::from(weight) * u128::from(BOUND_PERCENT);
        u128::from(server.in_flight()) < share.div_ceil(u128::from(whole) * 100) + SLACK
    };
    let drawn = |(server, weight): &(&Arc<Server<T>>, u64)| draw(key, server.identity, *weight);
    let highest = |a: &(&Arc<Server<T>>, u64), b: &(&Arc<Server<T>>, u64)| drawn(a).total_cmp(&drawn(b));
    weighed()
        .filter(|(server, weight)| has_room(server, *weight))
        .max_by(highest)
        .or_else(|| weighed().max_by(highest))
        .map(|(server, _)| server)
}

/// Exponentially distributed with the weight as its rate, negated: the highest of several is each one's in proportion to
/// its weight.
#[expect(clippy::cast_precision_loss, reason = "a draw")]
fn draw(key: u64, server: u64, weight: u64) -> f64 {
    let uniform = ((mix(key ^ server) >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    uniform.ln() / weight as f64
}
