//! The handshake itself, under the deadline that began with the connection.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use courser_net::Then;
use courser_overload::Class;
use courser_session::{Provenance, ResumptionFailure};
use courser_telemetry::metrics::{Combination, Metric, RESUMPTION_FAILURES, cpu_series};
use courser_telemetry::{Close, CloseReason, Counters, Resumption};
use courser_tls::{Failure, FailureKind, HandshakeInfo, KeyKind, ServerConnection, State};
use courser_wire::alert::Description;

use crate::account::Account;
use crate::buffers::{Inbox, Outbox};
use crate::client::{Client, EarlyClose, alert};
use crate::gates;
use crate::handshake_budget::{Decision, Stage};
use crate::resume::{self, Planned};
use crate::settings::Forwarding;
use crate::side::Side;

/// A connection that may go on to a backend: after its handshake, or as it came where the handshake is the backend's.
pub(crate) struct Secured {
    pub(crate) client: Client,
    pub(crate) forwarding: Arc<Forwarding>,
    /// With TLS 1.3 tickets, which no client waits for: they leave with the first answer, or before the first wait.
    pub(crate) side: Side,
    /// Plaintext that came with the handshake; of a relay, what has come so far.
    pub(crate) plaintext: Vec<u8>,
    /// Whether the client has sent close_notify.
    pub(crate) client_closed: bool,
}

impl Secured {
    /// Ends the connection; the client gets a clean close, or before its handshake an alert.
    pub(crate) fn close_with_notify(mut self, close: impl Into<Close>) -> Box<EarlyClose> {
        if self.side.is_plain() {
            return self.client.close_with(close, alert(Description::InternalError));
        }
        // A connection that can no longer write has nothing to say.
        let _ = self.side.end();
        self.client.close_with(close, std::mem::take(&mut self.side.outbox.bytes))
    }
}

pub(crate) async fn handshake(planned: Planned) -> Result<Secured, Box<EarlyClose>> {
    let Planned { mut client, mut received, host, selection, plan, offered } = planned;
    let may_know = offered.is_some();
    let class = gates::enter(&client, |until| may_know && resume::has_session(&mut received, &host, until));
    if let Err(end) = begin(&client, class).await {
        received.discard(&client.worker.buffers);
        return Err(client.close_silently(end));
    }
    let tls = match ServerConnection::new(&host.tls, selection.group, selection.order, plan) {
        Ok(tls) => Box::new(tls),
        Err(failure) => {
            return Err(client.close_silently(Close::with(CloseReason::Internal, failure.to_string())));
        }
    };
    let mut io = HandshakeIo { tls, received, plaintext: Vec::new(), out: Outbox::default(), spent: 0 };
    let ended = io.run(&client).await;
    gates::charge(&client, Duration::from_nanos(io.spent.into()));
    match ended {
        Ok(state) => {
            record_handshake(&mut client, &mut io.tls, offered, io.spent);
            let HandshakeIo { tls, received, plaintext, out, .. } = io;
            let client_closed = state == State::PeerClosed;
            let forwarding = Arc::clone(&host.forwarding);
            Ok(Secured { client, forwarding, side: Side::tls(tls, received, out), plaintext, client_closed })
        }
        Err(end) => {
            delete_session_on_alert(&client, &mut io.tls, &end);
            count_time(&client.account, None, io.spent);
            io.received.discard(&client.worker.buffers);
            Err(client.close_with(end, io.out.pending()))
        }
    }
}

/// A handshake that nothing follows. Returns how it has ended, and the last bytes for the client: close_notify, or an alert.
pub(crate) async fn alone(
    client: &Client,
    received: Inbox,
    tls: Box<ServerConnection>,
) -> (Result<(), Close>, Vec<u8>) {
    let mut io = HandshakeIo { tls, received, plaintext: Vec::new(), out: Outbox::default(), spent: 0 };
    let ended = match begin(client, gates::enter(client, |_| false)).await {
        Ok(()) => io.run(client).await.map(drop),
        Err(end) => Err(end),
    };
    gates::charge(client, Duration::from_nanos(io.spent.into()));
    if ended.is_ok() {
        // One that has failed has sent its alert.
        let _ = io.tls.send_close_notify(io.received.bytes(), &mut io.out.bytes);
    }
    io.received.discard(&client.worker.buffers);
    (ended, io.out.pending().to_vec())
}

/// A handshake with the bytes that go in and out of it.
struct HandshakeIo {
    tls: Box<ServerConnection>,
    received: Inbox,
    plaintext: Vec<u8>,
    out: Outbox,
    /// Nanoseconds of processing; four seconds at most.
    spent: u32,
}

