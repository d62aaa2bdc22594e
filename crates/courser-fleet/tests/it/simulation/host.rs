//! A host: its clock, its cache, its keys, and the member that runs on it while it is up.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use courser_fleet::{
    Event, Incarnation, MAX_PEERS, Member, MemberName, MemberSettings, Now, Transmit, UnixMillis,
};
use courser_session::{
    Cache, Cursor, FleetId, FleetKeys, FleetState, SessionId, Source, Stats, Ticketer, UnixSeconds,
};

use super::ledger::{Check, ensure};
use super::sabotage::Sabotage;
use super::workload::byte;
use crate::{Random, fleet_key};

/// When the world begins, by a clock that is right.
const DAWN_MS: u64 = 1_800_000_000_000;

/// Which secrets are live, by number: the first seals.
pub(super) type Secrets = Vec<u8>;

pub(super) struct Host {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) cache: Arc<Cache>,
    pub(super) keys: Arc<FleetKeys>,
    pub(super) ticketer: Ticketer,
    /// None while the host is down.
    pub(super) member: Option<Member>,
    /// What its clock adds to the right time, in milliseconds.
    pub(super) clock_ms: i64,
    /// Whether its clock is so wrong that nobody may believe it.
    pub(super) is_far_off: bool,
    /// Whether another host has its name.
    pub(super) is_clone: bool,
    /// Whether it also says everything in a version of the future.
    pub(super) speaks_v3: bool,
    /// Whether it forgets its keys as they roll.
    pub(super) ratchets: bool,
    /// When it started last, in the world's time.
    pub(super) started: u64,
    /// Whether its clock says that this start was before an earlier one: the others take that for a recording until the
    /// earlier start has not been heard for ten seconds, or longer if someone plays what was withheld of it.
    pub(super) is_set_back: bool,
    /// When it started last, by its own clock at its furthest.
    newest_boot: UnixMillis,
    /// Datagrams that its member was given.
    pub(super) delivered: u64,
    /// Sessions that its member was asked for and has not answered for, and when it was asked last.
    pub(super) wants: HashMap<SessionId, u64>,
    /// When its next tick is in the agenda.
    pub(super) ticks_at: Option<u64>,
    /// What its cache counted when it was last audited, and where that goes on.
    pub(super) audited: Stats,
    pub(super) audit_at: Cursor,
    /// What it wrote to disk: in forward-secret mode, its keys.
    disk: HashMap<FleetId, String>,
    pub(super) settings: Settings,
}

/// What all hosts have alike.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) lifetime: Duration,
    pub(super) cache_bytes: usize,
    pub(super) epoch_seconds: u64,
    pub(super) secrets: Secrets,
}

impl Host {
    /// A host that is down.
    pub(super) fn new(number: usize, ratchets: bool, clock_ms: i64, settings: Settings) -> Self {
        let wall = UnixSeconds(DAWN_MS.saturating_add_signed(clock_ms) / 1000);
        let (keys, disk) = open_keys(&settings, ratchets, &HashMap::new(), wall);
        let last = u8::try_from(number + 1).expect("few hosts");
        Self {
            number,
            name: format!("host-{number}"),
            address: ([10, 0, 0, last], 8888).into(),
            cache: new_cache(&settings),
            ticketer: Ticketer::new(Arc::clone(&keys)),
            keys,
            member: None,
            clock_ms,
            is_far_off: clock_ms.unsigned_abs() > FAR_OFF_MS,
            is_clone: false,
            speaks_v3: false,
            ratchets,
            started: 0,
            is_set_back: false,
            newest_boot: UnixMillis(0),
            delivered: 0,
            wants: HashMap::new(),
            ticks_at: None,
            audited: Stats::default(),
            audit_at: Cursor::START,
            disk,
            settings,
        }
    }

