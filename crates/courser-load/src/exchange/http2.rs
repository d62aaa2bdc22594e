//! Requests as HTTP/2 has them (RFC 9113): one stream after the other, and GOAWAY at the end. Frames, fields and windows
//! are the library's; here is what it reads and writes, and what its errors mean.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use courser_net::Then;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Error, Reason};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{at_once, within};
use crate::attempt::{AnswerTimes, Attempt};
use crate::channel::{Channel, ReadOutcome};
use crate::failure::{Class, Failed, Step};
use crate::http::{Answer, Expect, HEAD_LIMIT, Http2Request};
use crate::worker::Worker;

/// Bytes that a server may send before it hears that they were read: as many as browsers allow a stream within a factor
/// of ten, so that an object does not wait for WINDOW_UPDATE once every 64 KiB.
const WINDOW: u32 = 1 << 20;

/// Plaintext is written once so much is queued.
const QUEUE_BYTES: u64 = 64 * 1024;

/// Requests, one after the other. The client closes after the last one, and after a GOAWAY without an error.
pub(super) async fn requests(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    request: &Http2Request,
    expect: &Expect,
    count: Option<u32>,
) -> Result<(), Failed> {
    let shared = Shared::default();
    let mut session = Session::open(worker, channel, &shared).await?;
    let mut answer = Answer::new(expect, request.method());
    for number in 1.. {
        if number > 1 {
            answer.restart();
            worker.record_next_transaction(attempt);
        }
        within(worker, attempt, session.ask(worker, attempt, request, &mut answer)).await?;
        if count == Some(number) || worker.is_over() || session.is_going_away().await {
            break;
        }
    }
    session.close().await;
    Ok(())
}

/// One request; then the connection stays open until the run ends and drops it, or the server ends it first.
pub(super) async fn hold(
    worker: &Worker,
    attempt: &Attempt,
    channel: &mut Channel,
    request: &Http2Request,
    expect: &Expect,
) -> Result<(), Failed> {
    let shared = Shared::default();
    let mut session = Session::open(worker, channel, &shared).await?;
    let mut answer = Answer::new(expect, request.method());
    within(worker, attempt, session.ask(worker, attempt, request, &mut answer)).await?;
    worker.hold();
    // PING and SETTINGS are answered meanwhile.
    let Err(ended) = drive(&mut session.connection, &shared, pending::<Result<Infallible, _>>()).await;
    worker.release();
    Err(ended)
}

/// An HTTP/2 connection.
struct Session<'c> {
    connection: Connection<Plaintext<'c>, Bytes>,
    sender: SendRequest<Bytes>,
    shared: &'c Shared,
}

impl<'c> Session<'c> {
    /// Queues the connection preface (RFC 9113, section 3.4), which leaves with the first request.
    async fn open(worker: &'c Worker, channel: &'c mut Channel, shared: &'c Shared) -> Result<Self, Failed> {
        let mut builder = Builder::new();
        builder.enable_push(false).initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
        builder.max_header_list_size(u32::try_from(HEAD_LIMIT).unwrap_or(u32::MAX));
        let opened = builder.handshake(Plaintext { worker, channel, shared }).await;
        let (sender, connection) = opened.map_err(|error| shared.failed(&error))?;
        Ok(Self { connection, sender, shared })
    }

    /// One request and its answer: one transaction.
    async fn ask(
        &mut self,
        worker: &Worker,
        attempt: &Attempt,
        request: &Http2Request,
        answer: &mut Answer,
    ) -> Result<(), Failed> {
        let Self { connection, sender, shared } = self;
        let first = attempt.begun.get() == attempt.intended;
        let asked = worker.now();
        attempt.at(Step::Answer);
        attempt.answered.set(false);
        shared.received.set(None);
        let failed = |error| shared.failed(&error);
        let exchange = async {
            let body = request.body();
            let sent = sender.send_request(request.head(), body.is_empty());
            let (response, mut stream) = sent.map_err(failed)?;
            if !body.is_empty() {
                stream.send_data(body.clone(), true).map_err(failed)?;
            }
            let (head, mut body) = response.await.map_err(failed)?.into_parts();
            let first_byte = worker.now();
            answer.begin_http2(head.status.as_u16())?;
            while let Some(data) = body.data().await {
                let data = data.map_err(failed)?;
                body.flow_control().release_capacity(data.len()).map_err(failed)?;
                answer.feed(&data)?;
            }
            answer.end()?;
            Ok(first_byte)
        };
        let first_byte = Some(drive(connection, shared, exchange).await?);
        attempt.answered.set(true);
        let first_received = shared.received.get();
        worker
            .answered(attempt, AnswerTimes { first, asked, first_received, first_byte, page: answer.page() });
        Ok(())
    }

    /// Whether the server takes no more requests, without an error (RFC 9113, section 6.8).
    async fn is_going_away(&mut self) -> bool {
        // What has come with the answer is read before the next request goes out.
        let _ = at_once(&mut self.connection).await;
        let ready = at_once(poll_fn(|cx| self.sender.poll_ready(cx))).await;
        matches!(ready, Some(Err(error)) if error.is_go_away() && error.reason() == Some(Reason::NO_ERROR))
    }

    /// Queues GOAWAY, which leaves with close_notify. The answers are there: whatever comes now fails nothing.
    async fn close(self) {
        self.shared.closing.set(true);
        drop(self.sender);
        let _ = at_once(self.connection).await;
    }
}

