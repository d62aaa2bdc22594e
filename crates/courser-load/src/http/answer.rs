//! Reads one answer after another and judges each: status, length, and on request every byte.

use std::fmt;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::HEAD_LIMIT;
use super::chunks::{Chunks, Piece};
use super::framing::{Framing, Head, read_head};
use super::request::Method;

/// A SHA-256 value.
type Hash = [u8; 32];

/// What an answer has to be.
#[derive(Clone, Debug, Default)]
pub struct Expect {
    /// Its status.
    pub status: ExpectedStatus,
    /// Bytes of its body; `None` takes any.
    pub length: Option<u64>,
    /// Its body's content.
    pub body: BodyCheck,
    /// Whether its body's first byte says which server it is of ([`Answer::page`]).
    pub page: bool,
}

/// Which statuses are right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedStatus {
    /// 200 to 299.
    #[default]
    Success,
    /// This one.
    Exactly(u16),
    /// Whatever the server says.
    Any,
}

impl ExpectedStatus {
    fn allows(self, status: u16) -> bool {
        match self {
            Self::Success => (200..300).contains(&status),
            Self::Exactly(expected) => status == expected,
            Self::Any => true,
        }
    }
}

/// What is checked of a body beyond its length. Hashing costs the client about half a microsecond per KiB.
#[derive(Clone, Debug, Default)]
pub enum BodyCheck {
    /// Nothing.
    #[default]
    Length,
    /// It has this SHA-256.
    Sha256([u8; 32]),
    /// It is the same as that of the first answer: clones share what that one was.
    LikeTheFirst(Arc<OnceLock<[u8; 32]>>),
}

/// What a call to [`Answer::feed`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that belong to this answer; those behind them are the next one's. Less than all only when `done`.
    pub consumed: usize,
    /// The answer is complete and right.
    pub done: bool,
}

/// A reader of one answer; [`Answer::restart`] makes it ready for the next on the same or another connection.
///
/// After an error the rest of the answer is not read: the connection is to be closed.
#[derive(Debug)]
pub struct Answer {
    expect: Expect,
    method: Method,
    state: State,
    /// The beginning of a head whose end has not come.
    head: Vec<u8>,
    status: Option<u16>,
    closes: bool,
    body: Body,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    /// So many bytes of the body are left.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
    Done,
}

/// What has come of the body.
#[derive(Debug, Default)]
struct Body {
    length: u64,
    /// What the server said it would be.
    announced: Option<u64>,
    hasher: Option<Sha256>,
    first: Option<u8>,
}

impl Answer {
    /// A reader of the answer to a request of this method.
    #[must_use]
    pub fn new(expect: &Expect, method: Method) -> Self {
        let mut answer = Self {
            expect: expect.clone(),
            method,
            state: State::Head,
            head: Vec::new(),
            status: None,
            closes: false,
            body: Body::default(),
        };
        answer.restart();
        answer
    }

    /// Forgets the answer read so far and expects the next one, of the same kind.
    pub fn restart(&mut self) {
        self.state = State::Head;
        self.head.clear();
        self.status = None;
        self.closes = false;
        let hashed = !matches!(self.expect.body, BodyCheck::Length);
        self.body = Body { hasher: hashed.then(Sha256::new), ..Body::default() };
    }

    /// Reads the front of `received`, which continues what was fed before.
    ///
    /// # Errors
    /// [`WrongAnswer`], as soon as it is certain.
    pub fn feed(&mut self, received: &[u8]) -> Result<Progress, WrongAnswer> {
        let mut rest = received;
        while !matches!(self.state, State::Done) && !rest.is_empty() {
            match self.state {
                State::Head => self.feed_head(&mut rest)?,
                State::Chunked(_) => self.feed_chunks(&mut rest)?,
                State::Length(_) | State::UntilClose | State::Done => self.feed_body(&mut rest)?,
            }
        }
        Ok(Progress { consumed: received.len() - rest.len(), done: matches!(self.state, State::Done) })
    }

    /// Takes the status of an HTTP/2 answer. What is fed then is its body, up to [`Self::end`].
    ///
    /// # Errors
    /// [`WrongAnswer::Status`], when it is not the expected one.
    pub(crate) fn begin_http2(&mut self, status: u16) -> Result<(), WrongAnswer> {
        self.take_status(status)?;
        self.begin_body(Framing::UntilClose)
    }

    /// The server has closed its side.
    ///
    /// # Errors
    /// [`WrongAnswer`], unless the answer is complete, or ends with the connection and is right.
    pub fn end(&mut self) -> Result<(), WrongAnswer> {
        match self.state {
            State::Done => Ok(()),
            State::UntilClose => self.finish(),
            State::Head if self.head.is_empty() => Err(WrongAnswer::Nothing),
            State::Head => {
                read_head(&self.head, self.method).map_err(WrongAnswer::Malformed)?;
                Err(self.truncated())
            }
            State::Length(_) | State::Chunked(_) => Err(self.truncated()),
        }
    }

    /// The status, once the head has come.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// The body's first byte, where it says which server the answer is of.
    #[must_use]
    pub fn page(&self) -> Option<u8> {
        self.body.first.filter(|_| self.expect.page)
    }

    /// Once the answer is done: whether the server closes the connection, so that no other request may follow.
    #[must_use]
    pub fn closes(&self) -> bool {
        self.closes
    }

