//! The members of a fleet: the protocol by which hosts replicate sessions, so that a client that returns to another
//! host resumes there.
//!
//! A [`Member`] is the protocol alone. Each event is a call with the time as an argument; what is to be done comes out
//! of [`poll_transmit`](Member::poll_transmit) and [`poll_event`](Member::poll_event), to be polled until they are
//! empty after each call. It may not read a clock, open a socket or wait, and it may not grow without bound or do
//! unbounded work for one datagram, whoever sends it.
//!
//! # What protects it
//!
//! Every message is sealed under a key that derives from the fleet's secret, the epoch, the sender and that sender's
//! present start, and is numbered; a receiver takes each number once. A sender, or a new start of one, that a receiver
//! does not know must first answer a challenge, always: whether or not the receiver has just started itself, it cannot
//! tell a member that it never met from a recording of one. It costs one exchange for each pair of starts, and a
//! session that is pushed meanwhile is pulled when its client comes.
//!
//! [`Refusal`] has the reasons for which a datagram changes nothing, in the order of the checks.

mod member;
pub use member::{ETHERNET_PAYLOAD, Member, MemberSettings};

mod receive;

mod refusal;
pub use refusal::Refusal;

mod status;
pub use status::{
    Direction, Event, Passed, PeerChange, PeerStatus, PullCounts, ReceivedCounts, Refused, SentCounts,
    StateTransferStatus, Status,
};

mod identity;
pub use identity::{BadMemberName, Incarnation, MemberId, MemberName};

mod now;
pub use now::{Now, UnixMillis};

mod message;
pub use message::{Destination, Transmit};

mod content;

mod seal;
pub use seal::AnyMessage;

mod allowed;
pub use allowed::{AddressRange, Allowed};

mod peers;
pub use peers::{DEFAULT_PEER_RATE, MAX_PEERS};

mod replay_window;

mod proof;

mod outbox;

mod pull;

mod domain_check;
pub use domain_check::DomainCheck;

mod state_transfer;

mod events;

mod openings;

mod bucket;
pub use bucket::{Bucket, Buckets, Rate, source_of};
