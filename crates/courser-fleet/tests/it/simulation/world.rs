//! Hosts, what lies between them, and everything that is yet to happen, in virtual time. What is random comes from one seed.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

use courser_fleet::{Destination, Event as MemberEvent, Transmit};
use courser_session::{Cursor, SharedSession};

use super::host::Host;
use super::ledger::{Check, Ledger, Violation, ensure};
use super::network::{Network, Weather};
use super::sabotage::Sabotage;
use super::story::Twist;
use super::tally::Tally;
use super::workload::{Work, Workload};
use crate::Random;

/// Something that is to happen.
pub(super) enum Event {
    /// A datagram arrives.
    Arrive { to: usize, from: SocketAddr, bytes: Vec<u8>, is_altered: bool },
    /// A member has something to do.
    Tick { host: usize },
    /// What a service does every second.
    Second { host: usize },
    /// Something of the workload.
    Work(Work),
    /// Something of the story.
    Twist(Twist),
}

pub(super) struct World {
    /// Milliseconds since the beginning.
    pub(super) time: u64,
    /// When the story ends.
    pub(super) end: u64,
    pub(super) random: Random,
    pub(super) hosts: Vec<Host>,
    pub(super) network: Network,
    pub(super) ledger: Ledger,
    pub(super) tally: Tally,
    pub(super) workload: Workload,
    pub(super) sabotage: Sabotage,
    /// Since when the network has been calm and nobody attacks; none while it is not.
    pub(super) calm_since: Option<u64>,
    agenda: BTreeMap<(u64, u64), Event>,
    noted: u64,
    /// Fleet, epoch, sender, start and number of every datagram that was sealed.
    nonces: HashSet<Vec<u8>>,
}

impl World {
    /// A calm world whose hosts all start at once.
    pub(super) fn new(seed: u64, hosts: Vec<Host>, workload: Workload, sabotage: Sabotage) -> Self {
        let mut world = Self {
            time: 0,
            end: 0,
            random: Random(seed),
            network: Network::new(Weather::calm(hosts.len())),
            hosts,
            ledger: Ledger::default(),
            tally: Tally::default(),
            workload,
            sabotage,
            calm_since: Some(0),
            agenda: BTreeMap::new(),
            noted: 0,
            nonces: HashSet::new(),
        };
        for host in 0..world.hosts.len() {
            world.after(host as u64, Event::Twist(Twist::Start { host, is_cold: true }));
            world.after(1000, Event::Second { host });
        }
        world
    }

    /// Notes that something happens in so many milliseconds.
    pub(super) fn after(&mut self, delay: u64, event: Event) {
        self.noted += 1;
        self.agenda.insert((self.time + delay, self.noted), event);
    }

    /// Lets time pass until `end`.
    pub(super) fn run_until(&mut self, end: u64) -> Check {
        while let Some(entry) = self.agenda.first_entry().filter(|entry| entry.key().0 <= end) {
            self.time = entry.key().0;
            let event = entry.remove();
            self.step(event)?;
        }
        self.time = end;
        Ok(())
    }

    fn step(&mut self, event: Event) -> Check {
        self.tally.steps += 1;
        match event {
            Event::Arrive { to, from, bytes, is_altered } => self.arrive(to, from, bytes, is_altered),
            Event::Tick { host } => self.tick(host),
            Event::Second { host } => {
                self.hosts[host].every_second(self.time);
                self.after(1000, Event::Second { host });
                self.settle(host)
            }
            Event::Work(work) => self.work(work),
            Event::Twist(twist) => self.twist(twist),
        }
    }

    fn arrive(&mut self, to: usize, from: SocketAddr, mut bytes: Vec<u8>, is_altered: bool) -> Check {
        let now = self.hosts[to].now(self.time);
        let before = self.hosts[to].cache.stats();
        let Some(member) = &mut self.hosts[to].member else { return Ok(()) };
        member.receive(from, &mut bytes, now);
        ensure(bytes.iter().all(|byte| *byte == 0), || "a datagram was not wiped".to_owned())?;
        self.hosts[to].delivered += 1;
        if is_altered {
            self.tally.altered += 1;
            let host = &mut self.hosts[to];
            let same = host.cache.stats() == before;
            ensure(same, || format!("{} let a forged datagram touch its cache", host.name))?;
            let (transmits, events) = host.drain();
            ensure(transmits.is_empty() && events.is_empty(), || {
                format!("{} answers a forged datagram", self.hosts[to].name)
            })?;
        }
        self.settle(to)
    }

