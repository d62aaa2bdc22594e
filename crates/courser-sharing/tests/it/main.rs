//! Members of a fleet on loopback: real datagrams, no TLS.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod fleet;
#[path = "../../../courser-proxy/tests/it/member.rs"]
mod member;

use member::wait_for;
