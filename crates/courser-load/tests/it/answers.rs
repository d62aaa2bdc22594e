//! Answers in any pieces and with any faults.

use std::fs;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::exercise;

#[test]
fn the_corpus_holds() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/answer");
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        exercise::answer(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "{files} inputs");
}

/// Answers as servers give them, one of each framing.
fn answers() -> impl Strategy<Value = &'static [u8]> {
    select(vec![
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde".as_slice(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nServer: old\r\n\r\nabcde",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nDate: now\r\n\r\n",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    ])
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        choice in any::<u8>(),
        cut in any::<u8>(),
        parts in vec(answers(), 1..3),
        changes in vec((any::<Index>(), any::<u8>()), 0..4),
        end in any::<Index>(),
    ) {
        let mut input = [&[choice, cut], &parts.concat()[..]].concat();
        exercise::answer(&input);
        for (at, byte) in changes {
            let at = at.index(input.len());
            input[at] = byte;
        }
        exercise::answer(&input);
        exercise::answer(&input[..end.index(input.len())]);
    }

    #[test]
    fn any_bytes_get_a_verdict(bytes in vec(any::<u8>(), 0..300)) {
        exercise::answer(&bytes);
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        exercise::answer(&[&[4, 2], &chunked[..], &bytes].concat());
    }
}
