//! Both directions until both have ended: plaintext goes from one [`Side`] to the other. A side that does not read stops
//! the other side from being read (back-pressure); a side that ends ends one direction only (half-close); a backend that
//! takes no more may still answer; while nothing moves, no buffer is held.

mod limits;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use courser_net::Then;
use courser_telemetry::{Close, CloseReason};
use courser_tls::{Failure, FailureKind};

use crate::backend::{Connected, count_failure};
use crate::backend_handshake::{SecuredBackend, close_of_record};
use crate::buffers::BUFFER_BYTES;
use crate::client::Client;
use crate::clock::since_start;
use crate::handshake::Secured;
use crate::proxy_header::HeaderSent;
use crate::request::Request;
use crate::settings::Forwarding;
use crate::side::{After, Records, Side};
use limits::{Limits, Wait};

/// Reads in one direction before the other connections of the worker go on.
const ROUNDS: u32 = 16;

/// Time for one connection's reads in an iteration of the event loop: as much as handshakes have. The first read from a client and
/// the first two from a backend are free. A client's may be 68 KiB of records of one byte, and costs thirty times one of full
/// records.
const BUDGET: Duration = Duration::from_millis(1);

pub(crate) struct Finished {
    pub(crate) client: Client,
    pub(crate) client_side: Side,
    pub(crate) backend: Request,
    pub(crate) backend_side: Side,
    pub(crate) close: Close,
}

pub(crate) async fn pipe(header_sent: HeaderSent) -> Finished {
    let mut pipe = Pipe::new(header_sent);
    let close = poll_fn(|cx| pipe.poll(cx)).await;
    let Pipe { client, client_side, backend, backend_side, .. } = pipe;
    Finished { client, client_side, backend, backend_side, close }
}

/// One direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Bytes may come.
    Open,
    /// The last bytes have come; they and the end have to be passed on.
    Closing,
    /// The end was passed on.
    Ended,
}

struct Pipe {
    client: Client,
    forwarding: Arc<Forwarding>,
    client_side: Side,
    backend: Request,
    backend_side: Side,
    upward: Flow,
    downward: Flow,
    /// The backend takes no more: why it could not be written to. What the client still sends is thrown away.
    backend_write_error: Option<io::ErrorKind>,
    /// Why the backend's answer may be cut short.
    cut: Option<Box<Close>>,
    /// The client's stream ended without close_notify.
    truncated: bool,
    limits: Limits,
    /// When the reads of this iteration began to count.
    reads_since: Option<Instant>,
    /// What is gathered for the client before it is written.
    records: Records,
}

impl Pipe {
    fn new(header_sent: HeaderSent) -> Self {
        let HeaderSent { connected, to_backend, plaintext_bytes } = header_sent;
        let Connected { secured, backend } = connected;
        let Secured { mut client, forwarding, side: client_side, client_closed, .. } = secured;
        client.account.bytes_in += plaintext_bytes; // came with the Finished
        let (mut backend, tls) = Request::new(backend);
        if plaintext_bytes > 0 {
            backend.begun();
        }
        let mut pipe = Self {
            upward: if client_closed { Flow::Closing } else { Flow::Open },
            downward: Flow::Open,
            backend_write_error: None,
            cut: None,
            truncated: false,
            limits: Limits::new(&forwarding, &client),
            reads_since: None,
            records: Records::FIRST,
            client,
            forwarding,
            client_side,
            backend,
            backend_side: Side::plain(to_backend),
        };
        if let Some(secured) = tls {
            pipe.begin_tls(*secured);
        }
        if client_closed {
            let _ = pipe.backend_side.end(); // one that cannot end cannot be written to either
        }
        pipe
    }

