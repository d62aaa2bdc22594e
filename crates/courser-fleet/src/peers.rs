//! What is known of the other members. May not know one that has not proven to live, so that recordings cannot crowd
//! out the living.

use std::net::SocketAddr;

use crate::bucket::{Bucket, Rate};
use crate::content::Heartbeat;
use crate::identity::{Incarnation, MemberId, MemberName};
use crate::message::{Header, Sequence, To};
use crate::now::Now;
use crate::proof::MemberStart;
use crate::refusal::Refusal;
use crate::replay_window::ReplayWindow;
use crate::status::PeerChange;

/// The most peers that a member has: as many as a word has bits, for sets of them.
pub const MAX_PEERS: usize = 64;

/// The members that have proven to live. A peer keeps its place, a number below [`MAX_PEERS`].
#[derive(Default)]
pub(crate) struct Peers(Vec<Peer>);

/// One of them.
pub(crate) struct Peer {
    pub(crate) id: MemberId,
    /// The start of it that has proven to live last.
    pub(crate) incarnation: Incarnation,
    pub(crate) address: SocketAddr,
    /// From the first heartbeat on.
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) epoch: u64,
    pub(crate) known_since: Now,
    pub(crate) heard_at: Now,
    pub(crate) lateness: Lateness,
    /// Of what it asks us: sessions, and parts of all sessions.
    pub(crate) gets: Bucket,
    pub(crate) state_requests: Bucket,
    /// Of its messages, authentic and new ones alone.
    messages: Bucket,
    /// Its condition as last reported.
    pub(crate) reported: PeerCondition,
    /// That it joined or restarted, to be reported with its first heartbeat, which has its name.
    pub(crate) unreported: Option<PeerChange>,
    to_all: ReplayWindow,
    to_one: ReplayWindow,
}

/// What of a peer is reported when it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PeerCondition {
    pub(crate) is_silent: bool,
    pub(crate) is_clock_off: bool,
}

impl Peers {
    /// The place of the peer that a message is from; `None` if its sender, or this start of it, has yet to prove that
    /// it lives. Whether the message is new is still to be asked.
    ///
    /// A start older than the known one is refused while messages of that come, and may answer a challenge once they do not:
    /// it was started by a clock that has been set back.
    pub(crate) fn sender(&self, header: &Header, mono: u64) -> Result<Option<usize>, Refusal> {
        let Some(place) = self.0.iter().position(|peer| peer.id == header.sender) else { return Ok(None) };
        let peer = &self.0[place];
        if peer.incarnation == header.incarnation {
            return Ok(Some(place));
        }
        if header.incarnation < peer.incarnation && peer.silence(mono) < GONE_MS {
            return Err(Refusal::StaleIncarnation);
        }
        Ok(None)
    }

    /// Whether a message would change nothing, by its header, which need not be authentic for that. It costs
    /// nothing to find out, and opening the message does.
    pub(crate) fn check_header(&self, header: &Header, mono: u64) -> Result<(), Refusal> {
        let Some(place) = self.sender(header, mono)? else { return Ok(()) };
        if self.0[place].has_seen(header.sequence) { Err(Refusal::Replayed) } else { Ok(()) }
    }

    /// Takes a start of a member in that has proven to live, in place of an older one of it or of one that is gone.
    pub(crate) fn admit(
        &mut self,
        life: MemberStart,
        address: SocketAddr,
        now: Now,
    ) -> Result<(usize, Admitted), Refusal> {
        let known = self.0.iter().position(|peer| peer.id == life.0);
        let admitted = if known.is_some() { Admitted::Restarted } else { Admitted::New };
        let peer = Peer::new(life, address, now);
        let place = known.or_else(|| self.vacancy(now.mono)).unwrap_or(self.0.len());
        match self.0.get_mut(place) {
            Some(old) => *old = peer,
            None if place < MAX_PEERS => self.0.push(peer),
            None => return Err(Refusal::TooManyPeers),
        }
        Ok((place, admitted))
    }

