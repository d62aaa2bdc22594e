//! What real programs sent, what no program should send, and what has to hold for any bytes at all.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod captured;
mod corpus;
mod exercise;
mod hello;
mod properties;
mod record;
mod server_hello;
