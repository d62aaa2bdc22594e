//! What has to hold of any bytes as the answer to a check. Runs over the fuzzer's corpus and over chance here, and in
//! `fuzz/fuzz_targets/check_answer.rs` for as long as one likes.

use courser_health::{agent, status_line};

/// Nothing panics, in whatever pieces it comes; what decides once decides for good; what is shown is printable.
pub(crate) fn check_answer(bytes: &[u8]) {
    let mut status = None;
    let mut report = None;
    for length in 0..=bytes.len().min(agent::LONGEST + 2) {
        let read = status_line::read(&bytes[..length]);
        assert!(length < status_line::LENGTH || read != Ok(None), "{length} bytes decide");
        if read != Ok(None) {
            assert_eq!(*status.get_or_insert(read), read);
        }
        if let Ok(Some(code)) = read {
            assert!((100..=999).contains(&code));
        }
        let read = agent::read(&bytes[..length]);
        assert!(length < agent::LONGEST || read != Ok(None), "{length} bytes decide");
        if read != Ok(None) {
            assert_eq!(report.get_or_insert_with(|| read.clone()), &read);
        }
        if let Ok(Some(said)) = read {
            assert!(said.line.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{said:?}");
            assert!(said.percent.is_none_or(|percent| percent <= 25_600));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use super::check_answer;

    #[test]
    fn the_corpus() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/check_answer");
        let files: Vec<_> = fs::read_dir(corpus).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() >= 10, "{} files", files.len());
        files.iter().for_each(|file| check_answer(&fs::read(file).unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            check_answer(&bytes);
        }

        #[test]
        fn anything_like_an_agents_words(words in prop::collection::vec("up|down|drain|[0-9]{1,12}%|maxconn:[0-9]{0,12}|#|[ -~]{0,9}", 0..12)) {
            check_answer((words.join(" ") + "\n").as_bytes());
        }

        #[test]
        fn anything_like_a_status_line(version in "HTTP/[0-9.]{1,4}", code in "[0-9]{0,4}", end in "[ \r\n]{0,2}") {
            check_answer(format!("{version} {code}{end}").as_bytes());
        }
    }
}
