//! Any bytes as a result file, alone and merged with itself, and its report; what has to hold is in the crates' own tests,
//! which run the corpus as well.

#![no_main]

use courser_record::Record;
use courser_report::text;
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/courser-record/tests/it/exercise.rs"]
mod exercise;

fuzz_target!(|bytes: &[u8]| {
    exercise::record(bytes);
    if let Ok(record) = Record::from_json(bytes) {
        text::render(&record, text::Style::default());
    }
});
