//! Sessions in Redis or Valkey, for hosts that no common network segment joins: a store for look-ups after a local
//! failure and for new sessions, without ever holding up more than a few handshakes for a few milliseconds.
//!
//! What is stored is opaque here: values come sealed, under names that reveal nothing. This crate may not interpret them,
//! print anything or read a file. It runs on the worker's own single-threaded runtime: a [`Store`] for each worker, with its
//! own connection; what a worker may not do for that is done on one thread (`dialer.rs`). Only this crate names the `redis`
//! library.
//!
//! * [`StoreUrl`] is the address, [`StoreEndpoint`] adds the credentials; whoever reads the configuration makes both, and
//!   reports what is wrong with them.
//! * [`Store::get`] takes at most the configured time; [`Store::put`] and [`Store::delete`] none at all. Deletions that find
//!   no connection wait for one (`deletions.rs`).
//! * The breaker of a store that is slow or dead opens (`breaker.rs`) until the store answers a probe in time. No client
//!   waits for a connection, a reconnection or a probe.
//! * Whatever goes wrong is a [`StoreFailure`] and a count in [`StoreCounters`]: a full handshake, never a failed one.

mod url;
pub use url::{BadStoreUrl, StoreUrl};

mod endpoint;
pub use endpoint::{Access, BadStoreEndpoint, Identity, StoreEndpoint};

mod store;
pub use store::{DEFAULT_TIMEOUT, Store, StoreFailure};

mod shared;

mod connector;
pub use connector::Connector;

mod dialer;

mod link;

mod answer;
pub use answer::{Answer, MAX_VALUE_LEN, read_answer};

mod bounded;

mod breaker;

mod deletions;

mod pauses;

mod counters;
pub use counters::{StoreCount, StoreCounters};
