//! The terminator as its users meet it: the real program, and clients and backends that are not ours.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod certificates;
mod client_certificates;
mod clients;
mod fleet;
mod negotiation;
mod policy_grid;
mod resumption;

mod backends;
mod bad_input;
mod command_line;
mod hardening;
mod limits;
mod listeners;
mod log;
mod proxy_header;
mod relay;

mod stage;
mod support;
