//! The life of a connection to the origin.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use courser_net::{Accepted, Stream, Then};
use sha2::{Digest, Sha256};

use super::accept_proxy::{AcceptProxy, Front, hex, peer};
use super::answer::{Answer, Shape};
use super::request::{Asked, Persistence, Refused};
use super::state::{State, count};
use super::wish::Content;
use super::{Mode, Proxy};
use crate::http::chunks::{Chunks, Piece};
use crate::http::framing::Framing;

/// The longest body that is kept to be sent back.
const ECHO_LIMIT: usize = 16 << 20;
/// Reads after a refusal, at most: who then goes on sending does not listen.
const DRAINED: usize = 64;
/// Answers to pipelined requests are collected up to about this size.
const COLLECTED: usize = 64 << 10;

/// Serves one connection to its end. How it ends is for the peer to judge.
pub(super) async fn serve(state: Rc<State>, accepted: Accepted, page: u8) {
    let Accepted { stream, peer } = accepted;
    let mut connection = Connection {
        stream,
        peer,
        state,
        page,
        received: Vec::new(),
        taken: 0,
        out: Vec::new(),
        announced: None,
    };
    let served = connection.serve().await;
    if served.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData) {
        count(&connection.state.counters.refused);
    }
}

struct Connection {
    stream: Stream,
    peer: Option<SocketAddr>,
    state: Rc<State>,
    /// Number of the address that was asked.
    page: u8,
    received: Vec<u8>,
    /// How much of `received` has been dealt with.
    taken: usize,
    /// Answers not sent yet.
    out: Vec<u8>,
    announced: Option<Box<AcceptProxy>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.state.give_back(std::mem::take(&mut self.received));
    }
}

