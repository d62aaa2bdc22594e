//! Answers, as bytes that can be sent as they are.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::LazyLock;

use super::request::Persistence;
use super::wish::Wish;
use crate::http::body::{BLOCK, block};

/// Everything that the bytes of an object's answer depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) size: u64,
    pub(super) status: u16,
    pub(super) chunked: bool,
    pub(super) head_only: bool,
    pub(super) persistence: Persistence,
    /// The first byte of the object, as a digit; the alphabet's without.
    pub(super) page: Option<u8>,
}

impl Shape {
    pub(super) fn of(wish: &Wish, head_only: bool, persistence: Persistence) -> Self {
        Self {
            size: wish.size,
            status: wish.status,
            chunked: wish.chunked,
            head_only,
            persistence,
            page: None,
        }
    }
}

/// An answer: `front`, then `repeats` times `unit`, then `tail`. Objects of one block are all `front`.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) front: Vec<u8>,
    pub(super) unit: &'static [u8],
    pub(super) repeats: u64,
    pub(super) tail: Vec<u8>,
}

impl Answer {
    /// An object, for requests with `caller`.
    pub(super) fn new(shape: Shape, caller: Option<SocketAddr>) -> Self {
        // RFC 9110, sections 15.3.5 and 15.4.5: these have no body.
        let bodiless = matches!(shape.status, 204 | 304);
        let size = if bodiless { 0 } else { shape.size };
        let framing = match (bodiless, shape.chunked) {
            (true, _) => Length::None,
            (false, true) => Length::Chunked,
            (false, false) => Length::Bytes(size),
        };
        let front = head(shape.status, &framing, "text/plain", shape.persistence, caller);
        let mut answer = Self { front, unit: &[], repeats: 0, tail: Vec::new() };
        match framing {
            _ if shape.head_only => {}
            Length::None => {}
            Length::Bytes(size) => {
                let body = answer.front.len();
                answer.plain(size);
                if let (Some(first), Some(page)) = (answer.front.get_mut(body), shape.page) {
                    *first = b'0' + page % 10;
                }
            }
            Length::Chunked => answer.chunked(size),
        }
        answer
    }

    /// Any other content, which fits into memory.
    pub(super) fn with_content(shape: Shape, kind: &str, content: &[u8], caller: Option<SocketAddr>) -> Self {
        let length = Length::Bytes(content.len() as u64);
        let mut front = head(shape.status, &length, kind, shape.persistence, caller);
        if !shape.head_only {
            front.extend_from_slice(content);
        }
        Self { front, unit: &[], repeats: 0, tail: Vec::new() }
    }

    fn plain(&mut self, size: u64) {
        let (blocks, rest) = split(size);
        if blocks == 0 {
            return self.front.extend_from_slice(&block()[..rest]);
        }
        self.front.extend_from_slice(block());
        (self.unit, self.repeats) = (block(), blocks - 1);
        self.tail.extend_from_slice(&block()[..rest]);
    }

    fn chunked(&mut self, size: u64) {
        let (blocks, rest) = split(size);
        let mut last = Vec::new();
        if rest > 0 {
            chunk(&block()[..rest], &mut last);
        }
        last.extend_from_slice(b"0\r\n\r\n");
        if blocks == 0 {
            return self.front.append(&mut last);
        }
        self.front.extend_from_slice(&CHUNK);
        (self.unit, self.repeats, self.tail) = (&CHUNK, blocks - 1, last);
    }
}

/// A whole block as a chunk.
static CHUNK: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut framed = Vec::with_capacity(BLOCK + 8);
    chunk(block(), &mut framed);
    framed
});

fn chunk(data: &[u8], out: &mut Vec<u8>) {
    write!(out, "{:x}\r\n", data.len()).expect("memory takes every byte");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\r\n");
}

fn split(size: u64) -> (u64, usize) {
    let rest = usize::try_from(size % BLOCK as u64).expect("it is less than a block");
    (size / BLOCK as u64, rest)
}

