//! Any bytes as the server's half of a connection; what has to hold is in the crate's own tests, which run the corpus as
//! well.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-tls-client/tests/it/faulty_server/exercise.rs"]
mod exercise;
#[path = "../../crates/courser-tls-client/tests/it/server.rs"]
mod server;

fuzz_target!(|input: &[u8]| exercise::client(input));
