//! One host of a fleet: what it sends when, and what it knows of its peers. What comes in is in `receive.rs`.

use std::fmt;
use std::sync::Arc;

use courser_session::{CLOCK_SKEW, Cache, FleetKeys, MAX_LIFETIME, SessionId, SharedSession};
use zeroize::Zeroizing;

use crate::allowed::{Allowed, Gate};
use crate::bucket::Rate;
use crate::content::{self, Heartbeat};
use crate::domain_check::DomainCheck;
use crate::events::Events;
use crate::identity::{Incarnation, MemberId, MemberName};
use crate::message::{Kind, To, Transmit};
use crate::now::Now;
use crate::openings::Openings;
use crate::outbox::Outbox;
use crate::peers::{DEFAULT_PEER_RATE, Peers};
use crate::proof::{MemberStart, Proofs};
use crate::pull::{Pull, Pulls};
use crate::seal::{Opener, Sealer};
use crate::state_transfer::{PartRequest, StateTransfer};
use crate::status::{Event, ReceivedCounts, Refused, Status};

/// Settings of one start of a member. Not to be used twice: [`incarnation`](Self::incarnation) and [`random`](Self::random)
/// are for one member alone.
pub struct MemberSettings {
    /// Its configured name, which no other member may have.
    pub name: MemberName,
    /// This start of it. A member that is made anew, also within one process, has another one: two of one incarnation would
    /// seal different messages under the same key and nonce, which gives both away.
    pub incarnation: Incarnation,
    /// For this start alone: what it challenges others with follows from it. Wiped on drop.
    pub random: Zeroizing<[u8; 32]>,
    /// The longest datagram that it may send, without IP and UDP headers: at least 512 bytes, at most 65,507.
    pub max_payload: usize,
    /// From where it takes messages; empty: from anywhere.
    pub allowed: Vec<Allowed>,
    /// How many messages it takes from each peer.
    pub peer_rate: Rate,
    /// Whether it fills its cache from a peer's when it starts.
    pub state_transfer: bool,
}

impl MemberSettings {
    /// Settings for Ethernet and any source, with state transfer. `random` is fresh from a random number generator.
    pub fn new(name: MemberName, incarnation: Incarnation, random: [u8; 32]) -> Self {
        Self {
            name,
            incarnation,
            random: Zeroizing::new(random),
            max_payload: ETHERNET_PAYLOAD,
            allowed: Vec::new(),
            peer_rate: DEFAULT_PEER_RATE,
            state_transfer: true,
        }
    }
}

/// One host of a fleet. Owned by one thread.
pub struct Member {
    name: MemberName,
    pub(crate) start: MemberStart,
    pub(crate) keys: Arc<FleetKeys>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) gate: Gate,
    pub(crate) openings: Openings,
    pub(crate) peer_rate: Rate,
    pub(crate) opener: Opener,
    pub(crate) peers: Peers,
    pub(crate) proofs: Proofs,
    pub(crate) outbox: Outbox,
    pub(crate) pulls: Pulls,
    pub(crate) state_transfer: StateTransfer,
    pub(crate) events: Events,
    pub(crate) received: ReceivedCounts,
    pub(crate) refused: Refused,
    heartbeat_at: u64,
    jitter: u64,
    /// The time of the last call.
    pub(crate) now: Now,
}

impl Member {
    /// A member that starts now, and will introduce itself with the first [`tick`](Self::tick).
    pub fn new(settings: MemberSettings, keys: Arc<FleetKeys>, cache: Arc<Cache>, now: Now) -> Self {
        let life = (settings.name.id(), settings.incarnation);
        let [_, jitter] = settings.incarnation.halves();
        let sealer = Sealer::new(Arc::clone(&keys), life.0, life.1);
        Self {
            start: life,
            gate: Gate::new(settings.allowed),
            openings: Openings::new(),
            peer_rate: settings.peer_rate,
            opener: Opener::new(Arc::clone(&keys), life.0),
            peers: Peers::default(),
            proofs: Proofs::new(&settings.random),
            outbox: Outbox::new(sealer, settings.max_payload),
            pulls: Pulls::new(),
            state_transfer: StateTransfer::new(settings.state_transfer, now.mono),
            events: Events::default(),
            received: ReceivedCounts::default(),
            refused: Refused::default(),
            heartbeat_at: now.mono,
            name: settings.name,
            keys,
            cache,
            jitter,
            now,
        }
    }

    /// From now on takes messages from these, as of [`MemberSettings::allowed`].
    pub fn set_allowed(&mut self, allowed: Vec<Allowed>) {
        self.gate = Gate::new(allowed);
    }

    /// Pushes a session that was made here to the peers. It waits up to 2 ms for others to share its datagram.
    pub fn push(&mut self, session: &SharedSession, now: Now) {
        self.now = now;
        self.outbox.push(session, now);
    }

    /// Deletes a session on the peers. The caller
    /// [deletes](Cache::delete) it in this host's own cache. Call it only for a session whose owner is known.
    pub fn delete(&mut self, id: &SessionId, now: Now) {
        self.now = now;
        let longest = self.keys.lifetime().min(MAX_LIFETIME) + CLOCK_SKEW;
        self.outbox.delete(id, now.wall.seconds().plus(longest), now);
    }

