//! The runs that a model is fitted to: few, short, and unlike each other, so that the costs can be told apart; and the
//! mixes drawn by the seed that only judge it.

use std::fmt;

use courser_lab::target::KeyKind;
use fastrand::Rng;

use super::model::Version;

/// A run to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) key: KeyKind,
    pub(crate) tls: Version,
    /// Connections of a session, one after the other.
    pub(crate) reuse: u32,
    /// Requests of a connection.
    pub(crate) requests: u32,
    /// Bytes of an answer.
    pub(crate) object: usize,
    /// Whether it only judges the fit.
    pub(crate) unseen: bool,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, tls, reuse, requests, object, .. } = self;
        write!(f, "{tls}, {key}, {reuse} connections a session, {requests} requests each, {object} bytes")
    }
}

/// Mixes that the fit does not see.
const UNSEEN: usize = 3;

/// All runs, in an order drawn by the seed, so that a drift of the machine is nobody's.
pub(crate) fn points(keys: &[KeyKind], seed: u64) -> Vec<Point> {
    let mut rng = Rng::with_seed(seed);
    let mut points = designed(keys);
    for _ in 0..UNSEEN {
        // One that is in the design has been seen.
        let is_new = |drawn: &Point| points.iter().all(|point| point.to_string() != drawn.to_string());
        let unseen = std::iter::repeat_with(|| drawn(keys, &mut rng)).find(is_new);
        points.extend(unseen);
    }
    rng.shuffle(&mut points);
    points
}

/// Full handshakes of each key and version alone; then resumption, requests and bytes, each long enough in some run to
/// be most of it. Keys take turns: what is asked after the handshake does not depend on them.
fn designed(keys: &[KeyKind]) -> Vec<Point> {
    use Version::{Tls12, Tls13};

    const KB: usize = 1024;
    const OTHERS: [(Version, u32, u32, usize); 16] = [
        (Tls13, 20, 1, KB),
        (Tls12, 20, 1, KB),
        (Tls13, 12, 1, 0),
        (Tls12, 12, 2, 4 * KB),
        (Tls13, 4, 20, KB),
        (Tls12, 4, 40, 0),
        (Tls13, 4, 4, 64 * KB),
        (Tls12, 8, 2, 256 * KB),
        (Tls12, 3, 1, 16 * KB),
        (Tls13, 3, 1, 4 * KB),
        (Tls12, 6, 10, 16 * KB),
        (Tls13, 6, 3, 128 * KB),
        // Full handshakes once more, so that no kind of them rests on one mix.
        (Tls12, 2, 2, 2 * KB),
        (Tls13, 2, 4, 2 * KB),
        (Tls12, 2, 3, 8 * KB),
        (Tls13, 2, 1, 8 * KB),
    ];

    let point =
        |key, (tls, reuse, requests, object)| Point { key, tls, reuse, requests, object, unseen: false };
    let alone = keys.iter().flat_map(|key| [Tls12, Tls13].map(|tls| point(*key, (tls, 1, 1, KB))));
    // Two neighbours with one key, so that each key has both versions.
    let others = OTHERS.iter().enumerate().map(|(at, other)| point(keys[at / 2 % keys.len()], *other));
    alone.chain(others).collect()
}

fn drawn(keys: &[KeyKind], rng: &mut Rng) -> Point {
    Point {
        key: keys[rng.usize(..keys.len())],
        tls: if rng.bool() { Version::Tls13 } else { Version::Tls12 },
        reuse: rng.u32(1..=16),
        requests: rng.u32(1..=8),
        // Any order of magnitude up to 64 KB alike.
        object: 1 << rng.u32(6..=16),
        unseen: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [KeyKind; 2] = [KeyKind::P256, KeyKind::Rsa(2048)];

    #[test]
    fn the_seed_draws_what_is_not_seen_and_nothing_else() {
        let unseen = |seed| points(&KEYS, seed).into_iter().filter(|point| point.unseen).collect::<Vec<_>>();
        assert_eq!(unseen(1).len(), 3);
        assert_eq!(unseen(1), unseen(1));
        assert_ne!(unseen(1), unseen(2));
        assert_eq!(points(&KEYS, 1).iter().filter(|point| !point.unseen).count(), 20);
    }

    #[test]
    fn what_is_not_seen_is_no_mix_of_the_design() {
        for seed in 0..2000 {
            let (unseen, seen): (Vec<_>, Vec<_>) =
                points(&KEYS, seed).into_iter().partition(|point| point.unseen);
            let seen: Vec<String> = seen.iter().map(Point::to_string).collect();
            assert!(unseen.iter().all(|point| !seen.contains(&point.to_string())), "seed {seed}");
        }
    }

    #[test]
    fn each_key_has_full_handshakes_of_both_versions() {
        for (key, tls) in KEYS.into_iter().flat_map(|key| [(key, Version::Tls12), (key, Version::Tls13)]) {
            let is = |point: &&Point| point.key == key && point.tls == tls && point.reuse == 1;
            assert_eq!(points(&KEYS, 1).iter().filter(|point| !point.unseen).filter(is).count(), 1);
        }
    }
}
