//! Records between versions, in other people's hands, and put together.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod exercise;
mod golden;
mod judge;
mod merging;
mod sample;