    /// Removes a session on the peers without a tombstone: for a client that has used up its tombstones.
    pub fn remove(&mut self, id: &SessionId, now: Now) {
        self.now = now;
        self.outbox.remove(id, now);
    }

    /// Pulls a session from the peers. An [`Event::Answered`] follows, at the latest after a second; several calls for
    /// one session share one pull.
    pub fn pull(&mut self, id: &SessionId, now: Now) {
        self.now = now;
        match self.pulls.request(*id, self.peers.useful(now.mono), now.mono) {
            Pull::Send => self.outbox.pull(id, now),
            Pull::Wait => {}
            Pull::NotFound => self.events.answered(*id, false),
        }
    }

    /// Sends the peers a check that they are to answer, or one that is over. Each that answers it is an [`Event::Acknowledged`];
    /// what is lost is the caller's to send again.
    pub fn send_check(&mut self, check: &DomainCheck, now: Now) {
        self.now = now;
        if (1..=DomainCheck::LONGEST_NAME).contains(&check.name.len()) {
            let put = |draft: &mut _| content::put_check(draft, check);
            self.outbox.send(Kind::DomainCheck, put, To::All, now);
        }
    }

    /// Says that this host answers the check which `to` has sent ([`Event::DomainCheck`]).
    pub fn acknowledge(&mut self, digest: &[u8; 32], to: MemberId, now: Now) {
        self.now = now;
        let Some(to) = self.peers.iter_mut().find(|peer| peer.id == to).map(|peer| peer.to()) else { return };
        self.outbox.send(Kind::Acknowledged, |draft| content::put_digest(draft, digest), to, now);
    }

    /// Does what is due. Call it at [`next_tick`](Self::next_tick); earlier does no harm.
    pub fn tick(&mut self, now: Now) {
        self.now = now;
        self.outbox.tick(now);
        if now.mono >= self.heartbeat_at {
            self.send_heartbeat(now);
        }
        let unanswered = self.pulls.tick(now.mono);
        unanswered.into_iter().for_each(|id| self.events.answered(id, false));
        let request = self.state_transfer.tick(&self.peers, now.mono);
        self.request_part(request, now);
    }

    /// When something is due: a [`Now::mono`].
    pub fn next_tick(&self) -> u64 {
        let due = [self.outbox.due(), self.pulls.due(), self.state_transfer.due()];
        due.into_iter().flatten().fold(self.heartbeat_at, u64::min)
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        let sealed = self.outbox.next(self.now)?;
        self.events.sent(&sealed);
        Some(sealed.transmit)
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }

    /// Whether every datagram becomes an [`Event::Passed`]; not at first.
    pub fn watch(&mut self, is_watched: bool) {
        self.events.watch(is_watched);
    }

    /// Status of this member and its peers.
    pub fn status(&self, now: Now) -> Status {
        Status {
            id: self.start.0,
            incarnation: self.start.1,
            epoch: self.keys.epoch(now.wall.seconds()),
            peers: self.peers.remembered(now.mono).map(|peer| peer.status(now.mono)).collect(),
            sent: self.outbox.counts(),
            received: self.received,
            refused: self.refused,
            pulls: self.pulls.counts(),
            state_transfer: self.state_transfer.status(),
            transferred: self.state_transfer.taken(),
        }
    }

    /// Sends a heartbeat to the peers, and reports changes of them.
    fn send_heartbeat(&mut self, now: Now) {
        self.heartbeat_at = now.mono.saturating_add(self.interval());
        let heartbeat = Heartbeat {
            name: self.name.clone(),
            entries: self.cache.stats().entries as u64,
            pushed: self.outbox.counts().pushed,
            taken: self.received.taken,
        };
        let put = |draft: &mut _| content::put_heartbeat(draft, &heartbeat);
        self.outbox.send(Kind::Heartbeat, put, To::All, now);
        self.opener.forget_old(now.wall.seconds());
        self.events.report_changes(&mut self.peers, now.mono);
    }

    /// A second, more or less a tenth, so that hosts that were started together do not stay in step (SplitMix64).
    fn interval(&mut self) -> u64 {
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.jitter ^ (self.jitter >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        HEARTBEAT_MS - HEARTBEAT_MS / 10 + (mixed ^ (mixed >> 31)) % (HEARTBEAT_MS / 5)
    }

    fn request_part(&mut self, request: Option<PartRequest>, now: Now) {
        let Some(request) = request else { return };
        let to = self.peers.get(request.place).to();
        self.outbox.send(Kind::StateRequest, |draft| content::put_number(draft, request.from), to, now);
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("name", &self.name).field("life", &self.start).finish_non_exhaustive()
    }
}

/// Ethernet's 1500 bytes, less the headers of IPv6 (40) and UDP (8).
pub const ETHERNET_PAYLOAD: usize = 1500 - 40 - 8;

const HEARTBEAT_MS: u64 = 1000;
