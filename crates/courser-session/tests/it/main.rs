//! The cache, the keys of a fleet and what is sealed with them, as their callers see them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cache;
mod cache_export;
mod cache_model;
mod cache_scan;
mod cache_threads;
mod corpus;
mod exercise;
mod fleet_keys;
mod fleet_text;
mod forward_secrecy;
mod golden;
mod page;
mod support;
mod ticket;
mod ticket_roll;
mod vault;

use support::{HOUR, NOW, Random, fleet_key, hourly, policy, session_id, simple, ticketer, two_hours};
