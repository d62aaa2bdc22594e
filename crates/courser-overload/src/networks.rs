//! The networks that most clients come from, in bounded memory: at each length of prefix those that may make more than 1 in 128 of
//! the load are found for sure (Metwally, Agrawal, El Abbadi, 2005, "Space-Saving"), whatever else is sent.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: its first address, and the length of its prefix.
pub type Prefix = (IpAddr, u8);

/// Lengths of prefixes that have a budget each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    v4: Vec<u8>,
    v6: Vec<u8>,
}

impl Prefixes {
    /// Lengths of IPv4 and of IPv6, in any order; none: no network of that family is told apart.
    pub fn new(mut v4: Vec<u8>, mut v6: Vec<u8>) -> Self {
        // The longest first.
        v4.sort_unstable_by_key(|&bits| Reverse(bits));
        v6.sort_unstable_by_key(|&bits| Reverse(bits));
        Self { v4, v6 }
    }
}

impl Default for Prefixes {
    /// Of IPv4 a host and the usual end of a route, of IPv6 a link, and what homes and sites are given (RFC 6177).
    fn default() -> Self {
        Self::new(vec![32, 24], vec![64, 56, 48])
    }
}

/// Networks of each length that are counted.
const MOST: usize = 128;

/// Networks that are treated apart at most: the largest ones.
const MOST_APART: usize = 32;

/// Clients of a network that must have come before it is told apart: one that stands for hundreds says nothing of its network.
const LEAST_SEEN: f64 = 8.0;

/// Counts below it are forgotten.
const NOTHING: f64 = 0.01;

/// Counts by network. Old counts fade.
#[derive(Debug, Default)]
pub(crate) struct Networks {
    v4: Vec<Level>,
    v6: Vec<Level>,
}

/// The networks of one length of prefix.
#[derive(Debug)]
struct Level {
    bits: u8,
    counts: Counts,
}

type Counts = HashMap<IpAddr, Count>;

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Clients for sure, each for as many as it stands for.
    clients: f64,
    /// Those that were seen.
    seen: f64,
    /// What the count may be too low by: that of the network whose place it took.
    missed: f64,
}

impl Networks {
    pub(crate) fn new(prefixes: &Prefixes) -> Self {
        let levels = |lengths: &[u8]| {
            lengths.iter().map(|&bits| Level { bits, counts: Counts::new() }).collect::<Vec<_>>()
        };
        Self { v4: levels(&prefixes.v4), v6: levels(&prefixes.v6) }
    }

    /// One client was seen that stands for `clients`.
    pub(crate) fn add(&mut self, source: IpAddr, clients: f64) {
        match source.to_canonical() {
            source @ IpAddr::V4(_) => add(&mut self.v4, source, clients),
            source @ IpAddr::V6(_) => add(&mut self.v6, source, clients),
        }
    }

    /// All counts by `factor`.
    pub(crate) fn scale(&mut self, factor: f64) {
        for count in self.levels().flat_map(|level| level.counts.values_mut()) {
            count.clients *= factor;
            count.missed *= factor;
        }
    }

    pub(crate) fn fade(&mut self, factor: f64) {
        self.scale(factor);
        for level in self.levels() {
            level.counts.retain(|_, count| {
                count.seen *= factor;
                count.seen > NOTHING
            });
        }
    }

    fn levels(&mut self) -> impl Iterator<Item = &mut Level> {
        self.v4.iter_mut().chain(&mut self.v6)
    }

    /// Networks with at least `least` clients, the narrower ones first. A network is told apart from the wider one that it is
    /// in where it makes most of it, and is counted in the narrower one only.
    pub(crate) fn above(&self, least: f64) -> Vec<(Prefix, f64)> {
        let mut found = above(&self.v4, least);
        found.extend(above(&self.v6, least));
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found.truncate(MOST_APART);
        found.sort_by(|((a, a_bits), _), ((b, b_bits), _)| b_bits.cmp(a_bits).then(a.cmp(b)));
        found
    }
}

