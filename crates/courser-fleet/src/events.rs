//! What happened, until someone asks. May not grow without bound.

use std::collections::VecDeque;
use std::net::SocketAddr;

use courser_session::SessionId;

use crate::message::Destination;
use crate::outbox::Sealed;
use crate::peers::{Peer, PeerCondition, Peers};
use crate::refusal::Refusal;
use crate::status::{Direction, Event, Passed, PeerChange, PeerStatus, label};

/// Events that are yet to be fetched.
#[derive(Default)]
pub(crate) struct Events {
    queue: VecDeque<Event>,
    is_watched: bool,
}

impl Events {
    pub(crate) fn next(&mut self) -> Option<Event> {
        self.queue.pop_front()
    }

    pub(crate) fn watch(&mut self, is_watched: bool) {
        self.is_watched = is_watched;
    }

    pub(crate) fn answered(&mut self, id: SessionId, found: bool) {
        self.add(Event::Answered { id, found });
    }

    pub(crate) fn peer(&mut self, peer: &Peer, change: PeerChange) {
        let label = label(peer.name().map(crate::identity::MemberName::as_str), peer.id);
        self.add(Event::Peer { label, address: peer.address, change });
    }

    pub(crate) fn sent(&mut self, sealed: &Sealed) {
        let peer = match sealed.transmit.to {
            Destination::All => None,
            Destination::One(address) => Some(address),
        };
        self.passed(|| Passed {
            direction: Direction::Sent,
            kind: Some(sealed.kind.name()),
            peer,
            items: sealed.items,
            bytes: sealed.transmit.bytes.len(),
            refusal: None,
        });
    }

    pub(crate) fn received(&mut self, from: SocketAddr, bytes: usize, seen: Seen, refusal: Option<Refusal>) {
        let (direction, peer, Seen { kind, items }) = (Direction::Received, Some(from), seen);
        self.passed(|| Passed { direction, kind, peer, items, bytes, refusal });
    }

    /// Adds an event for each change of a peer since the last call.
    pub(crate) fn report_changes(&mut self, peers: &mut Peers, mono: u64) {
        for peer in peers.iter_mut() {
            let (before, after) = (peer.reported, peer.condition(mono));
            peer.reported = after;
            if before.is_silent != after.is_silent {
                self.peer(peer, if after.is_silent { PeerChange::Silent } else { PeerChange::Recovered });
            }
            if before.is_clock_off != after.is_clock_off {
                self.peer(peer, clock_change(peer, after));
            }
        }
    }

    fn passed(&mut self, passed: impl FnOnce() -> Passed) {
        if self.is_watched {
            self.add(Event::Passed(passed()));
        }
    }

    /// Drops the event when the queue is full: callers that wait for one have their own deadline.
    pub(crate) fn add(&mut self, event: Event) {
        if self.queue.len() < MAX_EVENTS {
            self.queue.push_back(event);
        }
    }
}

/// What was made out of a datagram before it was accepted or refused.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) kind: Option<&'static str>,
    pub(crate) items: u64,
}

fn clock_change(peer: &Peer, after: PeerCondition) -> PeerChange {
    match after.is_clock_off {
        true => PeerChange::ClockOff { ahead_ms: peer.lateness.clock_ahead_ms() },
        false => PeerChange::ClockRight,
    }
}

impl Peer {
    pub(crate) fn status(&self, mono: u64) -> PeerStatus {
        let heartbeat = self.heartbeat.as_ref();
        let PeerCondition { is_silent, is_clock_off } = self.condition(mono);
        PeerStatus {
            name: self.name().map(ToString::to_string),
            id: self.id,
            incarnation: self.incarnation,
            address: self.address,
            first_seen: self.known_since.wall,
            last_seen: self.heard_at.wall,
            last_seen_ms: self.silence(mono),
            is_silent,
            epoch: self.epoch,
            entries: self.entries(),
            pushed: heartbeat.map_or(0, |heartbeat| heartbeat.pushed),
            taken: heartbeat.map_or(0, |heartbeat| heartbeat.taken),
            clock_ahead_ms: self.lateness.clock_ahead_ms(),
            is_clock_off,
            lag_ms: self.lateness.lag_ms(),
            lost: self.lost(),
        }
    }
}

/// More than there can be sessions that are asked for at a time.
const MAX_EVENTS: usize = 8192;