    /// When there are as many as can be: the one that is gone for longest.
    fn vacancy(&self, mono: u64) -> Option<usize> {
        let gone = self.0.iter().enumerate().filter(|(_, peer)| peer.silence(mono) >= GONE_MS);
        let longest = gone.max_by_key(|(_, peer)| peer.silence(mono)).map(|(place, _)| place);
        longest.filter(|_| self.0.len() >= MAX_PEERS)
    }

    pub(crate) fn get(&mut self, place: usize) -> &mut Peer {
        &mut self.0[place]
    }

    /// All but those that have long been gone: hosts that come and go leave their places to others.
    pub(crate) fn remembered(&self, mono: u64) -> impl Iterator<Item = &Peer> {
        self.0.iter().filter(move |peer| peer.silence(mono) < FORGOTTEN_MS)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.0.iter_mut()
    }

    /// The places, as bits, of those that can be asked.
    pub(crate) fn useful(&self, mono: u64) -> u64 {
        let useful = self.0.iter().enumerate().filter(|(_, peer)| peer.is_useful(mono));
        useful.fold(0, |places, (place, _)| places | 1 << place)
    }

    /// The place of the useful peer with the most sessions that is not among `except`.
    pub(crate) fn richest(&self, except: u64, mono: u64) -> Option<usize> {
        let others = self.0.iter().enumerate().filter(|(place, _)| except & (1 << place) == 0);
        others
            .filter(|(_, peer)| peer.is_useful(mono) && peer.entries() > 0)
            .max_by_key(|(_, peer)| peer.entries())
            .map(|(place, _)| place)
    }
}

/// What a member that has proven to live is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    New,
    Restarted,
}

impl Peer {
    fn new((id, incarnation): MemberStart, address: SocketAddr, now: Now) -> Self {
        Self {
            id,
            incarnation,
            address,
            heartbeat: None,
            epoch: 0,
            known_since: now,
            heard_at: now,
            lateness: Lateness::default(),
            gets: Bucket::full(GETS, now.mono),
            state_requests: Bucket::full(STATE_REQUESTS, now.mono),
            messages: Bucket::full(DEFAULT_PEER_RATE, now.mono),
            reported: PeerCondition::default(),
            unreported: None,
            to_all: ReplayWindow::default(),
            to_one: ReplayWindow::default(),
        }
    }

    /// What it sent before its proof is of the past: new to this host perhaps, but others may have undone it since.
    pub(crate) fn counts_from(&mut self, last_to_all: u64, proof: Sequence) {
        self.to_all = ReplayWindow::after(last_to_all);
        self.to_one = ReplayWindow::after(proof.number());
    }

    /// Whether no message after this one has come.
    pub(crate) fn is_newest(&self, sequence: Sequence) -> bool {
        let window = if sequence.is_to_one() { &self.to_one } else { &self.to_all };
        window.is_ahead(sequence.number())
    }

    /// Whether a message of this number has not been seen, which it then has.
    pub(crate) fn is_new(&mut self, sequence: Sequence) -> bool {
        let window = if sequence.is_to_one() { &mut self.to_one } else { &mut self.to_all };
        window.accept(sequence.number())
    }

    fn has_seen(&self, sequence: Sequence) -> bool {
        let window = if sequence.is_to_one() { &self.to_one } else { &self.to_all };
        window.has_seen(sequence.number())
    }

    /// Whether one more message of it is within its rate.
    pub(crate) fn may_send(&mut self, rate: Rate, mono: u64) -> bool {
        self.messages.take(1, rate, mono)
    }

    /// How a message to it alone is addressed.
    pub(crate) fn to(&self) -> To {
        To::One(self.id, self.address)
    }

    /// How many messages to all did not come.
    pub(crate) fn lost(&self) -> u64 {
        self.to_all.missing()
    }

    pub(crate) fn name(&self) -> Option<&MemberName> {
        self.heartbeat.as_ref().map(|heartbeat| &heartbeat.name)
    }

    pub(crate) fn entries(&self) -> u64 {
        self.heartbeat.as_ref().map_or(0, |heartbeat| heartbeat.entries)
    }

