//! Hosts of a fleet on loopback: real datagrams, real connections.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod client;
mod generations;
mod host;
mod member;
mod returning;

use member::{PATIENCE, wait_for};