/// How the end of a body is told.
enum Length {
    None,
    Bytes(u64),
    Chunked,
}

fn head(
    status: u16,
    length: &Length,
    kind: &str,
    persistence: Persistence,
    caller: Option<SocketAddr>,
) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    match length {
        Length::None => {}
        Length::Bytes(bytes) => head += &format!("Content-Type: {kind}\r\nContent-Length: {bytes}\r\n"),
        Length::Chunked => head += &format!("Content-Type: {kind}\r\nTransfer-Encoding: chunked\r\n"),
    }
    match persistence {
        Persistence::Keep => {}
        Persistence::KeepSaid => head += "Connection: keep-alive\r\n",
        Persistence::Close => head += "Connection: close\r\n",
    }
    if let Some(caller) = caller {
        head += &format!("X-Proxied-For: {caller}\r\n");
    }
    head += "\r\n";
    head.into_bytes()
}

/// The phrase is for people (RFC 9112, section 4): those that are likely to be looked at have one.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        404 => "Not Found",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "As Asked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Answer as Reader, Expect, ExpectedStatus, Method, body};

    fn shape(size: u64) -> Shape {
        let persistence = Persistence::Keep;
        Shape { size, status: 200, chunked: false, head_only: false, persistence, page: None }
    }

    fn bytes(answer: &Answer) -> Vec<u8> {
        let units = (0..answer.repeats).flat_map(|_| answer.unit);
        answer.front.iter().chain(units).chain(&answer.tail).copied().collect()
    }

    #[test]
    fn objects_of_any_size_are_whole() {
        let block = BLOCK as u64;
        for size in [0, 1, 1024, block - 1, block, block + 1, 3 * block, 3 * block + 7] {
            let sent = bytes(&Answer::new(shape(size), None));
            let head = sent.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
            assert!(sent[head..] == body(usize::try_from(size).unwrap()), "{size}");
            for chunked in [false, true] {
                let sent = bytes(&Answer::new(Shape { chunked, ..shape(size) }, None));
                let mut reader =
                    Reader::new(&Expect { length: Some(size), ..Expect::default() }, Method::Get);
                let progress = reader.feed(&sent).unwrap();
                assert!(progress.done && progress.consumed == sent.len(), "{size}, chunked {chunked}");
            }
        }
    }

    #[test]
    fn a_page_of_its_own_begins_with_its_number_and_its_reader_says_so() {
        let sent = bytes(&Answer::new(Shape { page: Some(2), ..shape(107) }, None));
        let page = |page| {
            let mut reader =
                Reader::new(&Expect { length: Some(107), page, ..Expect::default() }, Method::Get);
            assert!(reader.feed(&sent).unwrap().done);
            reader.page()
        };
        assert_eq!((page(true), page(false)), (Some(b'2'), None));
        assert!(sent.ends_with(&body(107)[1..]));
        assert!(
            !bytes(&Answer::new(Shape { page: Some(2), ..shape(0) }, None)).is_empty(),
            "nothing to mark"
        );
    }

    #[test]
    fn answers_without_a_body_have_none() {
        let expect = Expect { status: ExpectedStatus::Any, ..Expect::default() };
        for (status, head_only) in [(204, false), (304, false), (200, true)] {
            let sent = bytes(&Answer::new(Shape { status, head_only, ..shape(9) }, None));
            let method = if head_only { Method::Head } else { Method::Get };
            assert!(Reader::new(&expect, method).feed(&sent).unwrap().done, "{status}");
            assert!(sent.ends_with(b"\r\n\r\n"), "{status}");
        }
    }

    #[test]
    fn the_caller_is_told() {
        let sent = bytes(&Answer::new(shape(0), Some("[2001:db8::1]:7".parse().unwrap())));
        assert!(String::from_utf8(sent).unwrap().contains("\r\nX-Proxied-For: [2001:db8::1]:7\r\n"));
    }
}
