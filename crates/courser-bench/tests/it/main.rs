//! The program, judged from outside.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counts;
mod help;
mod together;
mod verbs;
