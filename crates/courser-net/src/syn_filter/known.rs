//! Which sources are known, as a Bloom filter that fits into a program.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};

/// Words of the filter. A program needs three to four instructions for each that is not zero.
pub(super) const WORDS: usize = 512;

/// Bits of a word that a source sets: all in one word, so that a program looks one word up (Putze, Sanders, Singler, 2007,
/// "Cache-, Hash- and Space-Efficient Bloom Filters").
pub(super) const BITS: u32 = 3;

/// A set of addresses (of IPv6: networks of 64 bits) that forgets none and takes a few others for its own: 1 in 100 where it has
/// 1,000 of them, 1 in 20 of 2,500.
///
/// Threads share it without a lock.
#[derive(Debug)]
pub struct KnownSources {
    salt: u32,
    words: [AtomicU32; WORDS],
}

impl KnownSources {
    /// None. Who does not know `salt` cannot choose addresses that are taken for others.
    pub fn new(salt: u32) -> Self {
        Self { salt, words: [const { AtomicU32::new(0) }; WORDS] }
    }

    /// Adds the source of `address`.
    pub fn insert(&self, address: IpAddr) {
        let (word, mask) = place(key(address) ^ self.salt);
        // A source that comes again writes nothing, so that the words stay in the caches of all processors.
        if self.words[word].load(Ordering::Relaxed) & mask != mask {
            self.words[word].fetch_or(mask, Ordering::Relaxed);
        }
    }

    /// Whether the source of `address` is known, or taken for one that is.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (word, mask) = place(key(address) ^ self.salt);
        self.words[word].load(Ordering::Relaxed) & mask == mask
    }

    /// The share of bits that are set, from 0 to 1. At a half, one stranger in eight is taken for a known source.
    pub fn fill(&self) -> f64 {
        let ones: u32 = self.words().iter().map(|word| word.count_ones()).sum();
        f64::from(ones) / f64::from(u32::BITS) / WORDS as f64
    }

    /// What it is made of, for another process. [`Self::from_words`] makes the same of it.
    pub fn words(&self) -> [u32; WORDS] {
        std::array::from_fn(|word| self.words[word].load(Ordering::Relaxed))
    }

    /// The set with this salt and these words. Those beyond the filter's length are ignored, missing ones are zero.
    pub fn from_words(salt: u32, words: &[u32]) -> Self {
        let word = |word: usize| AtomicU32::new(words.get(word).copied().unwrap_or(0));
        Self { salt, words: std::array::from_fn(word) }
    }

    /// Forgets all.
    pub fn clear(&self) {
        self.words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// See [`Self::new`].
    pub fn salt(&self) -> u32 {
        self.salt
    }
}

/// The word of a source, and its bits of it.
fn place(key: u32) -> (usize, u32) {
    let hash = mix(key);
    let mask = (0..BITS).fold(0, |mask, bit| mask | 1 << (hash >> (5 * bit) & 31));
    ((hash >> WORD_SHIFT) as usize, mask)
}

/// The highest bits of the hash choose the word.
pub(super) const WORD_SHIFT: u32 = u32::BITS - WORDS.ilog2();

/// 32 bits of an address: of IPv6 a hash of its network of 64 bits.
pub(super) fn key(address: IpAddr) -> u32 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_bits(),
        IpAddr::V6(address) => {
            let [high, low] = network_words(address);
            fold(high, low)
        }
    }
}

/// The network of 64 bits, as the two words that a program loads.
pub(super) fn network_words(address: Ipv6Addr) -> [u32; 2] {
    let [a, b, c, d, ..] = address.segments().map(u32::from);
    [a << 16 | b, c << 16 | d]
}

fn fold(high: u32, low: u32) -> u32 {
    let high = high.wrapping_mul(FOLD);
    (high ^ (high >> 15)).wrapping_add(low)
}

pub(super) const FOLD: u32 = 0x9e37_79b1;

/// Every bit of `key` changes half of the bits of the hash (C. Wellons, "Prospecting for Hash Functions", 2018: lowbias32).
fn mix(mut key: u32) -> u32 {
    for (shift, factor) in MIX {
        key = (key ^ (key >> shift)).wrapping_mul(factor);
    }
    key ^ (key >> 16)
}

pub(super) const MIX: [(u32, u32); 2] = [(16, 0x7feb_352d), (15, 0x846c_a68b)];

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    #[test]
    fn it_forgets_none_and_takes_few_strangers_for_its_own() {
        for (inserted, most_strangers) in [(1_000, 150), (2_500, 700)] {
            let known = KnownSources::new(0x1234_5678);
            (0..inserted).for_each(|number| known.insert(address(number)));
            assert!((0..inserted).all(|number| known.contains(address(number))));
            let strangers = (100_000..110_000).filter(|&number| known.contains(address(number))).count();
            assert!(strangers < most_strangers, "{strangers} of 10,000 strangers with {inserted} inside");
        }
    }

    #[test]
    fn a_network_of_64_bits_is_one_source_and_its_neighbour_another() {
        let known = KnownSources::new(7);
        let network = |network: u128, host: u128| {
            IpAddr::V6(Ipv6Addr::from_bits((0x2001_0db8_u128 << 96) + (network << 64) + host))
        };
        known.insert(network(1, 1));
        assert!(known.contains(network(1, u128::from(u64::MAX))));
        let neighbours = (2..1_000).filter(|&number| known.contains(network(number, 1))).count();
        assert!(neighbours < 5, "{neighbours} of 998 neighbours");
    }

    #[test]
    fn it_goes_over_whole() {
        let known = KnownSources::new(99);
        (0..500).for_each(|number| known.insert(address(number)));
        let other = KnownSources::from_words(known.salt(), &known.words());
        assert!((0..500).all(|number| other.contains(address(number))));
        assert!((known.fill() - other.fill()).abs() < f64::EPSILON && known.fill() > 0.05);
    }
}
