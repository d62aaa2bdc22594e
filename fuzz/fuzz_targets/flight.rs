//! Any bytes as what a server says in the clear; what has to hold is in the crate's own tests, which run the corpus as
//! well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-tls-client/tests/it/flight/exercise.rs"]
mod exercise;

fuzz_target!(|input: &[u8]| exercise::flight(input));
