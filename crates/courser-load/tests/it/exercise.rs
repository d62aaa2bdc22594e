//! What has to hold for any bytes at all as an answer. The fuzz target, its corpus and the property test run the same.

use std::sync::{Arc, OnceLock};

use courser_load::http::{Answer, BodyCheck, Expect, ExpectedStatus, Method, WrongAnswer};

/// The verdict does not depend on how the bytes arrive, nothing is consumed beyond the answer, and a reader that has
/// read one answer judges the next as a new one does. The first two bytes choose what is expected and the cuts.
pub(crate) fn answer(input: &[u8]) {
    let [choice, cut, received @ ..] = input else { return };
    let (expect, method) = expectation(*choice);
    let mut reader = Answer::new(&expect, method);
    let whole = read(&mut reader, received, received.len().max(1));
    if let Ok(length) = whole {
        assert!(length <= received.len());
    }
    for size in [1, usize::from(*cut) + 1] {
        reader.restart();
        assert_eq!(read(&mut reader, received, size), whole, "in pieces of {size}");
    }
}

/// Feeds `received` in pieces of this size, then the end: the bytes of the right answer, or what is wrong.
fn read(reader: &mut Answer, received: &[u8], size: usize) -> Result<usize, WrongAnswer> {
    let mut consumed = 0;
    for piece in received.chunks(size) {
        let progress = reader.feed(piece)?;
        consumed += progress.consumed;
        assert!(progress.done || progress.consumed == piece.len(), "an unfinished answer takes everything");
        if progress.done {
            return Ok(consumed);
        }
    }
    reader.end()?;
    Ok(consumed)
}

fn expectation(choice: u8) -> (Expect, Method) {
    let method = if choice & 1 == 0 { Method::Get } else { Method::Head };
    let status = match choice & 6 {
        0 => ExpectedStatus::Success,
        2 => ExpectedStatus::Exactly(200),
        _ => ExpectedStatus::Any,
    };
    let length = (choice & 8 != 0).then_some(5);
    let like_the_first = BodyCheck::LikeTheFirst(Arc::new(OnceLock::new()));
    let body = if choice & 16 == 0 { BodyCheck::Length } else { like_the_first };
    (Expect { status, length, body, page: false }, method)
}
