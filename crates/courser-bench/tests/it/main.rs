//! The program, judged from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alpn;
mod bad_input;
mod closing;
mod compare;
mod completions;
mod control;
mod counts;
mod delay;
mod faulty_servers;
mod help;
mod http2;
mod idle;
mod mini;
mod overload;
mod package;
mod plan;
mod record_file;
mod resume;
mod scrape;
mod search;
mod share;
mod suites;
mod support;
mod targets;
mod thresholds;
mod together;
mod verbs;
