//! The handshake itself, under the deadline that began with the connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_net::Then;
use courser_session::ResumptionFailure;
use courser_telemetry::{Close, CloseReason, Resumption};
use courser_tls::{Failure, FailureKind, ServerConnection, State};

use crate::buffers::{Inbox, Outbox};
use crate::connection::{Client, EarlyClose};
use crate::resume::Planned;
use crate::settings::VirtualHost;

/// A connection with a finished handshake.
pub(crate) struct Secured {
    pub(crate) client: Client,
    pub(crate) host: Arc<VirtualHost>,
    pub(crate) tls: Box<ServerConnection>,
    /// Records that are not complete yet.
    pub(crate) received: Inbox,
    /// What the client has said already.
    pub(crate) plaintext: Vec<u8>,
    /// TLS 1.3 tickets, which no client waits for: they leave with the first answer, or before the first wait.
    pub(crate) tickets: Outbox,
    /// Whether the client has said already that nothing more comes.
    pub(crate) client_closed: bool,
}

impl Secured {
    /// Ends the connection; the client gets a clean close.
    pub(crate) fn final_bytes(mut self, end: impl Into<Close>) -> Box<EarlyClose> {
        let mut bytes = self.tickets.bytes;
        // A connection that can no longer write has nothing to say.
        let _ = self.tls.send_close_notify(self.received.bytes(), &mut bytes);
        self.client.ending(end, bytes)
    }
}

/// Runs the handshake.
pub(crate) async fn handshake(primed: Planned) -> Result<Secured, Box<EarlyClose>> {
    let Planned { mut client, received, host, choice, plan, offered } = primed;
    let tls = match ServerConnection::new(&host.terms, choice.group, choice.order, plan) {
        Ok(tls) => Box::new(tls),
        Err(failure) => return Err(client.gone(Close::with(CloseReason::Internal, failure.to_string()))),
    };
    let mut exchange = HandshakeIo { tls, received, plaintext: Vec::new(), out: Outbox::default() };
    match exchange.run(&client).await {
        Ok(state) => {
            note_facts(&mut client, &mut exchange.tls, offered);
            let HandshakeIo { tls, received, plaintext, out } = exchange;
            let client_closed = state == State::PeerClosed;
            Ok(Secured { client, host, tls, received, plaintext, tickets: out, client_closed })
        }
        Err(end) => {
            forget_session(&client, &mut exchange.tls, &end);
            exchange.received.discard(&client.worker.buffers);
            Err(client.ending(end, exchange.out.pending()))
        }
    }
}

/// The handshake's moving parts.
struct HandshakeIo {
    tls: Box<ServerConnection>,
    received: Inbox,
    plaintext: Vec<u8>,
    out: Outbox,
}

impl HandshakeIo {
    /// Alternates between processing, sending and receiving until application data may flow.
    async fn run(&mut self, client: &Client) -> Result<State, Close> {
        let buffers = &client.worker.buffers;
        loop {
            admit(client).await?;
            let state = client.worker.turn.charge(|| self.process())?;
            self.received.settle(buffers);
            if state == State::Handshaking || !self.tls.is_tls13() {
                self.send(client).await?;
            }
            if state != State::Handshaking {
                return Ok(state);
            }
            self.receive(client).await?;
        }
    }

    fn process(&mut self) -> Result<State, Close> {
        let Self { tls, received, plaintext, out } = self;
        let progress = tls.process(received.bytes(), plaintext, &mut out.bytes).map_err(failed)?;
        received.consume(progress.consumed);
        Ok(progress.state)
    }

    async fn send(&mut self, client: &Client) -> Result<(), Close> {
        poll_fn(|cx| {
            while !self.out.is_empty() {
                match client.stream.poll_write(cx, self.out.pending(), Then::Wait) {
                    Poll::Ready(Ok(written)) => self.out.advance(written),
                    Poll::Ready(Err(_)) => return Poll::Ready(Err(CloseReason::ClientReset.into())),
                    Poll::Pending => return poll_timeout(client, cx),
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    async fn receive(&mut self, client: &Client) -> Result<(), Close> {
        poll_fn(|cx| match self.received.poll_read(&client.stream, &client.worker.buffers, cx) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(CloseReason::ClosedInHandshake.into())),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(CloseReason::ClientReset.into())),
            Poll::Pending => poll_timeout(client, cx),
        })
        .await
    }
}

/// Waits for the turn's budget, under the deadline.
async fn admit(client: &Client) -> Result<(), Close> {
    client.worker.turn.admit().await;
    poll_fn(|cx| match client.deadline.poll_expired(cx) {
        Poll::Ready(()) => Poll::Ready(Err(CloseReason::HandshakeTimeout.into())),
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await
}

fn poll_timeout<T>(client: &Client, cx: &mut Context<'_>) -> Poll<Result<T, Close>> {
    client.deadline.poll_expired(cx).map(|()| Err(CloseReason::HandshakeTimeout.into()))
}

fn failed(failure: Failure) -> Close {
    let reason = match failure.kind {
        FailureKind::AlertReceived => CloseReason::ClientAlert,
        FailureKind::Internal => CloseReason::Internal,
        FailureKind::NoCertificate => CloseReason::NoClientCertificate,
        FailureKind::Certificate => CloseReason::BadClientCertificate,
        FailureKind::Incompatible
        | FailureKind::FalseResumption
        | FailureKind::NotTls
        | FailureKind::Protocol => CloseReason::HandshakeFailed,
    };
    Close::with(reason, failure.detail)
}

/// A client may say right behind its Finished that it ends the connection with an error.
fn forget_session(client: &Client, tls: &mut ServerConnection, end: &Close) {
    let facts = tls.finish_handshake().filter(|_| end.reason == CloseReason::ClientAlert);
    client.delete_session(facts.as_ref());
}

fn note_facts(client: &mut Client, tls: &mut ServerConnection, offered: Option<Resumption>) {
    let worker = Rc::clone(&client.worker);
    let account = &mut client.account;
    account.secured();
    let Some(mut facts) = tls.finish_handshake() else { return };
    if let (Some(made), Some(exchange)) = (facts.made.take(), &worker.exchange) {
        exchange.replicate(made);
    }
    // Where no tickets are given out, a client that would take one comes back with a session ID that, beforehand,
    // looks like the random one of a client that has no session.
    let by = offered.unwrap_or(if tls.is_tls13() { Resumption::Psk } else { Resumption::SessionId });
    let by = if facts.resumed { by } else { Resumption::Full };
    let miss = facts.miss.or(offered.map(|_| ResumptionFailure::NotFound)).filter(|_| !facts.resumed);
    worker.counters.handshake(by, &facts, miss);
    account.session = Some(by);
    account.miss = miss.map(ResumptionFailure::name);
    account.facts = Some(Box::new(facts));
}
