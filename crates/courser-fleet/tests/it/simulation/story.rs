//! What befalls a fleet: storms and calms, starts and ends of hosts, wrong clocks, new secrets, and an attacker.

use super::host::Secrets;
use super::ledger::Check;
use super::network::{Weather, flip_bit, index};
use super::workload::byte;
use super::world::{Event, World};

/// A turn of the story.
pub(super) enum Twist {
    /// The network gets bad, an attacker comes, and hosts have accidents.
    Storm {
        until: u64,
    },
    Calm,
    Accident {
        until: u64,
    },
    Attack {
        until: u64,
    },
    Start {
        host: usize,
        is_cold: bool,
    },
    /// A host gets these secrets, and starts again with its memory kept.
    Rekey {
        host: usize,
        secrets: Secrets,
    },
}

impl World {
    /// Storms, with calms between them; ends with a calm.
    pub(super) fn tell_storms(&mut self, storms: u64) {
        for storm in 0..storms {
            let begin = CALM_MS + storm * (STORM_MS + CALM_MS);
            self.after(begin, Event::Twist(Twist::Storm { until: begin + STORM_MS }));
            self.after(begin + STORM_MS, Event::Twist(Twist::Calm));
        }
        self.end = CALM_MS + storms * (STORM_MS + CALM_MS);
    }

    /// The fleet gets a new secret, host by host, in whatever weather; the old one goes when no session needs it.
    pub(super) fn tell_rekeying(&mut self, begin: u64, lifetime_ms: u64) {
        const STEP_MS: u64 = 400;
        let all = STEP_MS * self.hosts.len() as u64;
        let stages: [(u64, &[u8]); 3] = [(0, &[1, 2]), (all, &[2, 1]), (2 * all + lifetime_ms, &[2])];
        for (stage, secrets) in stages {
            for host in 0..self.hosts.len() {
                let at = begin + stage + STEP_MS * host as u64;
                self.after(at, Event::Twist(Twist::Rekey { host, secrets: secrets.to_vec() }));
            }
        }
    }

    pub(super) fn twist(&mut self, twist: Twist) -> Check {
        match twist {
            Twist::Storm { until } => {
                self.calm_since = None;
                self.network.weather = Weather::storm(&mut self.random, self.hosts.len());
                self.after(1, Event::Twist(Twist::Attack { until }));
                self.after(100, Event::Twist(Twist::Accident { until }));
                Ok(())
            }
            Twist::Calm => {
                self.calm_since = Some(self.time);
                self.network.weather = Weather::calm(self.hosts.len());
                Ok(())
            }
            Twist::Accident { until } => self.accident(until),
            Twist::Attack { until } => self.attack(until),
            Twist::Start { host, is_cold } => self.start(host, is_cold),
            Twist::Rekey { host, secrets } => {
                self.tally.rekeyed += 1;
                self.hosts[host].settings.secrets = secrets;
                self.start(host, false)
            }
        }
    }

    fn start(&mut self, host: usize, is_cold: bool) -> Check {
        self.tally.starts += 1;
        self.hosts[host].start(is_cold, self.time, &mut self.random, self.sabotage);
        if is_cold {
            self.ledger.note_cold_start(host);
        }
        self.settle(host)
    }

    fn accident(&mut self, until: u64) -> Check {
        let later = 300 + self.random.below(2000);
        if self.time + later < until {
            self.after(later, Event::Twist(Twist::Accident { until }));
        }
        let host = index(&mut self.random, self.hosts.len());
        match self.random.below(5) {
            0 => self.start(host, true),
            1 => self.start(host, false),
            2 => {
                self.hosts[host].stop();
                let (later, is_cold) = (self.random.below(8000), self.random.below(2) == 0);
                self.after(later, Event::Twist(Twist::Start { host, is_cold }));
                Ok(())
            }
            3 => {
                self.network.weather = Weather::storm(&mut self.random, self.hosts.len());
                Ok(())
            }
            _ => {
                self.set_clock(host);
                Ok(())
            }
        }
    }

    /// A clock is set, or has drifted: to what is still right.
    fn set_clock(&mut self, host: usize) {
        let clock_ms = right_clock(self.random.next());
        let host = &mut self.hosts[host];
        if !host.is_far_off {
            host.clock_ms = clock_ms;
        }
    }

    /// Someone on the wire plays recordings and invents datagrams, a few at a time or hundreds.
    fn attack(&mut self, until: u64) -> Check {
        let later = 20 + self.random.below(60);
        if self.time + later < until {
            self.after(later, Event::Twist(Twist::Attack { until }));
        }
        let count = if self.random.below(40) == 0 { 300 } else { 1 + self.random.below(4) };
        for _ in 0..count {
            self.throw();
        }
        Ok(())
    }

    fn throw(&mut self) {
        let Some(mut recorded) = self.network.recording(&mut self.random) else { return };
        let is_replay = self.random.below(3) == 0;
        if is_replay {
            self.tally.replayed += 1;
        } else {
            recorded.bytes = self.invent(recorded.bytes);
        }
        if self.random.below(2) == 0 {
            recorded.from = ([10, 0, 0, 200], 4444).into();
        }
        if self.random.below(3) == 0 {
            recorded.to = index(&mut self.random, self.hosts.len());
        }
        let (to, from, bytes) = (recorded.to, recorded.from, recorded.bytes);
        self.after(1, Event::Arrive { to, from, bytes, is_altered: !is_replay });
    }

    /// What never was sent: noise, a header before noise, or a datagram changed in one bit, in its header, or in length.
    fn invent(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let random = &mut self.random;
        let len = index(random, 1500);
        match random.below(5) {
            0 => (0..len).map(|_| byte(random)).collect(),
            1 => {
                bytes.truncate(54);
                bytes.extend((0..len).map(|_| byte(random)));
                bytes
            }
            2 => {
                flip_bit(&mut bytes[..54], random);
                bytes
            }
            3 => {
                bytes.truncate(index(random, bytes.len()));
                bytes
            }
            _ => {
                bytes.extend((0..=len).map(|_| byte(random)));
                bytes
            }
        }
    }
}

/// A clock that no host has to be excused for: up to 25 seconds ahead or behind.
pub(super) fn right_clock(random: u64) -> i64 {
    i64::try_from(random % 50_001).expect("a small number") - 25_000
}

const STORM_MS: u64 = 15_000;
const CALM_MS: u64 = 8_000;
