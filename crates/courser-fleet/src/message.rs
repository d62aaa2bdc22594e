//! The form of a message on the wire: what stands in clear in front, and what is sealed behind it. May not decide
//! whether a message is welcome.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `CRSR` |
//! | 1 | version: 2 |
//! | 1 | type: see [`Kind`] |
//! | 8 | fleet, whose secret the key derives from |
//! | 8 | epoch |
//! | 8 | sender: see [`MemberId`] |
//! | 16 | the sender's start: see [`Incarnation`] |
//! | 8 | sequence number, and in its highest bit whether the message is for one member alone |
//! | 8 | sealed: when it was sent, in Unix milliseconds |
//! | … | sealed: content of the type, in [`content`](crate::content) |
//! | 16 | tag of AES-256-GCM-SIV |
//!
//! Numbers are big endian. All before the sealed part is its associated data, followed by the member whom the message is
//! for (8, not sent; zeros if it is for all): so one that was meant for another member does not open. Messages to all and
//! messages to one are numbered apart, so that every receiver can count what it lost.
//!
//! Version 1 was sealed with AES-256-GCM, which gives its keys away when a nonce comes twice; and so one did when a
//! machine's snapshot was resumed twice.

use std::net::SocketAddr;

use courser_session::FleetId;
use zeroize::Zeroizing;

use crate::identity::{Incarnation, MemberId};
use crate::refusal::Refusal;

/// What stands in front of a message, before anything of it is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// A [`Kind`], or one that is new to this release.
    pub(crate) kind: u8,
    pub(crate) fleet: FleetId,
    pub(crate) epoch: u64,
    pub(crate) sender: MemberId,
    pub(crate) incarnation: Incarnation,
    pub(crate) sequence: Sequence,
}

impl Header {
    /// Reads the header of a datagram that is long enough for a message.
    pub(crate) fn parse(datagram: &[u8]) -> Result<Self, Refusal> {
        if datagram.len() < MIN_LEN {
            return Err(Refusal::TooShort);
        }
        let mut rest = datagram;
        if take::<4>(&mut rest)? != MAGIC {
            return Err(Refusal::NotOurs);
        }
        let [version, kind] = take(&mut rest)?;
        if version != VERSION {
            return Err(Refusal::OtherVersion);
        }
        Ok(Self {
            kind,
            fleet: FleetId::from_bytes(take(&mut rest)?),
            epoch: u64::from_be_bytes(take(&mut rest)?),
            sender: MemberId(take(&mut rest)?),
            incarnation: Incarnation(take(&mut rest)?),
            sequence: Sequence(u64::from_be_bytes(take(&mut rest)?)),
        })
    }

    /// The bytes that [`parse`](Self::parse) reads.
    pub(crate) fn encode(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let parts: [&[u8]; 7] = [
            &MAGIC,
            &[VERSION, self.kind],
            self.fleet.as_bytes(),
            &self.epoch.to_be_bytes(),
            &self.sender.0,
            &self.incarnation.0,
            &self.sequence.0.to_be_bytes(),
        ];
        let mut rest = &mut bytes[..];
        for part in parts {
            let (place, after) = rest.split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = after;
        }
        bytes
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Refusal> {
    let (bytes, after) = rest.split_first_chunk().ok_or(Refusal::TooShort)?;
    *rest = after;
    Ok(*bytes)
}

/// A message's number, unique for a start of a member: it is the nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence(pub(crate) u64);

impl Sequence {
    const TO_ONE: u64 = 1 << 63;

    /// The number of a message to one member, or to all.
    pub(crate) fn new(number: u64, is_to_one: bool) -> Self {
        Self(if is_to_one { number | Self::TO_ONE } else { number & !Self::TO_ONE })
    }

    /// Whether the message was for one member alone.
    pub(crate) fn is_to_one(self) -> bool {
        self.0 & Self::TO_ONE != 0
    }

    /// The number among those to all, or among those to one.
    pub(crate) fn number(self) -> u64 {
        self.0 & !Self::TO_ONE
    }
}

/// What a message is for. The numbers are on the wire and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sessions that were made.
    New = 1,
    /// Sessions that may not be resumed any more.
    Delete = 2,
    /// Pulls these sessions.
    Get = 3,
    /// Sessions that were pulled.
    Found = 4,
    /// Sessions that were pulled and are not in the cache.
    Missing = 5,
    /// Requests a part of all sessions.
    StateRequest = 6,
    /// A part of all sessions.
    Part = 7,
    /// The name and state of a member that lives.
    Heartbeat = 8,
    /// Asks for a proof that the receiver lives.
    Challenge = 9,
    /// The proof.
    Proof = 10,
    /// A certificate authority may ask any host for this.
    DomainCheck = 11,
    /// The sender answers a check.
    Acknowledged = 12,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::New,
        Self::Delete,
        Self::Get,
        Self::Found,
        Self::Missing,
        Self::StateRequest,
        Self::Part,
        Self::Heartbeat,
        Self::Challenge,
        Self::Proof,
        Self::DomainCheck,
        Self::Acknowledged,
    ];

    /// The type with this number, if it is known.
    pub(crate) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|&kind| kind as u8 == number)
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Delete => "delete",
            Self::Get => "get",
            Self::Found => "found",
            Self::Missing => "missing",
            Self::StateRequest => "state-request",
            Self::Part => "part",
            Self::Heartbeat => "heartbeat",
            Self::Challenge => "challenge",
            Self::Proof => "proof",
            Self::DomainCheck => "domain-check",
            Self::Acknowledged => "acknowledged",
        }
    }
}