    /// Starts, with what its memory held before unless `is_cold`.
    pub(super) fn start(&mut self, is_cold: bool, time: u64, random: &mut Random, sabotage: Sabotage) {
        if is_cold {
            self.cache = new_cache(&self.settings);
        }
        self.started = time;
        let now = self.now(time);
        (self.keys, self.disk) = open_keys(&self.settings, self.ratchets, &self.disk, now.wall.seconds());
        self.ticketer = Ticketer::new(Arc::clone(&self.keys));
        let name = MemberName::new(&self.name).expect("a short name");
        let incarnation = match sabotage {
            Sabotage::SameBoot => Incarnation::new(UnixMillis(DAWN_MS), [7; 8]),
            _ => Incarnation::new(now.wall, random.next().to_be_bytes()),
        };
        let settings = MemberSettings::new(name, incarnation, std::array::from_fn(|_| byte(random)));
        self.member = Some(Member::new(settings, Arc::clone(&self.keys), Arc::clone(&self.cache), now));
        self.is_set_back = now.wall < self.newest_boot;
        self.newest_boot = self.newest_boot.max(now.wall);
        self.delivered = 0;
        self.wants.clear();
        self.ticks_at = None;
    }

    pub(super) fn stop(&mut self) {
        self.member = None;
        self.wants.clear();
    }

    /// This moment by the host's clocks.
    pub(super) fn now(&self, time: u64) -> Now {
        let wall = UnixMillis((DAWN_MS + time).saturating_add_signed(self.clock_ms));
        Now { wall, mono: time - self.started }
    }

    pub(super) fn wall(&self, time: u64) -> UnixSeconds {
        self.now(time).wall.seconds()
    }

    /// What a service does every second.
    pub(super) fn every_second(&mut self, time: u64) {
        let now = self.wall(time);
        for (fleet, text) in self.keys.advance(now) {
            self.disk.insert(fleet, text.to_string());
        }
        self.cache.sweep(now);
    }

    /// All that the member has to send, and all that happened to it.
    pub(super) fn drain(&mut self) -> (Vec<Transmit>, Vec<Event>) {
        let Some(member) = &mut self.member else { return (Vec::new(), Vec::new()) };
        let transmits = std::iter::from_fn(|| member.poll_transmit()).collect();
        (transmits, std::iter::from_fn(|| member.poll_event()).collect())
    }

    /// What holds after every step.
    pub(super) fn check(&self, time: u64) -> Check {
        let stats = self.cache.stats();
        ensure(stats.bytes <= stats.capacity_bytes, || format!("{} holds {} bytes", self.name, stats.bytes))?;
        let Some(member) = &self.member else { return Ok(()) };
        let status = member.status(self.now(time));
        let (received, refused) = (status.received, status.refused.total());
        ensure(received.datagrams == self.delivered, || {
            format!("{} was given {} datagrams and counts {received:?}", self.name, self.delivered)
        })?;
        ensure(received.accepted + refused == received.datagrams, || {
            format!(
                "{} accepted {}, refused {refused} of {}",
                self.name, received.accepted, received.datagrams
            )
        })?;
        ensure(status.peers.len() <= MAX_PEERS, || format!("{} has {} peers", self.name, status.peers.len()))
    }
}

fn new_cache(settings: &Settings) -> Arc<Cache> {
    Arc::new(Cache::new(settings.cache_bytes, 1))
}

/// The keys of the live secrets, from the disk where they are there, and what is on the disk then.
fn open_keys(
    settings: &Settings,
    ratchets: bool,
    disk: &HashMap<FleetId, String>,
    wall: UnixSeconds,
) -> (Arc<FleetKeys>, HashMap<FleetId, String>) {
    let source = |secret: &u8| {
        // Epoch 500 is half over at dawn.
        let origin = DAWN_MS / 1000 - settings.epoch_seconds * 1001 / 2;
        let key = fleet_key(*secret, settings.epoch_seconds, UnixSeconds(origin));
        match (ratchets, disk.get(&key.id())) {
            (false, _) => Source::Simple(key),
            (true, Some(text)) => Source::Ratcheted(FleetState::parse(text).expect("what was written")),
            (true, None) => Source::Ratcheted(
                FleetState::from_key(&key, settings.lifetime, wall).expect("key and clock fit"),
            ),
        }
    };
    let sources = settings.secrets.iter().map(source).collect();
    let keys = FleetKeys::new(sources, settings.lifetime, wall).expect("the secrets fit");
    let written = keys.advance(wall).into_iter().map(|(fleet, text)| (fleet, text.to_string()));
    let disk = written.collect();
    (Arc::new(keys), disk)
}

/// Far beyond what two right clocks may differ by, so that no session gets over by way of a third host.
const FAR_OFF_MS: u64 = 150_000;
