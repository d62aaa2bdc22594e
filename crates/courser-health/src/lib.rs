//! Active checks: whether servers can take connections, before a client finds out.
//!
//! One thread checks the servers of all pools. It says what it finds to the [servers](courser_balance::Server), which workers
//! read without a lock, and logs what changes. It decides nothing about a connection, and reads no configuration and no file.

pub mod agent;
mod channel;
mod checker;
mod probe;
pub mod status_line;
mod verdict;

pub use checker::{Check, CheckCounts, CheckedPool, Checker, CheckerHandle, LastCheck};
pub use probe::{Endpoint, Probe, ProbeKind};
