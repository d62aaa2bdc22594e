//! What lies between hosts: datagrams that are late, lost, doubled, damaged, and recorded by who listens.

use std::net::SocketAddr;

use crate::Random;

/// How the network is for a while. Shares are in thousandths.
#[derive(Clone, Debug)]
pub(super) struct Weather {
    pub(super) loss: u64,
    pub(super) duplicate: u64,
    pub(super) flip: u64,
    pub(super) cut: u64,
    /// The least and the greatest delay, in milliseconds: what differs is reordered.
    pub(super) delay: (u64, u64),
    /// Hosts reach those on the same side.
    pub(super) sides: Vec<u8>,
}

impl Weather {
    pub(super) fn calm(hosts: usize) -> Self {
        Self { loss: 0, duplicate: 0, flip: 0, cut: 0, delay: (1, 3), sides: vec![0; hosts] }
    }

    pub(super) fn losing(loss: u64, hosts: usize) -> Self {
        Self { loss, ..Self::calm(hosts) }
    }

    /// Some of everything, and sometimes a partition.
    pub(super) fn storm(random: &mut Random, hosts: usize) -> Self {
        let parts = if random.below(2) == 0 { 1 } else { 2 + random.below(2) };
        Self {
            loss: random.below(501),
            duplicate: random.below(200),
            flip: random.below(100),
            cut: random.below(50),
            delay: (1, 2 + random.below(300)),
            sides: (0..hosts).map(|_| u8::try_from(random.below(parts)).expect("few parts")).collect(),
        }
    }
}

/// A datagram that passed, as someone on the wire has it.
#[derive(Clone)]
pub(super) struct Recorded {
    pub(super) from: SocketAddr,
    pub(super) to: usize,
    pub(super) bytes: Vec<u8>,
}

/// A datagram on its way.
pub(super) struct Flying {
    pub(super) after: u64,
    pub(super) bytes: Vec<u8>,
    pub(super) is_altered: bool,
}

pub(super) struct Network {
    pub(super) weather: Weather,
    recorded: Vec<Recorded>,
    passed: u64,
}

impl Network {
    pub(super) fn new(weather: Weather) -> Self {
        Self { weather, recorded: Vec::new(), passed: 0 }
    }

    /// The copies of a datagram that arrive.
    pub(super) fn send(
        &mut self,
        from: (usize, SocketAddr),
        to: usize,
        bytes: &[u8],
        random: &mut Random,
    ) -> Vec<Flying> {
        self.record(Recorded { from: from.1, to, bytes: bytes.to_vec() }, random);
        if self.weather.sides[from.0] != self.weather.sides[to] {
            return Vec::new();
        }
        let copies = 1 + u64::from(random.below(1000) < self.weather.duplicate);
        (0..copies).filter_map(|_| self.fly(bytes, random)).collect()
    }

    fn fly(&self, bytes: &[u8], random: &mut Random) -> Option<Flying> {
        let Weather { loss, flip, cut, delay: (least, greatest), .. } = self.weather;
        if random.below(1000) < loss {
            return None;
        }
        let mut flying = Flying {
            after: least + random.below(greatest - least + 1),
            bytes: bytes.to_vec(),
            is_altered: false,
        };
        if random.below(1000) < flip {
            flip_bit(&mut flying.bytes, random);
            flying.is_altered = true;
        }
        if random.below(1000) < cut {
            flying.bytes.truncate(index(random, bytes.len()));
            flying.is_altered = true;
        }
        Some(flying)
    }

    /// Keeps a fair sample of everything that ever passed.
    fn record(&mut self, recorded: Recorded, random: &mut Random) {
        self.passed += 1;
        if self.recorded.len() < RECORDED {
            self.recorded.push(recorded);
        } else if let Some(place) = self.recorded.get_mut(index(random, RECORDED * 4)) {
            *place = recorded;
        }
    }

    /// Datagrams that passed.
    pub(super) fn recordings(&self) -> impl Iterator<Item = &Recorded> {
        self.recorded.iter()
    }

    /// One of the datagrams that passed.
    pub(super) fn recording(&self, random: &mut Random) -> Option<Recorded> {
        let count = self.recorded.len();
        (count > 0).then(|| self.recorded[index(random, count)].clone())
    }
}

/// A place among `count`.
pub(super) fn index(random: &mut Random, count: usize) -> usize {
    usize::try_from(random.below(count as u64)).expect("below a length")
}

pub(super) fn flip_bit(bytes: &mut [u8], random: &mut Random) {
    if !bytes.is_empty() {
        bytes[index(random, bytes.len())] ^= 1 << random.below(8);
    }
}

/// How many datagrams who listens keeps.
const RECORDED: usize = 2000;
