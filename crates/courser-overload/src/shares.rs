//! Who gets how much of what can be served.

use std::net::IpAddr;

use crate::line::Class;
use crate::networks::{Prefix, network};

/// What share of whose clients is let in, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Of networks that would take more than the others leave: the narrower ones first.
    pub networks: Vec<(Prefix, f64)>,
    /// Of sources that are known and in none of these.
    pub known: f64,
    /// Of all others.
    pub others: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { networks: Vec::new(), known: 1.0, others: 1.0 }
    }
}

/// What wants to be served, in any unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demand {
    /// Networks with much of it; they are in neither of the others.
    pub(crate) networks: Vec<(Prefix, f64)>,
    pub(crate) known: f64,
    pub(crate) others: f64,
}

/// Least part of the capacity that makes a network one of its own.
pub(crate) const LEAST_PART: f64 = 0.05;

/// What others get at least of the capacity however many are known: a service without newcomers dies out.
const NEWCOMERS: f64 = 0.1;

impl Shares {
    /// Whether all are let in.
    pub fn all(&self) -> bool {
        self.networks.is_empty() && self.known >= 1.0 && self.others >= 1.0
    }

    /// Of a network.
    pub(crate) fn of(&self, prefix: Prefix) -> f64 {
        self.networks.iter().find(|(other, _)| *other == prefix).map_or(1.0, |(_, share)| *share)
    }

    /// Whether there are any who get less than by `other`.
    pub(crate) fn is_less(&self, other: &Self) -> bool {
        let is_network_less = self.networks.iter().any(|(prefix, share)| *share < other.of(*prefix));
        self.known < other.known || self.others < other.others || is_network_less
    }

    /// How a client of this source is served, and the share of its like.
    pub(crate) fn place(&self, source: Option<IpAddr>, is_known: bool) -> (Class, f64) {
        match source.and_then(|source| self.limit_of(source)) {
            Some(share) => (Class::Limited, share),
            None if is_known => (Class::Known, self.known),
            None => (Class::Other, self.others),
        }
    }

    fn limit_of(&self, source: IpAddr) -> Option<f64> {
        let source = source.to_canonical();
        let is_in = |address: IpAddr, bits| network(source, bits) == address;
        let found = self.networks.iter().find(|((address, bits), _)| is_in(*address, *bits));
        found.map(|(_, share)| *share)
    }

    /// Divides `capacity`: the largest networks give way first, until each has what the next largest has (max-min fairness); then
    /// those who are not known.
    pub(crate) fn divide(capacity: f64, demand: Demand) -> Self {
        let small = demand.known + demand.others;
        let level = water_level(&demand.networks, capacity - small).max(LEAST_PART * capacity);
        let of_networks: f64 = demand.networks.iter().map(|(_, wanted)| wanted.min(level)).sum();
        let left = (capacity - of_networks).max(LEAST_PART * capacity);
        let known = demand.known.min(left - demand.others.min(NEWCOMERS * left));
        let others = demand.others.min(left - known);
        let networks = demand.networks.into_iter().filter(|(_, wanted)| *wanted > level);
        Self {
            networks: networks.map(|(prefix, wanted)| (prefix, level / wanted)).collect(),
            known: part(known, demand.known),
            others: part(others, demand.others),
        }
    }
}

fn part(given: f64, wanted: f64) -> f64 {
    if wanted > given { given / wanted } else { 1.0 }
}

/// The most that each network may have so that together they have `capacity`; infinite if all may have what they want.
fn water_level(networks: &[(Prefix, f64)], capacity: f64) -> f64 {
    let mut wanted: Vec<f64> = networks.iter().map(|(_, wanted)| *wanted).collect();
    wanted.sort_by(|a, b| b.total_cmp(a));
    let mut excess = wanted.iter().sum::<f64>() - capacity;
    if excess <= 0.0 {
        return f64::INFINITY;
    }
    // The largest ones are lowered to the next one's height, and so on.
    for count in 1..=wanted.len() {
        let next = wanted.get(count).copied().unwrap_or(0.0);
        let room = (wanted[count - 1] - next) * count as f64;
        if room >= excess {
            return wanted[count - 1] - excess / count as f64;
        }
        excess -= room;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(number: u8) -> Prefix {
        (std::net::Ipv4Addr::new(10, 0, number, 0).into(), 24)
    }

    fn divide(networks: &[f64], known: f64, others: f64) -> Shares {
        let networks = networks.iter().zip(1..).map(|(wanted, number)| (prefix(number), *wanted)).collect();
        Shares::divide(100.0, Demand { networks, known, others })
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn where_there_is_room_all_are_let_in() {
        assert!(divide(&[40.0, 20.0], 10.0, 30.0).all());
    }

    #[test]
    fn one_network_gets_what_the_others_leave_and_a_lone_one_everything() {
        let shares = divide(&[2_000.0], 0.0, 50.0);
        assert!(is_near(shares.networks[0].1, 50.0 / 2_000.0) && is_near(shares.others, 1.0), "{shares:?}");
        let shares = divide(&[400.0], 0.0, 0.0);
        assert!(is_near(shares.networks[0].1, 0.25), "{shares:?}");
    }

    #[test]
    fn networks_are_lowered_to_one_height() {
        let shares = divide(&[300.0, 100.0, 10.0], 0.0, 10.0);
        let limited: Vec<_> = shares.networks.iter().map(|(_, share)| *share).collect();
        assert!(is_near(limited[0], 40.0 / 300.0) && is_near(limited[1], 0.4), "{shares:?}");
        assert!(limited.len() == 2 && is_near(shares.others, 1.0));
    }

    #[test]
    fn the_known_come_first_and_newcomers_are_never_shut_out() {
        let shares = divide(&[], 60.0, 400.0);
        assert!(is_near(shares.known, 1.0) && is_near(shares.others, 0.1), "{shares:?}");
        let shares = divide(&[], 900.0, 400.0);
        assert!(is_near(shares.known, 0.1) && is_near(shares.others, 10.0 / 400.0), "{shares:?}");
    }

    #[test]
    fn a_network_is_not_pushed_below_what_makes_it_one() {
        let shares = divide(&[100.0], 0.0, 900.0);
        assert!(is_near(shares.networks[0].1, 0.05) && is_near(shares.others, 95.0 / 900.0), "{shares:?}");
    }
}
