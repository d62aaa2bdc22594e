//! The server's end against clients that are hostile, and against bytes that no honest client sends.

mod abuse;
mod exercise;
mod fragments;
mod hostile;

use std::fs;
use std::path::Path;

#[test]
fn the_corpora_of_the_fuzz_targets_break_nothing() {
    for (target, exercise) in [
        ("server", exercise::server as fn(&[u8])),
        ("hostile", hostile::exercise::hostile),
        ("revocation_list", exercise::revocation_list),
        ("staple", exercise::staple),
    ] {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let files: Vec<_> = fs::read_dir(corpus).expect("the corpus is committed").collect();
        assert!(files.len() > 10, "the corpus is there");
        for file in files {
            exercise(&fs::read(file.expect("a file").path()).expect("readable"));
        }
    }
}
