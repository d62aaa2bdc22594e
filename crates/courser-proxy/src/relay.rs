//! Both directions until both have ended: ciphertext from the client becomes plaintext for the backend and the other
//! way round. A side that does not read stops the other side from being read (back-pressure); a side that ends ends
//! one direction only (half-close); while nothing moves, no buffer is held.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use courser_net::{Stream, Then};
use courser_telemetry::{End, EndReason};
use courser_tls::{Failure, FailureKind, ServerConnection, State};

use crate::announce::Announced;
use crate::backend::Connected;
use crate::buffers::{BUFFER_BYTES, Outbox};
use crate::connection::Client;
use crate::handshake::Secured;
use crate::settings::Host;

/// Reads in one direction before the other connections of the worker get their turn.
const ROUNDS: u32 = 16;

/// A connection whose relay is over.
pub(crate) struct Finished {
    pub(crate) client: Client,
    pub(crate) host: Arc<Host>,
    pub(crate) tls: Box<ServerConnection>,
    /// Ciphertext from the client that is no whole record yet.
    pub(crate) received: Vec<u8>,
    pub(crate) backend: Stream,
    /// Records that the client has not taken yet.
    pub(crate) to_client: Outbox,
    pub(crate) end: End,
}

/// Relays until the connection ends.
pub(crate) async fn relay(announced: Announced) -> Finished {
    let mut relay = Relay::new(announced);
    let end = poll_fn(|cx| relay.poll(cx)).await;
    let Relay { client, host, tls, received, backend, to_client, .. } = relay;
    Finished { client, host, tls, received, backend, to_client, end }
}

/// One direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    /// Bytes may come.
    Open,
    /// The last bytes have come; they and the end have to be passed on.
    Ending,
    /// The end was passed on.
    Ended,
}

struct Relay {
    client: Client,
    host: Arc<Host>,
    tls: Box<ServerConnection>,
    backend: Stream,
    /// Ciphertext from the client that is no whole record yet.
    received: Vec<u8>,
    to_backend: Outbox,
    to_client: Outbox,
    upward: Flow,
    downward: Flow,
    /// `to_client` holds nothing but session tickets, which may wait for the answer to what the client has asked.
    only_tickets: bool,
    /// The client's stream ended without close_notify.
    truncated: bool,
    /// Bytes were moved since the idle deadline was set.
    moved: bool,
}