    /// What has come from both sides so far goes through the backend's TLS.
    fn begin_tls(&mut self, secured: SecuredBackend) {
        let SecuredBackend { side, plaintext, has_closed } = secured;
        let buffers = &self.client.worker.buffers;
        let first = std::mem::replace(&mut self.backend_side, side).outbox;
        // A side that cannot be written to fails again at its next bytes, which are then told.
        let _ = self.backend_side.write(buffers, |bytes| bytes.extend_from_slice(first.pending()));
        if !plaintext.is_empty() {
            let _ = self.client_side.write(buffers, |bytes| bytes.extend_from_slice(&plaintext));
            self.count_answer(plaintext.len());
        }
        if has_closed {
            self.downward = Flow::Closing;
            let _ = self.client_side.end();
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Close> {
        self.reads_since = None;
        // Before anything moves: bytes that move move the deadline as well.
        if limits::is_too_old(&self.forwarding, &self.client) {
            return Poll::Ready(self.expired());
        }
        match self.poll_both(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(self.orderly_close()),
            Poll::Ready(Err(end)) => Poll::Ready(end),
            Poll::Pending => {
                self.limits.move_deadline(self.wait(), &self.forwarding, &self.client);
                self.settle();
                ready!(self.limits.poll_deadline(&self.forwarding, &self.client, &self.backend, cx));
                Poll::Ready(self.expired())
            }
        }
    }

    fn wait(&self) -> Wait {
        match (self.upward, self.downward) {
            (Flow::Open, Flow::Open) if self.backend_write_error.is_none() => Wait::Byte,
            (_, Flow::Open) => Wait::BackendEnd,
            _ => Wait::ClientEnd,
        }
    }

    /// Why the connection ends when its time is over.
    fn expired(&mut self) -> Close {
        if let Some(cut) = self.cut.take() {
            return *cut;
        }
        let reason = match self.limits.wait {
            _ if limits::is_too_old(&self.forwarding, &self.client) => CloseReason::MaxConnectionAge,
            Wait::Byte => CloseReason::IdleTimeout,
            Wait::BackendEnd if self.backend_write_error.is_some() => CloseReason::BackendReset,
            Wait::BackendEnd => CloseReason::ClientFinTimeout,
            Wait::ClientEnd => CloseReason::BackendFinTimeout,
        };
        reason.into()
    }

    fn poll_both(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        let upward = self.poll_upward(cx)?;
        let held = self.client_is_paused();
        let downward = self.poll_downward(cx)?;
        if upward.is_pending() && !self.backend_side.outbox.is_empty() {
            // An answer of TLS to what the backend has sent.
            let _ = self.poll_write_backend(cx);
        }
        if held && !self.client_is_paused() {
            // What the client has sent meanwhile makes no new event.
            return yield_to_others(cx);
        }
        let upward_is_over = upward.is_ready() || self.backend_write_error.is_some();
        if upward_is_over && downward.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Whether the client is not read because it does not read: one that demands answers (key updates) could otherwise
    /// make us hold any number of them.
    fn client_is_paused(&self) -> bool {
        self.client_side.outbox.pending().len() > BUFFER_BYTES
    }

    fn poll_upward(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        for round in 0..ROUNDS {
            if round > 0 && self.has_spent_budget() {
                break;
            }
            ready!(self.poll_write_backend(cx));
            match self.upward {
                Flow::Open => ready!(self.poll_read_client(cx))?,
                Flow::Closing => {
                    if self.downward == Flow::Open {
                        self.backend.end();
                    } else {
                        self.backend.complete(); // both directions are over, and the close says so
                    }
                    self.upward = Flow::Ended;
                }
                Flow::Ended => return Poll::Ready(Ok(())),
            }
        }
        yield_to_others(cx)
    }

    fn poll_downward(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        for round in 0..ROUNDS {
            if round > 1 && self.has_spent_budget() {
                break;
            }
            let more = self.poll_read_backend(cx)?;
            if self.can_wait_for_answer() {
                return Poll::Pending;
            }
            ready!(self.poll_write_client(cx))?;
            match self.downward {
                Flow::Open => ready!(more),
                Flow::Closing => {
                    self.client.stream.shutdown();
                    self.downward = Flow::Ended;
                }
                Flow::Ended => return Poll::Ready(Ok(())),
            }
        }
        yield_to_others(cx)
    }

    /// Whether this connection's reads have taken their time. The first are free: most iterations have no more, and the
    /// clock costs more than a look at an empty socket.
    fn has_spent_budget(&mut self) -> bool {
        self.reads_since.get_or_insert_with(Instant::now).elapsed() > BUDGET
    }

    /// Whether what waits for the client may leave with the answer to what it has asked.
    fn can_wait_for_answer(&self) -> bool {
        self.downward == Flow::Open && self.client.account.bytes_in > 0 && self.client_side.can_wait()
    }

    fn poll_read_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        if self.client_is_paused() {
            return Poll::Pending;
        }
        let Self { client, client_side, backend_side, .. } = self;
        let Client { stream, worker, account, .. } = client;
        let buffers = &worker.buffers;
        let (read, bytes) = backend_side
            .poll_take(client_side, stream, Records::FEW, buffers, cx)
            .map_err(close_of_record)?;
        let read = ready!(read);
        self.limits.moved = true;
        if bytes > 0 {
            account.bytes_in += bytes as u64;
            self.backend.begun();
        }
        match read.map_err(bad_record)? {
            After::Open => {}
            After::End => {
                self.upward = Flow::Closing;
                self.backend_side.end().map_err(close_of_record)?;
            }
            After::Truncation => self.client_truncated()?,
            After::Reset => return Poll::Ready(Err(CloseReason::ClientReset.into())),
        }
        Poll::Ready(Ok(()))
    }

    /// The client's stream has ended without close_notify. One that never carried a byte has nothing to be cut short.
    fn client_truncated(&mut self) -> Result<(), Close> {
        self.upward = Flow::Closing;
        self.truncated = !self.has_moved_nothing();
        if !self.truncated {
            return Ok(());
        }
        let message = format_args!("{}: a client's stream was cut short", self.client.account.served_as());
        self.client.worker.events.warn("truncated", message);
        if self.forwarding.reset_truncated { Err(CloseReason::Truncated.into()) } else { Ok(()) }
    }

    /// Both directions have ended.
    fn orderly_close(&mut self) -> Close {
        let cut = self.cut.take();
        // What a backend makes of a request without its end is no reason of its own.
        let is_answer = |cut: &Close| self.truncated && cut.reason != CloseReason::BackendReset;
        if let Some(cut) = cut {
            if is_answer(&cut) { CloseReason::Truncated.into() } else { *cut }
        } else if self.backend_write_error.is_some() {
            CloseReason::BackendClosedEarly.into()
        } else if self.truncated {
            CloseReason::Truncated.into()
        } else if self.has_moved_nothing() {
            CloseReason::ClosedAfterHandshake.into()
        } else {
            CloseReason::Done.into()
        }
    }

    /// Whether no byte of plaintext has come from either side.
    fn has_moved_nothing(&self) -> bool {
        self.client.account.bytes_in + self.client.account.bytes_out == 0
    }

    /// A backend that takes no more may have sent the reason, and closed: what it has sent is still read and delivered. Until
    /// then the client is read too, as many send all before they listen.
    fn poll_write_backend(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let outbox = &mut self.backend_side.outbox;
        while !outbox.is_empty() {
            if self.backend_write_error.is_none() {
                match ready!(self.backend.poll_write(cx, outbox.pending(), Then::Wait)) {
                    Ok(written) => {
                        outbox.advance(written);
                        self.limits.delivered = true;
                        continue;
                    }
                    Err(error) => {
                        self.backend_write_error = Some(error.kind());
                        self.backend.cut();
                    }
                }
            }
            outbox.clear();
        }
        Poll::Ready(())
    }

    /// Reads until the client's share of a write is full or nothing more is there, so that an answer and the end behind
    /// it leave together.
    fn poll_read_backend(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        let mut read_some = false;
        while self.downward == Flow::Open
            && self.client_side.outbox.pending().len() < self.records.plaintext()
        {
            let Self { client, client_side, backend, backend_side, records, .. } = self;
            let buffers = &client.worker.buffers;
            let (read, bytes) =
                client_side.poll_take(backend_side, backend, *records, buffers, cx).map_err(bad_record)?;
            let read = match read {
                Poll::Ready(read) => read,
                Poll::Pending if read_some => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            };
            if bytes > 0 {
                self.count_answer(bytes);
            }
            match read {
                Ok(After::Open) => {}
                // The kernel reports the reset that a write has met once: the end of the stream that follows is none.
                Ok(After::End)
                    if self.backend_write_error.is_none_or(|why| why == io::ErrorKind::BrokenPipe) =>
                {
                    self.downward = Flow::Closing;
                    self.client_side.end().map_err(bad_record)?;
                }
                Ok(After::Truncation) => self.cut_downward(CloseReason::BackendTruncated),
                Ok(_) => self.cut_downward(CloseReason::BackendReset),
                Err(failure) => {
                    // The alert that says why.
                    let _ = self.poll_write_backend(cx);
                    self.cut_downward(close_of_record(failure));
                }
            }
            read_some = true;
        }
        Poll::Ready(Ok(()))
    }

    fn count_answer(&mut self, bytes: usize) {
        self.client.account.bytes_out += bytes as u64;
        self.client.account.answered();
        self.backend.has_sent();
        if self.client.account.relay.is_some() {
            self.learn_session(bytes);
        }
        // An answer to what the backend has not got yet is not the last word.
        if self.backend_side.outbox.is_empty() {
            self.backend.answered();
        }
        self.limits.moved = true;
    }

    /// The server of a relay says whose the session is in its first bytes; so many have just come.
    fn learn_session(&mut self, bytes: usize) {
        let (sessions, offered) = (&self.forwarding.pool.sessions, &mut self.client.account.offered);
        if let (Some(sessions), Some(offered)) = (sessions, offered) {
            let pending = self.client_side.outbox.pending();
            let sent = &pending[pending.len().saturating_sub(bytes)..];
            offered.session.learn(sent, sessions, self.backend.server(), since_start());
        }
    }

    /// What the backend has sent is delivered, but not its end: the client can tell that it may not be the whole.
    fn cut_downward(&mut self, why: impl Into<Close>) {
        if let Some(server) = self.backend.silent_server() {
            let worker = &self.client.worker;
            if let Some(time) = count_failure(worker, &self.forwarding, server) {
                let (name, seconds) = (&server.name, time.as_secs());
                let why =
                    format_args!("backend {name}: ejected for {seconds} s: it resets before its first byte");
                worker.events.warn("backend", why);
            }
        }
        self.downward = Flow::Closing;
        self.cut = Some(Box::new(why.into()));
        self.backend_write_error.get_or_insert(io::ErrorKind::ConnectionReset);
    }

    fn poll_write_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Close>> {
        let then = if self.downward == Flow::Closing { Then::Shutdown } else { Then::Wait };
        let outbox = &mut self.client_side.outbox;
        while !outbox.is_empty() {
            match ready!(self.client.stream.poll_write(cx, outbox.pending(), then)) {
                Ok(written) => {
                    outbox.advance(written);
                    self.records = self.records.after_write(written, self.client.account.bytes_out);
                }
                Err(_) => return Poll::Ready(Err(CloseReason::ClientReset.into())),
            }
            self.limits.delivered = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Gives back the buffers that are empty.
    fn settle(&mut self) {
        let buffers = &self.client.worker.buffers;
        self.client_side.settle(buffers);
        self.backend_side.settle(buffers);
    }
}

/// Lets the others go on; this connection follows after them, and after the event loop has looked for events: a task that just
/// wakes itself comes back up to 60 times before.
fn yield_to_others<T>(cx: &mut Context<'_>) -> Poll<T> {
    let _ = pin!(tokio::task::yield_now()).poll(cx);
    Poll::Pending
}

fn bad_record(failure: Failure) -> Close {
    let reason = match failure.kind {
        FailureKind::AlertReceived => CloseReason::ClientAlert,
        FailureKind::Internal => CloseReason::Internal,
        FailureKind::Incompatible
        | FailureKind::Certificate
        | FailureKind::NoCertificate
        | FailureKind::FalseResumption
        | FailureKind::NotTls
        | FailureKind::Protocol => CloseReason::BadRecord,
    };
    Close::with(reason, failure.detail)
}
