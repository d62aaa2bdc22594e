//! What sharing sessions costs, without the sockets: `cargo run --release --example fleet [seconds]`.
//!
//! Two members, back to back, in the time of a model: one makes 10,000 sessions a second, one takes 50,000 a second from five
//! peers, and one fills its cache from another's. A rough instrument: one run, no intervals.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_fleet::{Incarnation, Member, MemberName, MemberSettings, Now, UnixMillis};
use courser_session::{
    Cache, DEFAULT_SHARDS, EpochLength, FleetKeys, Lifespan, PolicyHash, Provenance, SessionId,
    SharedSession, State, UnixSeconds,
};

const NOW: UnixSeconds = UnixSeconds(1_800_000_000);
const LIFETIME: Duration = Duration::from_secs(7200);
const PEERS: u64 = 5;
const SESSIONS_A_SECOND: u64 = 10_000;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(5);
    let now = Now { wall: UnixMillis(NOW.0 * 1000), mono: 0 };
    let keys = FleetKeys::alone(EpochLength::DEFAULT, LIFETIME, NOW).expect("the lifetime is in range");
    let mut model = Model { keys: Arc::new(keys), hosts: Vec::new(), now };
    (0..=PEERS).for_each(|number| model.start(number, false));
    model.exchange();
    let mut cost = [Duration::ZERO; 2];
    for _ in 0..seconds * 1000 {
        let spent = model.millisecond();
        cost = [cost[0] + spent[0], cost[1] + spent[1]];
    }
    model.now.mono += 2;
    model.exchange();
    let taken = model.hosts[0].member.status(model.now).received;
    assert_eq!(taken.taken, seconds * SESSIONS_A_SECOND * PEERS, "all arrived");
    let made = seconds * SESSIONS_A_SECOND * PEERS;
    tell("sending, one of five", cost[0], made, SESSIONS_A_SECOND);
    tell("receiving from five", cost[1], made, SESSIONS_A_SECOND * PEERS);
    state_transfer(&mut model);
}

/// A host that starts takes all that the first one has.
fn state_transfer(model: &mut Model) {
    model.start(PEERS + 1, true);
    let joiner = model.hosts.len() - 1;
    let start = Instant::now();
    for _ in 0..3000 {
        model.pass_time();
        model.exchange();
    }
    let status = model.hosts[joiner].member.status(model.now);
    let each = start.elapsed().as_secs_f64() * 1e6 / status.transferred.max(1) as f64;
    println!(
        "state transfer, both ends: {} sessions, {}, {each:.2} us each",
        status.transferred,
        status.state_transfer.name()
    );
}

fn tell(what: &str, cost: Duration, sessions: u64, rate: u64) {
    let each = cost.as_secs_f64() / sessions as f64;
    println!(
        "{what}: {:.2} us a session, {:.1} % of a core at {rate} a second",
        each * 1e6,
        each * rate as f64 * 100.0
    );
}

struct Model {
    keys: Arc<FleetKeys>,
    hosts: Vec<Host>,
    now: Now,
}

struct Host {
    member: Member,
    cache: Arc<Cache>,
    made: u64,
}

impl Model {
    fn start(&mut self, number: u64, state_transfer: bool) {
        let cache = Arc::new(Cache::new(512 << 20, DEFAULT_SHARDS));
        let name = MemberName::new(&format!("host {number}")).expect("it is a name");
        let incarnation = Incarnation::new(self.now.wall, number.to_be_bytes());
        let settings = MemberSettings { state_transfer, ..MemberSettings::new(name, incarnation, [7; 32]) };
        let member = Member::new(settings, Arc::clone(&self.keys), Arc::clone(&cache), self.now);
        self.hosts.push(Host { member, cache, made: number << 40 });
    }

    fn pass_time(&mut self) {
        self.now = Now { wall: UnixMillis(self.now.wall.0 + 1), mono: self.now.mono + 1 };
    }

    /// All but the first make their sessions of a millisecond; what that takes, and what it takes to receive them.
    fn millisecond(&mut self) -> [Duration; 2] {
        self.pass_time();
        let mut sessions: Vec<Vec<SharedSession>> = Vec::new();
        for host in &mut self.hosts[1..] {
            sessions.push((0..SESSIONS_A_SECOND / 1000).map(|_| host.next_session()).collect());
        }
        let start = Instant::now();
        let mut sent = Vec::new();
        for (number, sessions) in (1..).zip(&sessions) {
            let member = &mut self.hosts[number].member;
            sessions.iter().for_each(|session| member.push(session, self.now));
            member.tick(self.now);
            sent.extend(
                std::iter::from_fn(|| member.poll_transmit()).map(|transmit| (number, transmit.bytes)),
            );
        }
        let sending = start.elapsed();
        let start = Instant::now();
        for (number, mut bytes) in sent {
            self.hosts[0].member.receive(address(number), &mut bytes, self.now);
        }
        [sending, start.elapsed()]
    }

    fn exchange(&mut self) {
        self.hosts.iter_mut().for_each(|host| host.member.tick(self.now));
        while let Some((from, bytes)) = self.next() {
            for to in (0..self.hosts.len()).filter(|to| *to != from) {
                self.hosts[to].member.receive(address(from), &mut bytes.clone(), self.now);
            }
        }
    }

    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        let polled = self.hosts.iter_mut().map(|host| host.member.poll_transmit()).enumerate();
        polled.into_iter().find_map(|(from, transmit)| transmit.map(|transmit| (from, transmit.bytes)))
    }
}

impl Host {
    /// Of the size of a TLS 1.2 session without client certificate.
    fn next_session(&mut self) -> SharedSession {
        self.made += 1;
        let mut id = [0; 32];
        id[..8].copy_from_slice(&self.made.to_be_bytes());
        let session = SharedSession {
            id: SessionId::try_from(&id[..]).expect("32 bytes are an ID"),
            policy: PolicyHash::builder("listener", "host").finish(),
            lifespan: Lifespan::new(NOW, LIFETIME),
            state: State::from(&[7; 150][..]),
        };
        let SharedSession { id, policy, lifespan, state } = session.clone();
        self.cache.put(&id, policy, state, lifespan, Provenance::Local, NOW);
        session
    }
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, u8::try_from(host).unwrap_or(u8::MAX)], 8888))
}
