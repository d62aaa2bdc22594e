//! Any bytes as a server's answer; what has to hold is in the crate's own tests, which run the corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-load/tests/it/exercise.rs"]
mod exercise;

fuzz_target!(|input: &[u8]| exercise::answer(input));