/// Whether a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    Nothing,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        if self.state.proxy != Proxy::Off {
            self.read_announcement().await?;
        }
        match self.state.mode {
            Mode::Http => self.serve_http().await,
            Mode::Echo => self.echo().await,
        }
    }

    async fn read_announcement(&mut self) -> io::Result<()> {
        loop {
            match AcceptProxy::read(self.pending()) {
                Ok(Front::Header(announced, length)) => {
                    self.taken += length;
                    self.announced = Some(Box::new(announced));
                    return Ok(());
                }
                Ok(Front::Other) if self.state.proxy == Proxy::Accepted => return Ok(()),
                Ok(Front::Other) | Err(_) => return Err(io::ErrorKind::InvalidData.into()),
                // Too short to be anything: what follows will see the end as well.
                Ok(Front::Undecided) if self.read().await? == 0 => return Ok(()),
                Ok(Front::Undecided) => {}
            }
        }
    }

    async fn serve_http(&mut self) -> io::Result<()> {
        loop {
            match Asked::read(self.pending()) {
                Ok(Some(asked)) => {
                    self.taken += asked.length;
                    if self.request(&asked).await? == Next::Nothing {
                        return Ok(());
                    }
                }
                Ok(None) => {
                    self.flush(Then::Wait).await?;
                    if self.read().await? == 0 {
                        return Ok(());
                    }
                }
                Err(refused) => return self.refuse(refused).await,
            }
        }
    }

    async fn request(&mut self, asked: &Asked) -> io::Result<Next> {
        let mut body = Taken::of(asked.wish.content);
        if asked.body != Framing::Length(0) {
            self.take_body(asked, &mut body).await?;
        }
        if body.overflowed() {
            self.refuse(Refused::TooLarge).await?;
            return Ok(Next::Nothing);
        }
        if !asked.wish.delay.is_zero() {
            self.flush(Then::Wait).await?;
            tokio::time::sleep(asked.wish.delay).await;
        }
        self.answer(asked, body).await
    }

    async fn answer(&mut self, asked: &Asked, body: Taken) -> io::Result<Next> {
        let page = (asked.wish.content == Content::Page).then_some(self.page);
        let shape = Shape { page, ..Shape::of(&asked.wish, asked.head_only, asked.persistence) };
        let caller = self.announced.as_ref().and_then(|announced| announced.source);
        let with_content = |kind, content: &[u8]| Rc::new(Answer::with_content(shape, kind, content, caller));
        let answer = match asked.wish.content {
            Content::Object | Content::Page if caller.is_none() => self.state.answer(shape),
            Content::Object | Content::Page => Rc::new(Answer::new(shape, caller)),
            Content::Peer => with_content("application/json", &peer(self.peer, self.announced.as_deref())),
            Content::Proxy => {
                with_content("application/octet-stream", self.announced.as_ref().map_or(&[], |a| a.bytes()))
            }
            Content::Echo | Content::Hash => with_content(body.kind(), &body.content()),
        };
        count(&self.state.counters.answered);
        self.send(&answer, asked.persistence).await
    }

    /// Sends an answer that stands alone as it is; others are collected.
    async fn send(&mut self, answer: &Answer, persistence: Persistence) -> io::Result<Next> {
        let close = persistence == Persistence::Close;
        let long = answer.repeats > 0 || !answer.tail.is_empty();
        let then = if close && !long { Then::Shutdown } else { Then::Wait };
        if self.out.is_empty() && (self.pending().is_empty() || long || close) {
            self.write(&answer.front, then).await?;
        } else {
            self.out.extend_from_slice(&answer.front);
            if long || close || self.out.len() >= COLLECTED {
                self.flush(then).await?;
            }
        }
        if long {
            self.send_rest(answer, close).await?;
        }
        if !close {
            return Ok(Next::Request);
        }
        self.stream.shutdown();
        Ok(Next::Nothing)
    }

    async fn send_rest(&mut self, answer: &Answer, close: bool) -> io::Result<()> {
        for _ in 0..answer.repeats {
            self.write(answer.unit, Then::Wait).await?;
        }
        let then = if close { Then::Shutdown } else { Then::Wait };
        self.write(&answer.tail, then).await
    }

    async fn take_body(&mut self, asked: &Asked, body: &mut Taken) -> io::Result<()> {
        if asked.waits && self.pending().is_empty() {
            self.flush(Then::Wait).await?;
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n", Then::Wait).await?;
        }
        match asked.body {
            Framing::Chunked => self.take_chunks(body).await,
            Framing::Length(length) => self.take_bytes(length, body).await,
            Framing::UntilClose => Ok(()),
        }
    }

    async fn take_bytes(&mut self, mut left: u64, body: &mut Taken) -> io::Result<()> {
        loop {
            let pending = self.pending();
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(pending.len());
            body.add(&pending[..count]);
            self.taken += count;
            left -= count as u64;
            if left == 0 {
                return Ok(());
            }
            self.read_more().await?;
        }
    }

    async fn take_chunks(&mut self, body: &mut Taken) -> io::Result<()> {
        let mut chunks = Chunks::default();
        loop {
            let mut rest = &self.received[self.taken..];
            let piece = chunks.next(&mut rest).map_err(|_| io::ErrorKind::InvalidData)?;
            if let Piece::Body(data) = piece {
                body.add(data);
            }
            let (starved, end) = (piece == Piece::Starved, piece == Piece::End);
            self.taken = self.received.len() - rest.len();
            if end {
                return Ok(());
            }
            if starved {
                self.read_more().await?;
            }
        }
    }

    /// Says why, and ends the connection: what follows cannot be told from the rest of this request.
    async fn refuse(&mut self, refused: Refused) -> io::Result<()> {
        let persistence = Persistence::Close;
        let shape = Shape {
            size: 0,
            status: refused.status(),
            chunked: false,
            head_only: false,
            persistence,
            page: None,
        };
        let answer = Answer::with_content(shape, "text/plain", refused.advice().as_bytes(), None);
        count(&self.state.counters.refused);
        self.send(&answer, persistence).await?;
        // Unread bytes would turn the close into a reset (RFC 9293, section 3.10.4), and the answer could be lost.
        for _ in 0..DRAINED {
            self.taken = self.received.len();
            if self.read().await? == 0 {
                break;
            }
        }
        Ok(())
    }

    async fn echo(&mut self) -> io::Result<()> {
        loop {
            if !self.pending().is_empty() {
                let bytes = std::mem::take(&mut self.received);
                self.write(&bytes[self.taken..], Then::Wait).await?;
                self.received = bytes;
                self.taken = self.received.len();
            }
            if self.read().await? == 0 {
                self.stream.shutdown();
                return Ok(());
            }
        }
    }

    /// What has come and has not been dealt with.
    fn pending(&self) -> &[u8] {
        &self.received[self.taken..]
    }

    /// Waits for more; 0 is the end.
    async fn read(&mut self) -> io::Result<usize> {
        if self.taken == self.received.len() {
            self.received.clear();
            self.state.give_back(std::mem::take(&mut self.received));
        } else {
            self.received.drain(..self.taken);
        }
        self.taken = 0;
        let Self { stream, received, state, .. } = self;
        poll_fn(|cx| stream.poll_read(cx, received, |buffer| state.make_room(buffer))).await
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.read().await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    async fn flush(&mut self, then: Then) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.out);
        self.write(&out, then).await
    }

    async fn write(&self, mut bytes: &[u8], then: Then) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.stream.poll_write(cx, bytes, then)).await?;
            bytes = &bytes[written..];
        }
        Ok(())
    }
}

/// What is made of a request's body.
enum Taken {
    Nothing,
    Bytes(Vec<u8>),
    Hash(Box<Sha256>, u64),
}

impl Taken {
    fn of(content: Content) -> Self {
        match content {
            Content::Echo => Self::Bytes(Vec::new()),
            Content::Hash => Self::Hash(Box::default(), 0),
            Content::Object | Content::Page | Content::Peer | Content::Proxy => Self::Nothing,
        }
    }

    fn add(&mut self, data: &[u8]) {
        match self {
            Self::Nothing => {}
            // One byte beyond the limit is remembered: it is too much, and no more is kept.
            Self::Bytes(bytes) => {
                let room = (ECHO_LIMIT + 1).saturating_sub(bytes.len());
                bytes.extend_from_slice(&data[..data.len().min(room)]);
            }
            Self::Hash(hasher, length) => {
                hasher.update(data);
                *length += data.len() as u64;
            }
        }
    }

    fn overflowed(&self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.len() > ECHO_LIMIT)
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Nothing | Self::Bytes(_) => "application/octet-stream",
            Self::Hash(..) => "application/json",
        }
    }

    fn content(self) -> Vec<u8> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Bytes(bytes) => bytes,
            Self::Hash(hasher, length) => {
                let hash = hex(&hasher.finalize());
                format!("{{\"bytes\":{length},\"sha256\":\"{hash}\"}}\n").into_bytes()
            }
        }
    }
}