/// A message that is being written. It holds sessions' secrets in clear: wiped on drop, and sealed where it stands.
pub(crate) struct Draft {
    pub(crate) kind: Kind,
    /// Header and time are left open at the front. Never grows beyond what was reserved, which would leave secrets
    /// behind in freed memory.
    pub(crate) bytes: Zeroizing<Vec<u8>>,
    /// How long it may become.
    limit: usize,
}

impl Draft {
    /// An empty message that may have `max_payload` bytes when sealed.
    pub(crate) fn new(kind: Kind, max_payload: usize) -> Self {
        let mut bytes = Zeroizing::new(Vec::with_capacity(max_payload));
        bytes.resize(HEADER_LEN + TIME_LEN, 0);
        Self { kind, bytes, limit: max_payload.saturating_sub(TAG_LEN) }
    }

    /// How many bytes there is room for.
    pub(crate) fn room(&self) -> usize {
        self.limit.saturating_sub(self.bytes.len())
    }

    /// Appends `len` bytes that `write` writes, if there is room for them.
    pub(crate) fn append(&mut self, len: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        if len > self.room() {
            return false;
        }
        write(&mut self.bytes);
        debug_assert!(self.bytes.len() <= self.limit, "more was written than `len`");
        true
    }
}

const MAGIC: [u8; 4] = *b"CRSR";
const VERSION: u8 = 2;

/// What a message's sealed part is bound to: its header and its receiver.
pub(crate) fn bound_to(header: &[u8; HEADER_LEN], recipient: Option<MemberId>) -> [u8; HEADER_LEN + 8] {
    let mut bound_to = [0; HEADER_LEN + 8];
    bound_to[..HEADER_LEN].copy_from_slice(header);
    bound_to[HEADER_LEN..].copy_from_slice(&recipient.map_or([0; 8], |member| member.0));
    bound_to
}

/// The receiver of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    All,
    /// The member that is at this address.
    One(MemberId, SocketAddr),
}

impl To {
    pub(crate) fn member(self) -> Option<MemberId> {
        match self {
            Self::All => None,
            Self::One(member, _) => Some(member),
        }
    }

    pub(crate) fn destination(self) -> Destination {
        match self {
            Self::All => Destination::All,
            Self::One(_, address) => Destination::One(address),
        }
    }
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its receivers.
    pub to: Destination,
    /// All of it; sealed, so no secret.
    pub bytes: Vec<u8>,
}

/// The receivers of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The multicast group, or each configured peer.
    All,
    /// The member at this address.
    One(SocketAddr),
}

/// Length of what stands in clear, in bytes.
pub(crate) const HEADER_LEN: usize = 4 + 1 + 1 + 8 + 8 + 8 + 16 + 8;
/// Length of the time that every sealed part begins with.
pub(crate) const TIME_LEN: usize = 8;
/// Length of the tag (RFC 8452, section 4).
pub(crate) const TAG_LEN: usize = 16;
/// Length of a message of nothing but its frame.
pub(crate) const MIN_LEN: usize = HEADER_LEN + TIME_LEN + TAG_LEN;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            kind: 3,
            fleet: FleetId::from_bytes([1; 8]),
            epoch: 2,
            sender: MemberId([3; 8]),
            incarnation: Incarnation([4; 16]),
            sequence: Sequence::new(5, true),
        }
    }

    fn datagram() -> Vec<u8> {
        let mut datagram = header().encode().to_vec();
        datagram.resize(MIN_LEN, 0);
        datagram
    }

    #[test]
    fn a_header_comes_back() {
        assert_eq!(Header::parse(&datagram()), Ok(header()));
    }

    #[test]
    fn what_is_no_message_is_refused_by_reason() {
        let datagram = datagram();
        for len in 0..MIN_LEN {
            assert_eq!(Header::parse(&datagram[..len]), Err(Refusal::TooShort), "{len}");
        }
        let with = |at: usize, byte| {
            let mut datagram = datagram.clone();
            datagram[at] = byte;
            Header::parse(&datagram)
        };
        assert_eq!(with(0, b'X'), Err(Refusal::NotOurs));
        assert_eq!(with(4, 1), Err(Refusal::OtherVersion));
    }

    #[test]
    fn messages_to_all_and_to_one_never_share_a_number() {
        let (all, one) = (Sequence::new(7, false), Sequence::new(7, true));
        assert_ne!(all, one);
        assert_eq!((all.number(), one.number()), (7, 7));
        assert!(one.is_to_one() && !all.is_to_one());
    }

    #[test]
    fn a_draft_takes_what_fits_and_never_moves() {
        let mut draft = Draft::new(Kind::New, MIN_LEN + 10);
        let before = draft.bytes.as_ptr();
        assert!(draft.append(6, |bytes| bytes.extend_from_slice(&[1; 6])));
        assert!(!draft.append(5, |_| panic!("there is no room")));
        assert!(draft.append(4, |bytes| bytes.extend_from_slice(&[1; 4])));
        assert_eq!((draft.room(), draft.bytes.len() + TAG_LEN), (0, MIN_LEN + 10));
        assert_eq!(draft.bytes.as_ptr(), before);
    }

    #[test]
    fn every_kind_is_found_by_its_number() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of(kind as u8), Some(kind), "{}", kind.name());
        }
        assert_eq!((Kind::of(0), Kind::of(13)), (None, None));
    }
}
