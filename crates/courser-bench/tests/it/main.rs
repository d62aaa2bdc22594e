//! The program, judged from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod counts;
mod help;
mod liars;
mod support;
mod together;
mod verbs;
