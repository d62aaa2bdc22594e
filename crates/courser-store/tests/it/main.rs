//! The store against servers, real ones and bad ones.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod bad;
mod cluster;
mod exercise;
mod outage;
mod secured;
mod sentinel;
mod single;
mod support;