    fn tick(&mut self, host: usize) -> Check {
        let now = self.hosts[host].now(self.time);
        self.hosts[host].ticks_at = None;
        if let Some(member) = &mut self.hosts[host].member {
            member.tick(now);
        }
        self.settle(host)
    }

    /// Does what a host's driver does after every call, and checks what has to hold after every step.
    pub(super) fn settle(&mut self, host: usize) -> Check {
        let (transmits, events) = self.hosts[host].drain();
        ensure(transmits.len() <= MAX_AT_ONCE, || {
            format!("{} sends {} datagrams at once", self.hosts[host].name, transmits.len())
        })?;
        for transmit in transmits {
            self.transmit(host, &transmit)?;
        }
        for event in events {
            if let MemberEvent::Answered { id, found } = event {
                self.answered(host, &id, found)?;
            }
        }
        self.note_tick(host);
        self.audit(host)
    }

    fn note_tick(&mut self, number: usize) {
        let host = &mut self.hosts[number];
        let Some(member) = &host.member else { return };
        let at = (host.started + member.next_tick()).max(self.time + 1);
        if host.ticks_at.is_none_or(|noted| at < noted) {
            host.ticks_at = Some(at);
            self.after(at - self.time, Event::Tick { host: number });
        }
    }

    fn transmit(&mut self, from: usize, transmit: &Transmit) -> Check {
        let nonce = transmit.bytes[6..54].to_vec();
        ensure(self.nonces.insert(nonce), || format!("{} used a nonce twice", self.hosts[from].name))?;
        self.tally.digest(&transmit.bytes);
        let receivers: Vec<_> = self.receivers(from, transmit.to).collect();
        let source = self.hosts[from].address;
        for to in receivers {
            for flying in self.network.send((from, source), to, &transmit.bytes, &mut self.random) {
                let (bytes, is_altered) = (flying.bytes, flying.is_altered);
                self.after(flying.after, Event::Arrive { to, from: source, bytes, is_altered });
            }
            if self.hosts[from].speaks_v3 {
                let mut bytes = transmit.bytes.clone();
                (bytes[4], bytes[5]) = (3, 200);
                self.after(1, Event::Arrive { to, from: source, bytes, is_altered: true });
            }
        }
        Ok(())
    }

    fn receivers(&self, from: usize, to: Destination) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(move |number| match to {
            Destination::All => *number != from,
            Destination::One(address) => self.hosts[*number].address == address,
        })
    }

    /// Checks a host: its counters and bounds; if its cache has changed the newest sessions in it, and now and then some of
    /// the others in turn.
    fn audit(&mut self, number: usize) -> Check {
        self.hosts[number].check(self.time)?;
        let (now, host) = (self.hosts[number].wall(self.time), &mut self.hosts[number]);
        let stats = host.cache.stats();
        let has_changed = std::mem::replace(&mut host.audited, stats) != host.audited;
        if has_changed {
            self.ledger.note_told(&self.hosts[number], now);
            self.audit_part(number, Cursor::START)?;
        }
        if self.tally.steps.is_multiple_of(8) {
            self.hosts[number].audit_at = self.audit_part(number, self.hosts[number].audit_at)?;
        }
        Ok(())
    }

    /// Checks as many sessions as are more than a datagram can bring, and says where to go on.
    fn audit_part(&self, number: usize, from: Cursor) -> Result<Cursor, Violation> {
        let host = &self.hosts[number];
        let (sessions, next) = host.cache.export(from, NEWEST_BYTES, host.wall(self.time));
        self.audit_sessions(number, &sessions)?;
        Ok(next.unwrap_or(Cursor::START))
    }

    pub(super) fn audit_sessions(&self, host: usize, sessions: &[SharedSession]) -> Check {
        sessions.iter().try_for_each(|session| self.ledger.audit(&self.hosts[host], session))
    }

    /// Checks every session on every host.
    pub(super) fn audit_all(&self) -> Check {
        (0..self.hosts.len()).try_for_each(|host| {
            let now = self.hosts[host].wall(self.time);
            self.audit_sessions(host, &super::held(&self.hosts[host].cache, now))
        })
    }
}

/// More sessions than a datagram holds.
const NEWEST_BYTES: usize = 3000;
/// A question of 40 sessions, each of them answered alone, and some more.
const MAX_AT_ONCE: usize = 64;
