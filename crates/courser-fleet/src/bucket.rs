//! Token buckets in integers, and a bounded table of them. May not be emptied for others by whoever invents keys.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};

/// How much of something is allowed: so much a second on average, so much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens that come back in a second.
    pub per_second: u32,
    /// The most that there are.
    pub burst: u32,
}

/// A token bucket, in thousandths of a token: a rate of n a second is n thousandths a millisecond, so nothing is rounded.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    thousandths: u64,
    filled_at: u64,
}

impl Bucket {
    /// A full bucket at `mono` (milliseconds, never going back).
    pub fn full(rate: Rate, mono: u64) -> Self {
        Self { thousandths: u64::from(rate.burst) * 1000, filled_at: mono }
    }

    /// Takes so many tokens if there are as many; otherwise none.
    pub fn take(&mut self, tokens: u32, rate: Rate, mono: u64) -> bool {
        self.fill(rate, mono);
        let wanted = u64::from(tokens) * 1000;
        let enough = self.thousandths >= wanted;
        if enough {
            self.thousandths -= wanted;
        }
        enough
    }

    /// Gives back what was taken for nothing.
    pub fn give_back(&mut self, tokens: u32, rate: Rate) {
        let back = u64::from(tokens) * 1000;
        self.thousandths = self.thousandths.saturating_add(back).min(u64::from(rate.burst) * 1000);
    }

    fn fill(&mut self, rate: Rate, mono: u64) {
        let new = mono.saturating_sub(self.filled_at).saturating_mul(u64::from(rate.per_second));
        self.thousandths = self.thousandths.saturating_add(new).min(u64::from(rate.burst) * 1000);
        self.filled_at = self.filled_at.max(mono);
    }

    fn is_full(mut self, rate: Rate, mono: u64) -> bool {
        self.fill(rate, mono);
        self.thousandths == u64::from(rate.burst) * 1000
    }
}

/// A bucket for each key, of the same rate, for a bounded number of keys.
///
/// A bucket that is full again says no more than one that is not there, and makes room for another key. When none is
/// full, new keys share a single bucket: known keys have theirs, whoever floods the table with invented keys.
/// Every call takes constant time.
#[derive(Debug)]
pub struct Buckets<K> {
    rate: Rate,
    capacity: usize,
    places: HashMap<K, usize>,
    buckets: Vec<(K, Bucket)>,
    /// Where the next look for a full bucket begins.
    hand: usize,
    shared: Bucket,
}

impl<K: Copy + Eq + Hash> Buckets<K> {
    /// Buckets for up to `capacity` keys, all full at first.
    pub fn new(rate: Rate, capacity: usize) -> Self {
        let (places, buckets) = (HashMap::new(), Vec::new());
        Self { rate, capacity, places, buckets, hand: 0, shared: Bucket::full(rate, 0) }
    }

    /// Takes so many tokens of this key's, if there are as many. `mono` is in milliseconds and never goes back.
    pub fn take(&mut self, key: K, tokens: u32, mono: u64) -> bool {
        let rate = self.rate;
        self.bucket(key, mono).take(tokens, rate, mono)
    }

    fn bucket(&mut self, key: K, mono: u64) -> &mut Bucket {
        let place = self.places.get(&key).copied().or_else(|| self.new_place(key, mono));
        match place {
            Some(place) => &mut self.buckets[place].1,
            None => &mut self.shared,
        }
    }

    fn new_place(&mut self, key: K, mono: u64) -> Option<usize> {
        let new = (key, Bucket::full(self.rate, mono));
        let place = if self.buckets.len() < self.capacity {
            self.buckets.push(new);
            self.buckets.len() - 1
        } else {
            let place = self.find_full(mono)?;
            self.places.remove(&self.buckets[place].0);
            self.buckets[place] = new;
            place
        };
        self.places.insert(key, place);
        Some(place)
    }

    fn find_full(&mut self, mono: u64) -> Option<usize> {
        for _ in 0..LOOKS.min(self.buckets.len()) {
            self.hand = (self.hand + 1) % self.buckets.len();
            if self.buckets[self.hand].1.is_full(self.rate, mono) {
                return Some(self.hand);
            }
        }
        None
    }
}

/// Under which key a client's address is limited: all of IPv4, the first 64 bits of IPv6, which is what one client gets.
pub fn source_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 64))),
    }
}

/// How many buckets a new key looks at for a full one.
const LOOKS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 10, burst: 3 };

    #[test]
    fn gives_a_burst_then_the_rate() {
        let mut bucket = Bucket::full(RATE, 0);
        assert!((0..3).all(|_| bucket.take(1, RATE, 0)));
        assert!(!bucket.take(1, RATE, 99), "the next comes after 100 ms");
        assert!(bucket.take(1, RATE, 100));
        let taken = (101..10_101).filter(|&mono| bucket.take(1, RATE, mono)).count();
        assert_eq!(taken, 100, "10 s at 10 a second");
    }

    #[test]
    fn takes_all_or_nothing_and_holds_no_more_than_the_burst() {
        let mut bucket = Bucket::full(RATE, 0);
        assert!(!bucket.take(4, RATE, u64::MAX));
        assert!(bucket.take(3, RATE, u64::MAX));
    }

    #[test]
    fn one_key_does_not_empty_anothers() {
        let mut buckets = Buckets::new(RATE, 4);
        assert!((0..3).all(|_| buckets.take('a', 1, 0)));
        assert!(!buckets.take('a', 1, 0));
        assert!(buckets.take('b', 1, 0));
    }

    #[test]
    fn invented_keys_share_one_bucket_and_the_known_keep_theirs() {
        let mut buckets = Buckets::new(RATE, 4);
        assert!((0..4).all(|key| buckets.take(key, 1, 0)));
        let passed = (100..1_000_100).filter(|&key| buckets.take(key, 1, 0)).count();
        assert_eq!(passed, 3, "a million keys have one bucket");
        assert!(buckets.take(0, 2, 0) && !buckets.take(0, 1, 0), "a known one has its own");
        assert_eq!((buckets.buckets.len(), buckets.places.len()), (4, 4));
        assert!(buckets.take(7, 3, 1000), "those that are full again make room");
        assert_eq!((buckets.buckets.len(), buckets.places.len()), (4, 4));
    }

    #[test]
    fn a_client_is_an_ipv4_address_or_an_ipv6_network() {
        let source = |text: &str| source_of(text.parse().unwrap()).to_string();
        assert_eq!(source("192.0.2.7"), "192.0.2.7");
        assert_eq!(source("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(source("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
