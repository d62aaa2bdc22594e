//! Any bytes as what a client with the keys does after, or within, a real handshake; what has to hold is in the crate's
//! own tests, which run the corpus as well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-tls/tests/it/exercise.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod exercise;
#[path = "../../crates/courser-tls/tests/it/hostile.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod hostile;

fuzz_target!(|input: &[u8]| hostile::exercise::hostile(input));
