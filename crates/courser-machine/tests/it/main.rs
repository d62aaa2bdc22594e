//! What is read of processes, against what they say of themselves.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod quota;
mod usage;
