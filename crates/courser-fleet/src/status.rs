//! The status of a member: for `courser fleet status`, `courser fleet watch` and logs. May not contain a secret,
//! nor anything that names a session.

use std::fmt;
use std::net::SocketAddr;

use courser_session::SessionId;

use crate::domain_check::DomainCheck;
use crate::identity::{Incarnation, MemberId};
use crate::now::UnixMillis;
use crate::refusal::Refusal;

/// Status of a member and its peers.
#[derive(Clone, Debug)]
pub struct Status {
    /// What stands for it in messages.
    pub id: MemberId,
    /// This start of it.
    pub incarnation: Incarnation,
    /// The epoch that this secret is in.
    pub epoch: u64,
    /// Those who have proven to live, in no order.
    pub peers: Vec<PeerStatus>,
    /// What was sent.
    pub sent: SentCounts,
    /// What came.
    pub received: ReceivedCounts,
    /// What was refused.
    pub refused: Refused,
    /// Sessions that were asked for.
    pub pulls: PullCounts,
    /// How far the state transfer is.
    pub state_transfer: StateTransferStatus,
    /// Sessions that came by state transfer.
    pub transferred: u64,
}

/// Status of a peer, as far as this member knows.
#[derive(Clone, Debug)]
pub struct PeerStatus {
    /// Its name, from its first heartbeat on.
    pub name: Option<String>,
    /// What stands for it in messages.
    pub id: MemberId,
    /// Its present start; when that was is by its own clock.
    pub incarnation: Incarnation,
    /// From where its last message came.
    pub address: SocketAddr,
    /// Since when it is known, by this member's clock.
    pub first_seen: UnixMillis,
    /// When its last message came, by this member's clock.
    pub last_seen: UnixMillis,
    /// How long ago that was, in milliseconds.
    pub last_seen_ms: u64,
    /// Whether it is as good as gone.
    pub is_silent: bool,
    /// The epoch that it seals in.
    pub epoch: u64,
    /// Sessions in its cache, as of its last heartbeat.
    pub entries: u64,
    /// Sessions that it has pushed since its start, as of its last heartbeat.
    pub pushed: u64,
    /// Sessions that it has taken from others since its start, as of its last heartbeat.
    pub taken: u64,
    /// How far its clock is ahead of this member's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// Whether one of the two clocks is so wrong that nothing is taken from it.
    pub is_clock_off: bool,
    /// By how much its slowest message took longer than its fastest, in the last half minute: milliseconds.
    pub lag_ms: u64,
    /// Messages to all that it sent and that did not come.
    pub lost: u64,
}

impl PeerStatus {
    /// Its name, or what stands for it.
    pub fn label(&self) -> String {
        label(self.name.as_deref(), self.id)
    }
}

pub(crate) fn label(name: Option<&str>, id: MemberId) -> String {
    name.map_or_else(|| id.to_string(), str::to_owned)
}

/// What a member has sent since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentCounts {
    /// Messages; one that goes to all counts once.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sessions pushed.
    pub pushed: u64,
    /// Sessions that do not fit into a datagram, and so stay here.
    pub session_too_large: u64,
    /// Messages left out because those before them had not been fetched.
    pub dropped: u64,
}

/// What has come to a member since its start. A datagram is either a message that was accepted, or in [`Refused`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedCounts {
    /// All datagrams.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that were accepted.
    pub accepted: u64,
    /// Sessions that are now in the cache.
    pub taken: u64,
    /// Sessions that were there before, or that came twice.
    pub duplicate: u64,
    /// Sessions that had been deleted.
    pub tombstoned: u64,
    /// Sessions whose lifespan is over or has not begun.
    pub not_valid: u64,
    /// Sessions that are too large for the cache.
    pub too_large: u64,
    /// Sessions that others deleted.
    pub deleted: u64,
}

/// How many datagrams were refused for each reason, and from where the last of them came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused([(u64, Option<SocketAddr>); Refusal::ALL.len()]);

impl Refused {
    pub(crate) fn count(&mut self, refusal: Refusal, from: SocketAddr) {
        let (count, last) = &mut self.0[refusal as usize];
        (*count, *last) = (*count + 1, Some(from));
    }

    /// How many.
    pub fn get(&self, refusal: Refusal) -> u64 {
        self.0[refusal as usize].0
    }

    /// From where the last of them came.
    pub fn last_source(&self, refusal: Refusal) -> Option<SocketAddr> {
        self.0[refusal as usize].1
    }

    /// How many for all reasons.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|(count, _)| count).sum()
    }
}