impl Relay {
    fn new(announced: Announced) -> Self {
        let Announced { connected, to_backend, plaintext_bytes } = announced;
        let Connected { secured, backend } = connected;
        let Secured { mut client, host, tls, received, tickets, client_closed, .. } = secured;
        client.deadline.set(host.idle_timeout);
        client.account.bytes_in += plaintext_bytes; // said with the Finished
        Self {
            upward: if client_closed { Flow::Ending } else { Flow::Open },
            downward: Flow::Open,
            only_tickets: !tickets.is_empty(),
            to_client: tickets,
            truncated: false,
            moved: false,
            client,
            host,
            tls,
            backend,
            received,
            to_backend,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let both = self.poll_both(cx);
        if std::mem::take(&mut self.moved) {
            self.client.deadline.set(self.host.idle_timeout);
        }
        match both {
            Poll::Ready(Ok(())) => Poll::Ready(self.orderly_end().into()),
            Poll::Ready(Err(end)) => Poll::Ready(end),
            Poll::Pending => {
                self.settle();
                self.client.deadline.poll_expired(cx).map(|()| EndReason::IdleTimeout.into())
            }
        }
    }

    fn poll_both(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let upward = self.poll_upward(cx)?;
        let held = self.client_is_held();
        let downward = self.poll_downward(cx)?;
        if held && !self.client_is_held() {
            // What the client has sent meanwhile makes no new event.
            return yield_turn(cx);
        }
        if upward.is_ready() && downward.is_ready() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Whether the client is not read because it does not read: one that demands answers (key updates) could otherwise
    /// make us hold any number of them.
    fn client_is_held(&self) -> bool {
        self.to_client.pending().len() > BUFFER_BYTES
    }

    /// Client to backend.
    fn poll_upward(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..ROUNDS {
            ready!(self.poll_write_backend(cx))?;
            match self.upward {
                Flow::Open => ready!(self.poll_read_client(cx))?,
                Flow::Ending => {
                    if self.downward == Flow::Open {
                        self.backend.shutdown(); // otherwise both directions are over, and the close says so
                    }
                    self.upward = Flow::Ended;
                }
                Flow::Ended => return Poll::Ready(Ok(())),
            }
        }
        yield_turn(cx)
    }

    /// Backend to client.
    fn poll_downward(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        for _ in 0..ROUNDS {
            let more = self.poll_read_backend(cx)?;
            if self.only_tickets && self.client.account.bytes_in > 0 {
                return Poll::Pending;
            }
            ready!(self.poll_write_client(cx))?;
            match self.downward {
                Flow::Open => ready!(more),
                Flow::Ending => {
                    self.client.stream.shutdown();
                    self.downward = Flow::Ended;
                }
                Flow::Ended => return Poll::Ready(Ok(())),
            }
        }
        yield_turn(cx)
    }

    fn poll_read_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        if self.client_is_held() {
            return Poll::Pending;
        }
        let make_room = |bytes: &mut Vec<u8>| self.client.worker.buffers.make_room(bytes);
        match ready!(self.client.stream.poll_read(cx, &mut self.received, make_room)) {
            Ok(0) => Poll::Ready(self.client_truncated()),
            Ok(_) => Poll::Ready(self.open_records()),
            Err(_) => Poll::Ready(Err(EndReason::ClientReset.into())),
        }
    }

    fn open_records(&mut self) -> Result<(), End> {
        self.client.worker.buffers.make_room(&mut self.to_backend.bytes);
        let before = (self.to_backend.bytes.len(), self.to_client.bytes.len());
        let progress =
            self.tls.process(&mut self.received, &mut self.to_backend.bytes, &mut self.to_client.bytes);
        self.client.account.bytes_in += (self.to_backend.bytes.len() - before.0) as u64;
        self.only_tickets &= self.to_client.bytes.len() == before.1;
        self.moved = true;
        let progress = progress.map_err(bad_record)?;
        self.received.drain(..progress.consumed);
        if progress.state == State::PeerClosed {
            self.upward = Flow::Ending;
        }
        Ok(())
    }

    /// The client's stream has ended without close_notify. One that never carried a byte has nothing to be cut short.
    fn client_truncated(&mut self) -> Result<(), End> {
        self.upward = Flow::Ending;
        self.truncated = !self.is_silent();
        if !self.truncated {
            return Ok(());
        }
        let host = &self.host;
        let message = format_args!("host {}: a client's stream was cut short", host.name);
        self.client.worker.events.warn("truncated", message);
        if host.reset_truncated { Err(EndReason::Truncated.into()) } else { Ok(()) }
    }

    /// Both directions have ended.
    fn orderly_end(&self) -> EndReason {
        if self.truncated {
            EndReason::Truncated
        } else if self.is_silent() {
            EndReason::ClosedAfterHandshake
        } else {
            EndReason::Done
        }
    }

    /// Whether neither side has said anything.
    fn is_silent(&self) -> bool {
        self.client.account.bytes_in + self.client.account.bytes_out == 0
    }

    fn poll_write_backend(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        while !self.to_backend.is_empty() {
            match ready!(self.backend.poll_write(cx, self.to_backend.pending(), Then::Wait)) {
                Ok(written) => self.to_backend.advance(written),
                Err(_) => return Poll::Ready(Err(EndReason::BackendReset.into())),
            }
            self.moved = true;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and encrypts until the client's share of a write is full or nothing more is there, so that an answer and
    /// the end behind it leave together.
    fn poll_read_backend(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let mut read_some = false;
        while self.downward == Flow::Open && self.to_client.pending().len() < BUFFER_BYTES / 2 {
            let mut plaintext = Vec::new();
            let buffers = &self.client.worker.buffers;
            match self.backend.poll_read(cx, &mut plaintext, |bytes| buffers.make_room(bytes)) {
                Poll::Ready(Ok(0)) => self.end_downward()?,
                Poll::Ready(Ok(_)) => self.seal(&plaintext)?,
                Poll::Ready(Err(_)) => return Poll::Ready(Err(EndReason::BackendReset.into())),
                Poll::Pending if read_some => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
            self.client.worker.buffers.give(plaintext);
            read_some = true;
        }
        Poll::Ready(Ok(()))
    }

    fn seal(&mut self, plaintext: &[u8]) -> Result<(), End> {
        self.client.worker.buffers.make_room(&mut self.to_client.bytes);
        self.client.account.bytes_out += plaintext.len() as u64;
        self.only_tickets = false;
        self.moved = true;
        self.tls.send(plaintext, &mut self.received, &mut self.to_client.bytes).map_err(bad_record)
    }

    fn end_downward(&mut self) -> Result<(), End> {
        self.downward = Flow::Ending;
        self.only_tickets = false;
        self.tls.send_close_notify(&mut self.received, &mut self.to_client.bytes).map_err(bad_record)
    }

    fn poll_write_client(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let then = if self.downward == Flow::Ending { Then::Shutdown } else { Then::Wait };
        while !self.to_client.is_empty() {
            match ready!(self.client.stream.poll_write(cx, self.to_client.pending(), then)) {
                Ok(written) => self.to_client.advance(written),
                Err(_) => return Poll::Ready(Err(EndReason::ClientReset.into())),
            }
            self.moved = true;
        }
        self.only_tickets = false;
        Poll::Ready(Ok(()))
    }

    /// Gives back the buffers that are empty.
    fn settle(&mut self) {
        let buffers = &self.client.worker.buffers;
        buffers.settle(&mut self.received);
        self.to_backend.settle(buffers);
        self.to_client.settle(buffers);
    }
}

/// The others' turn; this connection goes on after them.
fn yield_turn<T>(cx: &Context<'_>) -> Poll<T> {
    cx.waker().wake_by_ref();
    Poll::Pending
}

fn bad_record(failure: Failure) -> End {
    let reason = match failure.kind {
        FailureKind::AlertReceived => EndReason::ClientAlert,
        FailureKind::Internal => EndReason::Internal,
        FailureKind::Incompatible
        | FailureKind::Certificate
        | FailureKind::NoCertificate
        | FailureKind::FalseResumption
        | FailureKind::NotTls
        | FailureKind::Protocol => EndReason::BadRecord,
    };
    End::with(reason, failure.detail)
}