fn above(levels: &[Level], least: f64) -> Vec<(Prefix, f64)> {
    let mut found: Vec<(Prefix, f64)> = Vec::new();
    // From the widest on.
    for &Level { bits, ref counts } in levels.iter().rev() {
        let mut here = Vec::new();
        for (&address, count) in counts {
            if count.clients < least || count.seen < LEAST_SEEN {
                continue;
            }
            let around = found.iter_mut().find(|((outer, bits), _)| network(address, *bits) == *outer);
            match around {
                Some((_, rest)) if count.clients < *rest / 2.0 => {}
                around => {
                    here.push(((address, bits), count.clients));
                    if let Some((_, rest)) = around {
                        *rest -= count.clients;
                    }
                }
            }
        }
        found.extend(here);
        found.retain(|(_, clients)| *clients >= least);
    }
    found
}

fn add(levels: &mut [Level], source: IpAddr, clients: f64) {
    for &mut Level { bits, ref mut counts } in levels {
        let key = network(source, bits);
        if counts.len() >= MOST && !counts.contains_key(&key) {
            let least = counts.iter().min_by(|(_, a), (_, b)| a.upper().total_cmp(&b.upper()));
            let Some((&least, count)) = least else { continue };
            let missed = count.upper();
            // The newcomer takes the place of the least, and its count, which it cannot exceed by what was forgotten of it.
            counts.remove(&least);
            counts.insert(key, Count { missed, ..Count::default() });
        }
        let count = counts.entry(key).or_default();
        count.clients += clients;
        count.seen += 1.0;
    }
}

impl Count {
    /// It is no more than this.
    fn upper(&self) -> f64 {
        self.clients + self.missed
    }
}

/// The network of `source` with so many bits, by its first address; of the other family itself.
pub(crate) fn network(source: IpAddr, bits: u8) -> IpAddr {
    match source {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[test]
    fn a_network_that_makes_much_of_the_load_is_found_among_any_number_of_others() {
        let mut networks = Networks::new(&Prefixes::default());
        let random = &mut fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            networks.add(v4(random.u32(..)), 1.0);
            networks.add(v4(0x0a01_0200 + random.u32(0..256)), 0.5);
            networks.add(v4(0x0a09_0901), 0.25);
        }
        let found = networks.above(2_000.0);
        let prefixes: Vec<_> = found.iter().map(|(prefix, _)| *prefix).collect();
        assert_eq!(prefixes, [(v4(0x0a09_0901), 32), (v4(0x0a01_0200), 24)]);
        assert!((found[0].1 - 5_000.0).abs() < 300.0 && (found[1].1 - 10_000.0).abs() < 300.0, "{found:?}");
        let kept: usize = networks.v4.iter().map(|level| level.counts.len()).sum();
        assert!(kept <= 2 * MOST);
    }

    #[test]
    fn a_host_is_not_counted_twice_and_networks_of_ipv6_are_those_of_links_and_sites() {
        let mut networks = Networks::new(&Prefixes::default());
        let host = |site: u128, link: u128| {
            IpAddr::from(Ipv6Addr::from_bits((0x2001_0db8 << 96) + (site << 80) + (link << 64) + 1))
        };
        (0..100).for_each(|_| networks.add(host(1, 1), 1.0));
        (0..100).for_each(|link| networks.add(host(2, link << 8), 1.0));
        let mut found = networks.above(50.0);
        found.sort_by_key(|(prefix, _)| *prefix);
        let bits: Vec<_> = found.iter().map(|((_, bits), count)| (*bits, *count)).collect();
        assert_eq!(bits, [(64, 100.0), (48, 100.0)]);
        // A few clients that stand for many are no network.
        (0..5).for_each(|_| networks.add(host(3, 3), 1_000.0));
        assert_eq!(networks.above(50.0).len(), 2);
        networks.fade(0.000_01);
        assert!(networks.above(0.0).is_empty());
    }

    #[test]
    fn the_lengths_of_prefixes_can_be_others() {
        let mut networks = Networks::new(&Prefixes::new(vec![16, 28], Vec::new()));
        (0..100).for_each(|host| networks.add(v4(0x0a01_0200 + host % 16), 1.0));
        (0..100).for_each(|host| networks.add(v4(0x0a02_0000 + (host << 8)), 1.0));
        (0..100).for_each(|_| networks.add("2001:db8::1".parse().unwrap(), 1.0));
        let mut found: Vec<_> = networks.above(50.0).into_iter().map(|(prefix, _)| prefix).collect();
        found.sort_unstable();
        assert_eq!(found, [(v4(0x0a01_0200), 28), (v4(0x0a02_0000), 16)]);
    }
}
