//! Members of a fleet as their callers see them: alone, on one segment, and in simulated networks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod exercise;
mod fleet;
mod page;
mod simulation;
#[allow(dead_code, reason = "some of it is for tests of the cache and of tickets alone")]
#[path = "../../../courser-session/tests/it/support.rs"]
mod support;

use support::{HOUR, NOW, Random, fleet_key, hourly, policy, session_id, simple, two_hours};
