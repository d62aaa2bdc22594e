//! Members of a fleet, back to back: what one sends the others get at once, unless a test says otherwise.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod domain_check;
mod flood;
mod golden;
mod pull;
mod push;
mod refuse;
mod state_transfer;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use courser_fleet::{
    Destination, Event, Incarnation, Member, MemberName, MemberSettings, Now, PeerStatus, Refusal, UnixMillis,
};
use courser_session::{Cache, FleetKey, FleetKeys, Provenance, SessionId, SharedSession, Source, State};

use crate::{HOUR, NOW, hourly, policy, session_id, two_hours};

/// Hosts on one segment.
struct Segment {
    hosts: Vec<Host>,
    now: Now,
    /// All that was sent, with its sender.
    sent: Vec<(usize, Destination, Vec<u8>)>,
    /// Whether every so manieth datagram is lost.
    lose_every: Option<usize>,
}

struct Host {
    member: Member,
    cache: Arc<Cache>,
    events: Vec<Event>,
    /// Whether what is sent to it is lost.
    is_cut_off: bool,
}

impl Segment {
    fn new(names: &[&str]) -> Self {
        let mut segment = Self { hosts: Vec::new(), now: at(0), sent: Vec::new(), lose_every: None };
        for name in names {
            segment.start(settings(name, 1), keys());
        }
        segment
    }

    /// Members that know each other.
    fn acquainted(names: &[&str]) -> Self {
        let mut segment = Self::new(names);
        segment.run(10);
        for host in 0..names.len() {
            assert_eq!(segment.status(host).peers.len(), names.len() - 1);
        }
        segment
    }

    fn start(&mut self, settings: MemberSettings, keys: Arc<FleetKeys>) -> usize {
        let host = self.host(settings, keys);
        self.hosts.push(host);
        self.hosts.len() - 1
    }

    fn restart(&mut self, host: usize, settings: MemberSettings) {
        self.restart_with(host, settings, keys());
    }

    fn restart_with(&mut self, host: usize, settings: MemberSettings, keys: Arc<FleetKeys>) {
        self.hosts[host] = self.host(settings, keys);
    }

    fn host(&self, settings: MemberSettings, keys: Arc<FleetKeys>) -> Host {
        let cache = Arc::new(Cache::new(4 << 20, 1));
        let member = Member::new(settings, keys, Arc::clone(&cache), self.now);
        Host { member, cache, events: Vec::new(), is_cut_off: false }
    }

    /// Lets so many milliseconds pass.
    fn run(&mut self, ms: u64) {
        for _ in 0..=ms {
            self.act();
            self.pass();
        }
    }

    /// Lets everyone do what is due.
    fn act(&mut self) {
        for host in 0..self.hosts.len() {
            if self.now.mono >= self.hosts[host].member.next_tick() {
                let now = self.now;
                self.hosts[host].member.tick(now);
            }
        }
        self.exchange();
    }

    /// Lets a millisecond pass.
    fn pass(&mut self) {
        self.now = Now { wall: UnixMillis(self.now.wall.0 + 1), mono: self.now.mono + 1 };
    }

    /// Delivers until nobody has anything to say.
    fn exchange(&mut self) {
        while let Some((from, to, bytes)) = self.next() {
            let is_lost = self.lose_every.is_some_and(|every| self.sent.len().is_multiple_of(every));
            for host in (0..self.hosts.len()).filter(|_| !is_lost) {
                let is_for_it = to == Destination::All || to == Destination::One(address(host));
                if host != from && is_for_it && !self.hosts[host].is_cut_off && !self.hosts[from].is_cut_off {
                    self.deliver(from, host, &bytes);
                }
            }
            self.sent.push((from, to, bytes));
        }
        for host in &mut self.hosts {
            while let Some(event) = host.member.poll_event() {
                host.events.push(event);
            }
        }
    }

    fn next(&mut self) -> Option<(usize, Destination, Vec<u8>)> {
        self.hosts.iter_mut().enumerate().find_map(|(number, host)| {
            host.member.poll_transmit().map(|transmit| (number, transmit.to, transmit.bytes))
        })
    }

    fn deliver(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let (mut datagram, now) = (bytes.to_vec(), self.now);
        self.hosts[to].member.receive(address(from), &mut datagram, now);
        assert!(datagram.iter().all(|&byte| byte == 0), "what was opened has to be wiped");
    }

    /// Makes a session at a host, as a full handshake there does.
    fn make(&mut self, host: usize, number: u64) -> SharedSession {
        let session = session(number);
        self.put(host, &session);
        let now = self.now;
        self.hosts[host].member.push(&session, now);
        session
    }

