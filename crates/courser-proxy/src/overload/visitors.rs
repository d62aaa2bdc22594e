//! Which sources have been here in peace, for all workers of the process: in overload they come first.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use courser_net::KnownSources;

/// Sources that resumed a session, or made a handshake and an exchange. Two generations: when the younger one is full, the older
/// one is forgotten. No lock; a source that comes again is only read.
#[derive(Debug)]
pub struct Visitors {
    generations: [KnownSources; 2],
    current: AtomicUsize,
    /// Sources in the younger one, about.
    count: AtomicU32,
}

/// Sources of a generation. Both together then take 1 stranger in 20 for one of their own.
const MOST: u32 = 1_250;

impl Visitors {
    /// None yet.
    pub fn new(salt: u32) -> Self {
        let generations = [KnownSources::new(salt), KnownSources::new(salt)];
        Self { generations, current: AtomicUsize::new(0), count: AtomicU32::new(0) }
    }

    /// Those of another process: what its [`Self::known`] gave.
    pub fn from_known(known: &KnownSources) -> Self {
        let visitors = Self::new(known.salt());
        let handed_over = KnownSources::from_words(known.salt(), &known.words());
        let [older, _] = visitors.generations;
        Self { generations: [older, handed_over], ..visitors }
    }

    /// All that are known now.
    pub fn known(&self) -> KnownSources {
        let [a, b] = [0, 1].map(|index| self.generations[index].words());
        let words: Vec<u32> = a.iter().zip(b).map(|(a, b)| a | b).collect();
        KnownSources::from_words(self.generations[0].salt(), &words)
    }

    pub(crate) fn contains(&self, source: IpAddr) -> bool {
        self.generations.iter().any(|generation| generation.contains(source))
    }

    pub(crate) fn insert(&self, source: IpAddr) {
        let current = self.current.load(Ordering::Relaxed);
        if self.generations[current].contains(source) {
            return;
        }
        self.generations[current].insert(source);
        // Exactly one thread sees the last number.
        if self.count.fetch_add(1, Ordering::Relaxed) == MOST {
            self.generations[1 - current].clear();
            self.current.store(1 - current, Ordering::Relaxed);
            self.count.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn source(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number).into()
    }

    #[test]
    fn the_latest_are_known_however_many_have_come() {
        let visitors = Visitors::new(3);
        (0..10_000).for_each(|number| visitors.insert(source(number)));
        assert!((9_000..10_000).all(|number| visitors.contains(source(number))));
        let strangers = (100_000..101_000).filter(|&number| visitors.contains(source(number))).count();
        assert!(strangers < 100, "{strangers} of 1,000 strangers");
    }

    #[test]
    fn they_go_over_to_another_process() {
        let visitors = Visitors::new(3);
        (0..1_000).for_each(|number| visitors.insert(source(number)));
        let other = Visitors::from_known(&visitors.known());
        assert!((0..1_000).all(|number| other.contains(source(number))));
    }
}
