//! Any bytes as a result file, alone and merged with itself; what has to hold is in the crate's own tests, which run the
//! corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-record/tests/it/exercise.rs"]
mod exercise;

fuzz_target!(|text: &[u8]| exercise::record(text));