    pub(crate) fn may_get(&mut self, sessions: usize, mono: u64) -> bool {
        let sessions = u32::try_from(sessions).unwrap_or(u32::MAX);
        self.gets.take(sessions, GETS, mono)
    }

    pub(crate) fn may_request_state(&mut self, mono: u64) -> bool {
        self.state_requests.take(1, STATE_REQUESTS, mono)
    }

    /// Its condition now.
    pub(crate) fn condition(&self, mono: u64) -> PeerCondition {
        PeerCondition {
            is_silent: self.silence(mono) >= SILENT_MS,
            is_clock_off: self.lateness.is_clock_off(),
        }
    }

    /// Whether it is there, and its clock is right: it can be asked for something.
    fn is_useful(&self, mono: u64) -> bool {
        self.condition(mono) == PeerCondition::default()
    }

    /// Time since its last message, in milliseconds.
    pub(crate) fn silence(&self, mono: u64) -> u64 {
        mono.saturating_sub(self.heard_at.mono)
    }
}

/// How long after its sending a message comes, by two clocks: the least is by how far the clocks differ, and what is
/// above it is the way. Over half a minute to a minute, so that clocks may be set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lateness {
    /// Least and greatest, in this half minute and in the one before.
    spans: [Option<(i64, i64)>; 2],
    since: u64,
}

impl Lateness {
    /// Notes a message that came so many milliseconds after its sending.
    pub(crate) fn note(&mut self, late_ms: i64, mono: u64) {
        if self.is_clock_off() && late_ms.unsigned_abs() <= MAX_CLOCK_DIFFERENCE_MS {
            *self = Self { spans: [None; 2], since: mono };
        }
        if mono.saturating_sub(self.since) >= LATENESS_MS {
            self.spans = [None, self.spans[0]];
            self.since = mono;
        }
        let (least, greatest) = self.spans[0].unwrap_or((late_ms, late_ms));
        self.spans[0] = Some((least.min(late_ms), greatest.max(late_ms)));
    }

    /// How far the peer's clock is ahead of ours in milliseconds, less the shortest way of a message.
    pub(crate) fn clock_ahead_ms(&self) -> i64 {
        self.least().saturating_neg()
    }

    /// By how much the slowest message took longer than the fastest, in milliseconds.
    pub(crate) fn lag_ms(&self) -> u64 {
        let greatest = self.spans.iter().flatten().map(|span| span.1).max().unwrap_or(0);
        greatest.saturating_sub(self.least()).unsigned_abs()
    }

    /// Whether one of the two clocks is wrong. Messages that are held back do not make it so.
    pub(crate) fn is_clock_off(&self) -> bool {
        self.least().unsigned_abs() > MAX_CLOCK_DIFFERENCE_MS
    }

    fn least(&self) -> i64 {
        self.spans.iter().flatten().map(|span| span.0).min().unwrap_or(0)
    }
}

/// Messages of one peer: five times what a host sends that makes 10,000 sessions a second.
pub const DEFAULT_PEER_RATE: Rate = Rate { per_second: 10_000, burst: 10_000 };

/// How far from now, by our clock, a message may have been sent: as far as clocks may differ.
pub(crate) const MAX_CLOCK_DIFFERENCE_MS: u64 = courser_session::CLOCK_SKEW.as_secs() * 1000;

/// Three heartbeats, each of them up to a tenth late.
const SILENT_MS: u64 = 3500;
/// Ten heartbeats: not even half of all lost explains it (one in a thousand).
const GONE_MS: u64 = 10_000;
const FORGOTTEN_MS: u64 = 3_600_000;
const LATENESS_MS: u64 = 30_000;

/// Sessions that a peer may ask for: as many as it may itself hand out to clients that return elsewhere.
const GETS: Rate = Rate { per_second: 10_000, burst: 1000 };
/// Twice as many questions as a peer asks, each for up to 16 datagrams.
const STATE_REQUESTS: Rate = Rate { per_second: 1000, burst: 100 };

#[cfg(test)]
mod tests;