/// What became of sessions that this host had not got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullCounts {
    /// Sessions that connections requested.
    pub requested: u64,
    /// Pulls sent to the peers; several requests for one session share a pull.
    pub sent: u64,
    /// Those that came.
    pub found: u64,
    /// Those that no peer has, or that none answered.
    pub not_found: u64,
    /// Those that were not pulled because no peer had them in the last 5 s.
    pub negative_cached: u64,
    /// Those that were not pulled because there is no peer, or too many pulls are open.
    pub not_sent: u64,
}

/// How far a state transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateTransferStatus {
    /// It is switched off.
    Disabled,
    /// No peer is known yet that has sessions.
    Waiting,
    /// Sessions come.
    Running,
    /// A peer has sent all it had.
    Done,
    /// No peer had sessions, or answered.
    NoPeer,
}

impl StateTransferStatus {
    /// Its name in a status: never changed once published.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::NoPeer => "no_peer",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session that was wanted is now in the cache, or will not come.
    Answered {
        /// Which.
        id: SessionId,
        /// Whether it is there.
        found: bool,
    },
    /// A peer came, went, or changed: for the log.
    Peer {
        /// Its name, or what stands for it.
        label: String,
        /// Where it is.
        address: SocketAddr,
        /// What happened to it.
        change: PeerChange,
    },
    /// A peer wants a check answered here as well, or no more.
    DomainCheck {
        /// What is asked for.
        check: DomainCheck,
        /// Whom to [acknowledge](crate::Member::acknowledge) it to.
        from: MemberId,
    },
    /// A peer answers a check that this host has announced.
    Acknowledged {
        /// Which.
        digest: [u8; 32],
        /// The peer.
        from: MemberId,
    },
    /// A datagram went or came: for who watches.
    Passed(Passed),
}

/// What happened to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerChange {
    /// It has proven for the first time that it lives.
    Joined,
    /// It has started anew.
    Restarted,
    /// No message of it has come for 3.5 s.
    Silent,
    /// Its messages come again.
    Recovered,
    /// Its clock or ours is wrong: nothing is taken from it.
    ClockOff {
        /// How far its clock is ahead of ours, in milliseconds.
        ahead_ms: i64,
    },
    /// Both clocks are right again.
    ClockRight,
}

impl fmt::Display for PeerChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined => f.write_str("joined"),
            Self::Restarted => f.write_str("restarted"),
            Self::Silent => f.write_str("is silent"),
            Self::Recovered => f.write_str("sends messages again"),
            Self::ClockOff { ahead_ms } => write!(
                f,
                "has a clock {} s {} ours: nothing is taken from it; set the one that is wrong",
                ahead_ms.unsigned_abs() / 1000,
                if *ahead_ms < 0 { "behind" } else { "ahead of" }
            ),
            Self::ClockRight => f.write_str("has its clock right again"),
        }
    }
}

/// A datagram that went or came. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whether it went or came.
    pub direction: Direction,
    /// Its type's name; none if it was refused before that was known.
    pub kind: Option<&'static str>,
    /// Whom it went to, none for all; or from where it came.
    pub peer: Option<SocketAddr>,
    /// How many sessions or IDs it names.
    pub items: u64,
    /// Its length.
    pub bytes: usize,
    /// Why it was refused.
    pub refusal: Option<Refusal>,
}

/// Whether a datagram went or came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It went.
    Sent,
    /// It came.
    Received,
}

impl fmt::Display for Passed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.direction {
            Direction::Sent => f.write_str("sent to ")?,
            Direction::Received => f.write_str("received from ")?,
        }
        match self.peer {
            Some(peer) => write!(f, "{peer}")?,
            None => f.write_str("all")?,
        }
        write!(f, ": {}, ", self.kind.unwrap_or("unknown"))?;
        if self.items > 0 {
            write!(f, "{} sessions, ", self.items)?;
        }
        write!(f, "{} bytes", self.bytes)?;
        match self.refusal {
            Some(refusal) => write!(f, ", refused: {refusal}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passed_is_one_line() {
        let peer = Some("192.0.2.1:8888".parse().unwrap());
        let (direction, kind) = (Direction::Received, Some("new"));
        let passed = Passed { direction, kind, peer, items: 3, bytes: 700, refusal: None };
        assert_eq!(passed.to_string(), "received from 192.0.2.1:8888: new, 3 sessions, 700 bytes");
        let refusal = Some(Refusal::Replayed);
        let passed =
            Passed { direction: Direction::Sent, kind: None, peer: None, items: 0, refusal, ..passed };
        let line = "sent to all: unknown, 700 bytes, refused: seen before, or too old to tell";
        assert_eq!(passed.to_string(), line);
    }
}
