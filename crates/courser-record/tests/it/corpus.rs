//! The inputs that fuzzing found worth keeping, run through what the fuzz target runs.

use std::fs;
use std::path::Path;

use crate::exercise;

#[test]
fn the_record_corpus_holds() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/record");
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        exercise::record(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "{files} inputs");
}
