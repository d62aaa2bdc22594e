//! What has to hold of any bytes as an answer. Runs over the fuzzer's corpus and over chance here, and in
//! `fuzz/fuzz_targets/store_answer.rs` for as long as one likes.

use courser_store::{Answer, MAX_VALUE_LEN, read_answer};

/// Nothing panics, no value is too large, and what is said about it has no foreign text: it goes into a log.
pub(crate) fn store_answer(bytes: &[u8]) {
    match read_answer(bytes) {
        Ok(Answer::Found(value)) => assert!(value.len() <= MAX_VALUE_LEN),
        Ok(Answer::Missing | Answer::Done) => {}
        Err(said) => {
            assert!(said.len() < 200, "{said}");
            assert!(said.chars().all(|char| char.is_ascii_graphic() || char == ' '), "{said:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::store_answer;

    #[test]
    fn the_corpus() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/store_answer");
        let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 10, "{} files", files.len());
        files.iter().for_each(|file| store_answer(&fs::read(file).unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            store_answer(&bytes);
        }

        #[test]
        fn anything_that_looks_like_the_protocol(lines in prop::collection::vec(r"[-+:$*%|~_,#!=(>][-0-9a-zA-Z ]{0,12}", 1..12)) {
            store_answer((lines.join("\r\n") + "\r\n").as_bytes());
        }
    }
}