    fn put(&self, host: usize, session: &SharedSession) {
        let SharedSession { id, policy, lifespan, state } = session.clone();
        let seconds = self.now.wall.seconds();
        assert!(
            self.hosts[host].cache.put(&id, policy, state, lifespan, Provenance::Local, seconds).is_stored()
        );
    }

    fn has(&self, host: usize, session: &SharedSession) -> bool {
        let seconds = self.now.wall.seconds();
        let found = self.hosts[host].cache.get(&session.id, &session.policy, seconds);
        found.is_ok_and(|found| found.state[..] == session.state[..] && found.lifespan == session.lifespan)
    }

    fn want(&mut self, host: usize, id: &SessionId) {
        let now = self.now;
        self.hosts[host].member.pull(id, now);
    }

    fn delete(&mut self, host: usize, session: &SharedSession) {
        let (seconds, now) = (self.now.wall.seconds(), self.now);
        self.hosts[host].cache.delete(&session.id, seconds.plus(2 * HOUR), seconds);
        self.hosts[host].member.delete(&session.id, now);
    }

    fn answers(&self, host: usize) -> Vec<bool> {
        let found = |event: &Event| match event {
            Event::Answered { found, .. } => Some(*found),
            _ => None,
        };
        self.hosts[host].events.iter().filter_map(found).collect()
    }

    fn status(&self, host: usize) -> courser_fleet::Status {
        let status = self.hosts[host].member.status(self.now);
        let received = status.received;
        assert_eq!(
            received.datagrams,
            received.accepted + status.refused.total(),
            "each is one or the other"
        );
        status
    }

    fn peer(&self, host: usize, name: &str) -> PeerStatus {
        let peers = self.status(host).peers.into_iter();
        peers.into_iter().find(|peer| peer.label() == name).expect("it is a peer")
    }

    fn refused(&self, host: usize, refusal: Refusal) -> u64 {
        self.status(host).refused.get(refusal)
    }

    /// The last datagram that a host sent to all.
    fn last_to_all(&self, host: usize) -> Vec<u8> {
        let mut sent = self.sent.iter().rev();
        sent.find(|(from, to, _)| *from == host && *to == Destination::All)
            .expect("it sent something")
            .2
            .clone()
    }
}

fn address(host: usize) -> SocketAddr {
    format!("192.0.2.{}:8888", host + 1).parse().unwrap()
}

fn at(ms: u64) -> Now {
    Now { wall: UnixMillis(NOW.0 * 1000 + ms), mono: ms }
}

fn settings(name: &str, incarnation: u64) -> MemberSettings {
    let name = MemberName::new(name).unwrap();
    let random = u8::try_from(incarnation & 0xff).unwrap();
    let incarnation = Incarnation::new(UnixMillis(NOW.0 * 1000 - 1000 + incarnation), [random; 8]);
    let mut secret = [random; 32];
    secret[..8].copy_from_slice(&name.id().0);
    MemberSettings { state_transfer: false, ..MemberSettings::new(name, incarnation, secret) }
}

fn keys() -> Arc<FleetKeys> {
    keys_of(1, 1)
}

/// Keys of a fleet and a secret, each of one byte's choice, with epochs of an hour, one of which begins now.
fn keys_of(fleet: u8, secret: u8) -> Arc<FleetKeys> {
    keys_of_all(&[(fleet, secret)])
}

/// Keys of several: the first seals.
fn keys_of_all(fleets: &[(u8, u8)]) -> Arc<FleetKeys> {
    let sources = fleets.iter().map(|&(fleet, secret)| Source::Simple(key_of(fleet, secret)));
    Arc::new(FleetKeys::new(sources.collect(), 2 * HOUR, NOW).unwrap())
}

fn key_of(fleet: u8, secret: u8) -> FleetKey {
    let text = hourly(secret).to_text();
    let names = [secret, fleet].map(|byte| format!("fleet = {}\n", format!("{byte:02x}").repeat(8)));
    assert!(text.contains(&names[0]));
    FleetKey::parse(&text.replace(&names[0], &names[1])).unwrap()
}

/// A session of two hours, whose state no other has.
fn session(number: u64) -> SharedSession {
    sized_session(number, 150)
}

fn sized_session(number: u64, len: usize) -> SharedSession {
    let state: Vec<u8> = number.to_be_bytes().into_iter().cycle().take(len).collect();
    SharedSession {
        id: session_id(number),
        policy: policy("example.org"),
        lifespan: two_hours(NOW),
        state: State::from(state),
    }
}
