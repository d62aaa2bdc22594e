//! The terminator as its users meet it: the real program, and clients and backends that are not ours.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod abuse;
mod alerts;
mod certificates;
mod client_certificates;
mod clients;
mod fleet;
mod key_updates;
mod negotiation;
mod policy_grid;
mod resumption;
mod routing;

mod acme;
mod admin;
mod backend_names;
mod backend_tls;
mod backend_verb;
mod backends;
mod bad_input;
mod command_line;
mod container;
mod control;
mod endings;
mod harden;
mod hardening;
mod health;
mod imports;
mod instruction_limits;
mod limits;
mod listeners;
mod live;
mod log;
mod log_files;
mod memory;
mod metrics;
mod operations_page;
mod overload;
mod package;
mod proxy_accept;
mod proxy_header;
mod published_relay;
mod relay;
mod reload;
mod standing_readers;
mod upgrade;
mod watchdog;

mod stage;
mod support;