    fn feed_head(&mut self, rest: &mut &[u8]) -> Result<(), WrongAnswer> {
        let before = self.head.len();
        let piece = &rest[..rest.len().min(HEAD_LIMIT - before)];
        let full = before + piece.len() == HEAD_LIMIT;
        let read = if before == 0 {
            read_head(piece, self.method)
        } else {
            self.head.extend_from_slice(piece);
            // A head ends with a line: it is not read again from its start for every byte.
            if full || piece.contains(&b'\n') { read_head(&self.head, self.method) } else { Ok(None) }
        };
        match read.map_err(WrongAnswer::Malformed)? {
            Some(head) => {
                self.head.clear();
                self.take_head(&head, head.length - before, rest)
            }
            None if full => Err(WrongAnswer::Malformed("endless head")),
            None => {
                if before == 0 {
                    self.head.extend_from_slice(piece);
                }
                *rest = &[];
                Ok(())
            }
        }
    }

    fn take_head(&mut self, head: &Head, here: usize, rest: &mut &[u8]) -> Result<(), WrongAnswer> {
        *rest = &rest[here..];
        // An upgrade was not asked for: 101 is final, and wrong unless it is expected.
        if head.status < 200 && head.status != 101 {
            return Ok(());
        }
        self.closes = head.closes;
        self.take_status(head.status)?;
        self.begin_body(head.framing)
    }

    fn take_status(&mut self, status: u16) -> Result<(), WrongAnswer> {
        self.status = Some(status);
        if self.expect.status.allows(status) { Ok(()) } else { Err(WrongAnswer::Status(status)) }
    }

    fn begin_body(&mut self, framing: Framing) -> Result<(), WrongAnswer> {
        match framing {
            Framing::Length(length) => {
                self.body.announced = Some(length);
                self.check_length(length)?;
                self.state = State::Length(length);
                if length == 0 { self.finish() } else { Ok(()) }
            }
            Framing::Chunked => {
                self.state = State::Chunked(Chunks::default());
                Ok(())
            }
            Framing::UntilClose => {
                self.state = State::UntilClose;
                Ok(())
            }
        }
    }

    fn feed_body(&mut self, rest: &mut &[u8]) -> Result<(), WrongAnswer> {
        let left = if let State::Length(left) = self.state { left } else { u64::MAX };
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        let (data, behind) = rest.split_at(count);
        *rest = behind;
        self.take_body(data)?;
        if let State::Length(left) = &mut self.state {
            *left -= count as u64;
            if *left == 0 {
                return self.finish();
            }
        }
        Ok(())
    }

    fn feed_chunks(&mut self, rest: &mut &[u8]) -> Result<(), WrongAnswer> {
        while let State::Chunked(chunks) = &mut self.state {
            match chunks.next(rest).map_err(WrongAnswer::Malformed)? {
                Piece::Body(data) => self.take_body(data)?,
                Piece::Frame => {}
                Piece::Starved => return Ok(()),
                Piece::End => return self.finish(),
            }
        }
        Ok(())
    }

    fn take_body(&mut self, data: &[u8]) -> Result<(), WrongAnswer> {
        self.body.first = self.body.first.or(data.first().copied());
        self.body.length = self.body.length.saturating_add(data.len() as u64);
        if let Some(hasher) = &mut self.body.hasher {
            hasher.update(data);
        }
        match self.expect.length {
            // As many as came by chance with the first one too many would say nothing.
            Some(expected) if self.body.length > expected => self.check_length(expected + 1),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<(), WrongAnswer> {
        self.check_length(self.body.length)?;
        if let Some(hasher) = self.body.hasher.take() {
            check_hash(&self.expect.body, hasher.finalize().into())?;
        }
        self.state = State::Done;
        Ok(())
    }

    fn truncated(&self) -> WrongAnswer {
        WrongAnswer::Truncated { received: self.body.length, announced: self.body.announced }
    }

    fn check_length(&self, length: u64) -> Result<(), WrongAnswer> {
        match self.expect.length {
            // The answer to HEAD has no body to be of any length.
            Some(expected) if expected != length && self.method != Method::Head => {
                Err(WrongAnswer::Length { expected, received: length })
            }
            _ => Ok(()),
        }
    }
}

fn check_hash(check: &BodyCheck, hash: Hash) -> Result<(), WrongAnswer> {
    let expected = match check {
        BodyCheck::Length => return Ok(()),
        BodyCheck::Sha256(expected) => expected,
        BodyCheck::LikeTheFirst(first) => first.get_or_init(|| hash),
    };
    if *expected == hash { Ok(()) } else { Err(WrongAnswer::Hash) }
}

/// What is wrong with an answer. All are the server's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WrongAnswer {
    /// This status is not the expected one.
    Status(u16),
    /// The body has, or will have, another length than expected.
    Length {
        /// Bytes expected.
        expected: u64,
        /// Bytes announced, or received up to the end or the first one too many.
        received: u64,
    },
    /// The body has the right length and other bytes.
    Hash,
    /// It is no HTTP/1 answer, for this reason.
    Malformed(&'static str),
    /// The connection ended in the middle of it.
    Truncated {
        /// Bytes of the body that came.
        received: u64,
        /// Bytes that the head announced, if it came and did.
        announced: Option<u64>,
    },
    /// The connection ended before the first byte of it.
    Nothing,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "the server answered with status {status}"),
            Self::Length { expected, received } => {
                write!(f, "the server's answer has {received} bytes instead of {expected}")
            }
            Self::Hash => f.write_str("the server's answer has other bytes than expected"),
            Self::Malformed(why) => write!(f, "the server's answer is not HTTP/1.1: {why}"),
            Self::Truncated { received, announced: Some(announced) } => {
                write!(f, "the server closed after {received} of {announced} bytes")
            }
            Self::Truncated { received, announced: None } => {
                write!(f, "the server closed within its answer, after {received} bytes")
            }
            Self::Nothing => f.write_str("the server closed without an answer"),
        }
    }
}

impl std::error::Error for WrongAnswer {}
