//! Any bytes as a server's first ones; what has to hold is in the crate's own tests, which run the corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target runs one of the functions")]
#[path = "../../crates/courser-wire/tests/it/exercise.rs"]
mod exercise;

fuzz_target!(|sent: &[u8]| exercise::server_hello(sent));
