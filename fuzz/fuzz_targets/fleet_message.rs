//! Any datagrams to a member of a fleet; what has to hold is in the crate's own tests, which run the corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target runs one of the functions")]
#[path = "../../crates/courser-session/tests/it/exercise.rs"]
mod exercise;

fuzz_target!(|input: &[u8]| exercise::fleet_message(input));
