//! What an operator sees: files and flags in, settings or messages out.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod changes;
mod files;
mod flags;
mod pages;
mod snapshot;
