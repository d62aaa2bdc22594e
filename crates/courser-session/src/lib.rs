//! Remembers TLS sessions so that a returning client need not pay for a full handshake: a cache for session IDs,
//! and keys for session tickets that every host with the same secret derives by itself.
//!
//! This crate may not read a clock, open a socket, start a thread or name the TLS library. The time is an argument
//! of every call, a ticket's nonce too; what a session consists of is opaque bytes. All calls take `&self` and are
//! short, so worker threads share one [`Cache`] and one [`Ticketer`] behind an `Arc`.
//!
//! Three rules hold for the cache and for tickets alike:
//!
//! * A session is bound to a [`PolicyHash`]: under any other policy it is not resumed.
//! * A [`Lifespan`] is absolute and starts at the *original* full handshake, however often a ticket is renewed.
//! * Whatever cannot be resumed is a [`ResumptionFailure`] with a reason, which means a full handshake; it is never an error.

mod time;
pub use time::{CLOCK_SKEW, Lifespan, MAX_LIFETIME, UnixSeconds};

mod policy;
pub use policy::{PolicyBuilder, PolicyHash, STATE_FORMAT};

mod reasons;

mod resumption_failure;
pub use resumption_failure::ResumptionFailure;

mod cache;
pub use cache::{Cache, Change, Cursor, DEFAULT_SHARDS, Provenance, Put, Stats, Stored};

mod session_id;
pub use session_id::{BadSessionId, SessionId};

mod state;
pub use state::State;

mod shared;
pub use shared::SharedSession;

mod secret;
pub use secret::{NoRandomness, SecretBytes};

mod epoch;
pub use epoch::{BadEpochLength, EpochLength};

mod fleet_id;
pub use fleet_id::FleetId;

mod fleet_text;

mod fleet_key;
pub use fleet_key::{BadFleetKey, FleetKey};

mod ratchet;

mod fleet_state;
pub use fleet_state::FleetState;
pub use fleet_state::text::BadFleetState;

mod keys;
pub use keys::{BadFleetKeys, ClockStatus, FleetKeys, KeyStatus, MessageSecret, NoKey, Source};

mod seal;
pub use seal::NONCE_LEN;

mod ticket;
pub use ticket::{Opened, Ticketer};

mod vault;
pub use vault::Vault;
pub use vault::file::{SavedCounts, SavedSessions};