/// Lets a connection work until `part` of the exchange is done, or can no longer be.
async fn drive<T>(
    connection: &mut Connection<Plaintext<'_>, Bytes>,
    shared: &Shared,
    part: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let mut part = pin!(part);
    poll_fn(|cx| {
        // First, so that what it sends leaves at once.
        if let Poll::Ready(done) = part.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        let ended = Pin::new(&mut *connection).poll(cx);
        if let Poll::Ready(Err(error)) = &ended {
            // A stream that ends with it is told less.
            shared.keep(shared.failed(error));
        }
        match (part.as_mut().poll(cx), ended) {
            (Poll::Pending, Poll::Ready(_)) => Poll::Ready(Err(shared.truncated())),
            (part, _) => part,
        }
    })
    .await
}

/// What the two ends of the library share: its byte stream, and its user.
#[derive(Default)]
struct Shared {
    /// Why reading or writing failed, or the connection: the library keeps less of it.
    failed: Cell<Option<Failed>>,
    /// Since the last request.
    received: Cell<Option<Duration>>,
    /// The server's first frame has come.
    greeted: Cell<bool>,
    /// What is queued waits for close_notify.
    closing: Cell<bool>,
}

impl Shared {
    fn keep(&self, failed: Failed) {
        self.failed.set(Some(failed));
    }

    fn truncated(&self) -> Failed {
        self.failed.take().unwrap_or_else(|| Failed::truncated(Step::Answer))
    }

    /// What an error of the library means.
    fn failed(&self, error: &Error) -> Failed {
        self.failed.take().unwrap_or_else(|| {
            let (theirs, is_stream) = (error.is_remote(), error.is_reset());
            match error.reason() {
                Some(reason) if theirs && is_stream => Failed::new(
                    Class::RstStream(code(reason)),
                    format!("the server ended the stream with RST_STREAM: {reason:?}"),
                ),
                Some(reason) if theirs => Failed::new(
                    Class::GoAway(code(reason)),
                    format!("the server ended the connection with GOAWAY: {reason:?}"),
                ),
                Some(reason) => {
                    Failed::new(Class::Protocol, format!("the server broke HTTP/2: {reason:?} ({reason})"))
                }
                None if error.is_io() => Failed::truncated(Step::Answer),
                None => Failed::new(Class::Internal, format!("HTTP/2: {error}")),
            }
        })
    }
}

/// An error code by its name (RFC 9113, section 7), as classes are written. One without a name is of one class: there are
/// four billion.
fn code(reason: Reason) -> String {
    let name = format!("{reason:?}");
    if name.contains('(') { "unknown".into() } else { name.to_lowercase().replace('_', "-") }
}

/// A channel's plaintext as a stream of bytes.
struct Plaintext<'c> {
    worker: &'c Worker,
    channel: &'c mut Channel,
    shared: &'c Shared,
}

impl Plaintext<'_> {
    fn fail(&self, failed: Failed) -> io::Error {
        self.shared.keep(failed);
        io::ErrorKind::Other.into()
    }

    /// The first frame of a server is SETTINGS (RFC 9113, section 3.4). The library would take it for a frame of
    /// another length, or wait for the rest of it.
    fn check_first_frame(&self) -> io::Result<()> {
        /// Length and type, of which the fourth byte is the type (RFC 9113, section 4.1).
        const SETTINGS: Option<&u8> = Some(&4);
        if self.shared.greeted.replace(true) || self.channel.plaintext.get(3) == SETTINGS {
            return Ok(());
        }
        let begins = self.channel.plaintext.starts_with(b"HTTP/1");
        let spoken = if begins { "HTTP/1" } else { "something else" };
        let why = format!("the server has chosen HTTP/2 (ALPN h2) and speaks {spoken}");
        Err(self.fail(Failed::new(Class::NotHttp2, why)))
    }
}

impl AsyncRead for Plaintext<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        const FRAME_HEADER: usize = 9;
        let this = self.get_mut();
        let wanted = if this.shared.greeted.get() { 1 } else { FRAME_HEADER };
        let mut ended = this.channel.close_notify_received;
        while this.channel.plaintext.len() < wanted && !ended {
            let outcome = ready!(this.channel.poll_receive(cx, Step::Answer));
            ended = outcome.map_err(|failed| this.fail(failed))? != ReadOutcome::Bytes;
            if this.shared.received.get().is_none() {
                this.shared.received.set(Some(this.worker.now()));
            }
        }
        if !this.channel.plaintext.is_empty() {
            this.check_first_frame()?;
        }
        let count = buffer.remaining().min(this.channel.plaintext.len());
        buffer.put_slice(&this.channel.plaintext[..count]);
        this.channel.plaintext.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Plaintext<'_> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.channel.queued() > QUEUE_BYTES {
            let flushed = ready!(this.channel.poll_flush(cx, Then::Wait, Step::Answer));
            flushed.map_err(|failed| this.fail(failed))?;
        }
        this.channel.send(bytes).map_err(|failed| this.fail(failed))?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.shared.closing.get() {
            return Poll::Ready(Ok(()));
        }
        let flushed = ready!(this.channel.poll_flush(cx, Then::Wait, Step::Answer));
        Poll::Ready(flushed.map_err(|failed| this.fail(failed)))
    }

    /// Nothing: how the connection ends is not the library's to say.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
