//! Any bytes as a staple; what has to hold is in the crate's own tests, which run the corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-tls/tests/it/exercise.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod exercise;

fuzz_target!(|input: &[u8]| exercise::staple(input));
