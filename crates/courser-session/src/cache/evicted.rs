//! Remembers which sessions had to make room, to distinguish a cache that is too small from a session that never was
//! here. May not remember an ID: fingerprints of keyed hashes, 2 bytes each.
//!
//! A table where the newest of two at one place stays. It has a place for each of the index's buckets, so about as many
//! evictions ago as the shard holds sessions, two of three are still remembered.

pub(super) struct Evicted {
    /// By the hash's low bits: its high bits. A power of two.
    places: Box<[u16]>,
}

impl Evicted {
    /// Room for `places` fingerprints, a power of two.
    pub(super) fn new(places: usize) -> Self {
        Self { places: vec![EMPTY; places].into() }
    }

    /// What the table takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.places.len() * size_of::<u16>()
    }

    pub(super) fn remember(&mut self, hash: u32) {
        self.places[self.place(hash)] = fingerprint(hash);
    }

    pub(super) fn forget(&mut self, hash: u32) {
        if self.contains(hash) {
            self.places[self.place(hash)] = EMPTY;
        }
    }

    /// Whether the session of this hash was evicted: false for some of long ago, true for one in 65,536 that were not
    /// (as many bits of the fingerprint say nothing as the place has above 16).
    pub(super) fn contains(&self, hash: u32) -> bool {
        self.places[self.place(hash)] == fingerprint(hash)
    }

    fn place(&self, hash: u32) -> usize {
        hash as usize & (self.places.len() - 1)
    }
}

const EMPTY: u16 = 0;

fn fingerprint(hash: u32) -> u16 {
    let [high, low, ..] = hash.to_be_bytes();
    u16::from_be_bytes([high, low]).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_until_another_takes_the_place() {
        let mut evicted = Evicted::new(16);
        assert!(!evicted.contains(0x0001_0003) && !evicted.contains(0x0000_0003));
        evicted.remember(0x0001_0003);
        assert!(evicted.contains(0x0001_0003));
        assert!(!evicted.contains(0x0002_0003) && !evicted.contains(0x0001_0004));
        evicted.remember(0x0002_0003);
        assert!(evicted.contains(0x0002_0003) && !evicted.contains(0x0001_0003));
        evicted.forget(0x0001_0003);
        assert!(evicted.contains(0x0002_0003), "it was another's place");
        evicted.forget(0x0002_0003);
        assert!(!evicted.contains(0x0002_0003));
    }

    #[test]
    fn one_in_65536_strangers_is_taken_for_an_evicted_session() {
        let mut evicted = Evicted::new(1 << 8);
        (0..1 << 8).for_each(|place: u32| evicted.remember(place | place << 24));
        let strangers = (0..1 << 20).map(|number: u32| number.wrapping_mul(0x9e37_79b1));
        let mistaken = strangers.filter(|hash| evicted.contains(*hash)).count();
        assert!((1..=64).contains(&mistaken), "{mistaken} of 1,048,576, 16 expected");
    }
}