impl HandshakeIo {
    /// Alternates between processing, sending and receiving until application data may flow.
    async fn run(&mut self, client: &Client) -> Result<State, Close> {
        let buffers = &client.worker.buffers;
        loop {
            let (state, spent) = client.worker.handshake_budget.charge(|| self.process());
            self.spent = self.spent.saturating_add(spent.as_nanos().try_into().unwrap_or(u32::MAX));
            let state = state?;
            self.received.settle(buffers);
            if state == State::Handshaking || !self.tls.is_tls13() {
                self.send(client).await?;
            }
            if state != State::Handshaking {
                return Ok(state);
            }
            self.receive(client).await?;
            admit(client, Stage::Begun).await?;
        }
    }

    fn process(&mut self) -> Result<State, Close> {
        let Self { tls, received, plaintext, out, .. } = self;
        let progress = tls.process(received.bytes(), plaintext, &mut out.bytes).map_err(close_of)?;
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

/// Waits for the client's turn to begin. Who is sent away, or has left, has cost no handshake.
async fn begin(client: &Client, class: Result<Class, Close>) -> Result<(), Close> {
    admit(client, Stage::New(class?)).await?;
    gates::begin(client)
}

/// Waits for the handshake budget, under the deadline.
async fn admit(client: &Client, stage: Stage) -> Result<(), Close> {
    if client.worker.handshake_budget.admit(stage).await == Decision::Shed {
        return Err(gates::expired(client));
    }
    poll_fn(|cx| match client.deadline.poll_expired(cx) {
        Poll::Ready(()) => Poll::Ready(Err(CloseReason::HandshakeTimeout.into())),
        Poll::Pending => Poll::Ready(Ok(())),
    })
    .await
}

fn poll_timeout<T>(client: &Client, cx: &mut Context<'_>) -> Poll<Result<T, Close>> {
    client.deadline.poll_expired(cx).map(|()| Err(CloseReason::HandshakeTimeout.into()))
}

fn close_of(failure: Failure) -> Close {
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

/// A client may send a fatal alert right behind its Finished.
fn delete_session_on_alert(client: &Client, tls: &mut ServerConnection, end: &Close) {
    let facts = tls.finish_handshake().filter(|_| end.reason == CloseReason::ClientAlert);
    client.delete_session(facts.as_ref());
}

fn record_handshake(
    client: &mut Client,
    tls: &mut ServerConnection,
    offered: Option<Resumption>,
    spent: u32,
) {
    let worker = Rc::clone(&client.worker);
    let account = &mut client.account;
    account.secured();
    let Some(mut facts) = tls.finish_handshake() else { return };
    if let (Some(made), Some(remote)) = (facts.new_session.take(), &worker.remote_sessions) {
        remote.replicate(made);
    }
    // Where no tickets are given out, a client that would take one comes back with a session ID that, beforehand,
    // looks like the random one of a client that has no session.
    let by = offered.unwrap_or(if tls.is_tls13() { Resumption::Psk } else { Resumption::SessionId });
    let by = if facts.resumed { by } else { Resumption::Full };
    let miss =
        facts.resumption_failure.or(offered.map(|_| ResumptionFailure::NotFound)).filter(|_| !facts.resumed);
    count(&worker.counters, by, &facts, miss);
    count_negotiated(account, by, &facts);
    count_time(account, Some(by), spent);
    account.session = Some(by);
    account.not_resumed = miss.map(ResumptionFailure::name);
    account.handshake = Some(Box::new(facts));
}

fn count(counters: &Counters, by: Resumption, facts: &HandshakeInfo, miss: Option<ResumptionFailure>) {
    const { assert!(ResumptionFailure::ALL.len() == RESUMPTION_FAILURES) };
    if let Some(miss) = miss {
        counters.count(Metric::ResumptionFailures, miss as usize);
    }
    let is_remote = || facts.session.is_some_and(|session| session.provenance == Provenance::Remote);
    if by == Resumption::SessionId && is_remote() {
        counters.count(Metric::RemoteSessions, 0);
    }
}

fn count_negotiated(account: &Account, by: Resumption, facts: &HandshakeInfo) {
    let (group, scheme) = (facts.group.unwrap_or_default(), facts.scheme.unwrap_or_default());
    account.counters().negotiated(Combination { suite: facts.suite, group, scheme });
    if let Some(host) = &account.host {
        host.counters.done(account.worker_index(), by, facts.version);
    }
}

/// `by`: `None` where the handshake has failed.
fn count_time(account: &Account, by: Option<Resumption>, nanos: u32) {
    let Some(identity) = &account.identity else { return };
    let key = match identity.kind {
        KeyKind::EcdsaP256 => 0,
        KeyKind::EcdsaP384 => 1,
        KeyKind::EcdsaP521 => 2,
        KeyKind::Ed25519 => 3,
        KeyKind::Rsa => 4,
    };
    account.add_time(cpu_series(by, key), (u64::from(nanos) + 500) / 1000);
}
