//! Records on disk, between versions, and in other people's hands.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
