//! Sessions by ID on several hosts: looked up elsewhere before a handshake, sent to others after it, deleted when it ended
//! badly.
//!
//! [`Fleet`] is the thread that runs a member of the fleet on a socket, [`FleetHandle`] the way to it. [`RemoteSessions`] is
//! a worker's part: the fleet and a session store behind one handle. Clients that take tickets have no part in this: their
//! session IDs are random. Nothing here makes a handshake fail, or wait longer than the deadlines in [`Sharing`].
//!
//! This crate may not know TLS, connections or the configuration. Threads and tasks are its callers': it takes closures
//! for them.

mod remote_sessions;
pub use remote_sessions::{DEFAULT_PER_SOURCE, DEFAULT_PULL_DEADLINE, RemoteSessions, Sharing};

mod fleet;
pub use fleet::{CheckAnswerer, Fleet, FleetHandle, FleetStatus, Pulled, UnsentCounts};

mod remote_store;
pub use remote_store::{Connector, StoreSettings};

mod lookup_limiter;

mod tombstone_limiter;
pub use tombstone_limiter::TombstoneLimiter;

// What its interface is made of.
pub use courser_fleet::{DomainCheck, Incarnation, MemberName, MemberSettings, Rate, UnixMillis};
