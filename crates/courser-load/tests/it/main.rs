//! The engine and the origin from outside, judged by other people's programs where there are any.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod delay;
mod exercise;
mod inspect;
mod origin;
mod runs;
