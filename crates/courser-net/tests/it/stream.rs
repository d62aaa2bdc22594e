//! Reads into several pieces.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use courser_net::{Pieces, Stream};

const PIECES: Pieces = Pieces { before: 2, length: 4, after: 1, count: 3 };

/// A stream, and what writes to it.
fn pair() -> (Stream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Stream::new(ours.into(), true), theirs)
}

async fn read(stream: &Stream, buffer: &mut Vec<u8>) -> usize {
    let make_room = |buffer: &mut Vec<u8>| buffer.reserve(PIECES.room());
    poll_fn(|cx| stream.poll_read_pieces(PIECES, cx, buffer, make_room)).await.unwrap()
}

#[tokio::test]
async fn bytes_go_into_pieces_with_zeros_around_them() {
    for (sent, expected) in [
        (&b"a"[..], &b"front\0\0a"[..]),
        (b"abcd", b"front\0\0abcd"),
        (b"abcde", b"front\0\0abcd\0\0\0e"),
        (b"abcdefghijkl", b"front\0\0abcd\0\0\0efgh\0\0\0ijkl"),
    ] {
        let (stream, mut peer) = pair();
        peer.write_all(sent).unwrap();
        let mut buffer = b"front".to_vec();
        assert_eq!(read(&stream, &mut buffer).await, sent.len());
        assert_eq!(buffer, expected);
    }
}

#[tokio::test]
async fn what_does_not_fit_comes_with_the_next_read_and_then_the_end() {
    let (stream, mut peer) = pair();
    peer.write_all(b"abcdefghijklmnop").unwrap();
    let mut buffer = Vec::new();
    assert_eq!(read(&stream, &mut buffer).await, 12);
    assert_eq!(read(&stream, &mut buffer).await, 4);
    assert!(buffer.ends_with(b"ijkl\0\0mnop"));
    let length = buffer.len();
    {
        let mut waiting = pin!(read(&stream, &mut buffer));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(waiting.as_mut().poll(&mut cx), Poll::Pending));
    }
    drop(peer);
    assert_eq!(read(&stream, &mut buffer).await, 0);
    assert_eq!(buffer.len(), length);
}
