//! The head of a request to the origin.

use std::mem::MaybeUninit;

use httparse::{ParserConfig, Request, Status};

use super::wish::Wish;
use crate::http::HEAD_LIMIT;
use crate::http::framing::{Fields, Framing, MAX_FIELDS};

/// What counts in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Bytes of the head.
    pub(super) length: usize,
    pub(super) wish: Wish,
    /// The answer's head alone is wanted.
    pub(super) head_only: bool,
    pub(super) persistence: Persistence,
    /// Where its body ends.
    pub(super) body: Framing,
    /// The client sends its body only when it is told to (RFC 9110, section 10.1.1).
    pub(super) waits: bool,
}

/// What becomes of the connection after the answer (RFC 9112, section 9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Persistence {
    /// It stays.
    Keep,
    /// It stays, which a client of HTTP/1.0 has to be told.
    KeepSaid,
    Close,
}

/// Why a request is not answered as it wishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is no HTTP/1 request.
    Malformed,
    /// Its head is longer than [`HEAD_LIMIT`].
    TooLong,
    /// Its query asks for something that there is not.
    Query,
    /// Its body is longer than can be sent back.
    TooLarge,
}

impl Refused {
    /// The status that tells it.
    pub(super) fn status(self) -> u16 {
        match self {
            Self::Malformed | Self::Query => 400,
            Self::TooLong => 431,
            Self::TooLarge => 413,
        }
    }

    /// What to do about it.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::Malformed => "this is no HTTP/1.1 request\n",
            Self::TooLong => "the head of the request is too long: 32 KiB are read\n",
            Self::Query => {
                "ask with /?s=20k for 20 KiB, d=5ms for a delay, status=503, chunked, peer, proxy, echo, hash\n"
            }
            Self::TooLarge => "the body is too long to be sent back: 16 MiB are kept; ask for /?hash\n",
        }
    }
}

impl Asked {
    /// Reads the head at the front of `received`; `None` until it is whole.
    pub(super) fn read(received: &[u8]) -> Result<Option<Self>, Refused> {
        let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut request = Request::new(&mut []);
        let parsed =
            ParserConfig::default().parse_request_with_uninit_headers(&mut request, received, &mut fields);
        match parsed.map_err(|_| Refused::Malformed)? {
            Status::Complete(length) => Self::of(&request, length).map(Some),
            Status::Partial if received.len() >= HEAD_LIMIT => Err(Refused::TooLong),
            Status::Partial => Ok(None),
        }
    }

    fn of(request: &Request<'_, '_>, length: usize) -> Result<Self, Refused> {
        let fields = Fields::read(request.headers).map_err(|_| Refused::Malformed)?;
        let body = fields.request_framing().map_err(|_| Refused::Malformed)?;
        let old = request.version == Some(0);
        let persistence = match (fields.close, old, fields.keep_alive) {
            (true, _, _) | (false, true, false) => Persistence::Close,
            (false, true, true) => Persistence::KeepSaid,
            (false, false, _) => Persistence::Keep,
        };
        let mut wish = Wish::read(request.path.unwrap_or_default()).ok_or(Refused::Query)?;
        wish.chunked &= !old;
        Ok(Self {
            length,
            wish,
            head_only: request.method == Some("HEAD"),
            persistence,
            body,
            waits: fields.waits && !old,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Asked {
        Asked::read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_request_says_how_it_ends() {
        let post = asked("POST /a HTTP/1.1\r\nContent-Length: 12\r\nconnection: Close\r\n\r\nabc");
        assert_eq!((post.body, post.persistence, post.length), (Framing::Length(12), Persistence::Close, 59));
        assert_eq!(asked("GET / HTTP/1.0\r\n\r\n").persistence, Persistence::Close);
        let kept = asked("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        assert_eq!(kept.persistence, Persistence::KeepSaid);
        let get = asked("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!((get.body, get.persistence), (Framing::Length(0), Persistence::Keep));
    }

    #[test]
    fn what_is_no_request_is_refused_in_time() {
        assert_eq!(Asked::read(b"GET / HTTP/1.1\r\nHost: a\r\n"), Ok(None));
        assert_eq!(Asked::read(b"\x16\x03\x01\x02"), Err(Refused::Malformed));
        let gzip = b"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n";
        assert_eq!(Asked::read(gzip), Err(Refused::Malformed), "its end cannot be known");
        let endless = [b"GET / HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; HEAD_LIMIT]].concat();
        assert_eq!(Asked::read(&endless), Err(Refused::TooLong));
    }
}
