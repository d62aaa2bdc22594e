//! The TLS handshake with a backend, where its pool has TLS: after the PROXY header, before any byte of the client's, and
//! under the deadline of the attempt to connect.
//!
//! A backend that fails it has failed the attempt: it counts against its health, and another one is tried. Nothing is ever
//! tried without verification.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};

use courser_net::{Stream, Then};
use courser_telemetry::connection::BackendHandshake;
use courser_telemetry::metrics::Metric;
use courser_telemetry::{Close, CloseReason};
use courser_tls::{BackendConnection, BackendTls, Failure, FailureKind, State};

use crate::buffers::{Inbox, Outbox};
use crate::client::Client;
use crate::handshake_budget::Stage;
use crate::proxy_header::write;
use crate::settings::Forwarding;
use crate::side::Side;

/// A backend after its handshake.
pub(crate) struct SecuredBackend {
    /// With the handshake's last message, which the backend waits for: it leaves with the first plaintext.
    pub(crate) side: Side,
    /// Plaintext that came with the handshake.
    pub(crate) plaintext: Vec<u8>,
    /// Whether the backend has sent close_notify.
    pub(crate) has_closed: bool,
}

/// Sends the PROXY header and makes the handshake, whose end is the first of an answer, the deadline and the client's own
/// end. The inner error is the backend's, the outer one ends the connection.
pub(crate) async fn secure(
    client: &mut Client,
    forwarding: &Forwarding,
    tls: &BackendTls,
    stream: &Stream,
) -> Result<Result<Box<SecuredBackend>, Close>, Close> {
    let header = match write::header(client, forwarding) {
        Ok(header) => header,
        Err(unwritable) => return Err(Close::with(CloseReason::Internal, unwritable.to_string())),
    };
    let alpn = client.account.handshake.as_deref().and_then(|info| info.alpn.as_deref());
    let tls = match tls.connect(client.account.sni.as_deref(), alpn) {
        Ok(tls) => Box::new(tls),
        Err(failure) => return Err(Close::with(CloseReason::Internal, failure.to_string())),
    };
    let mut out = Outbox::default();
    out.bytes = header;
    let mut io = BackendIo { tls, received: Inbox::default(), plaintext: Vec::new(), out };
    match io.run(client, stream).await {
        Ok(state) => {
            record(client, &mut io.tls);
            let BackendIo { tls, received, plaintext, out } = io;
            let has_closed = state == State::PeerClosed;
            Ok(Ok(Box::new(SecuredBackend {
                side: Side::backend(tls, received, out),
                plaintext,
                has_closed,
            })))
        }
        Err(Stop::Client(close)) => Err(close),
        Err(Stop::Backend(close)) => {
            // The alert, if there is one, for whoever looks into the backend's log.
            let _ = poll_fn(|cx| Poll::Ready(io.poll_send(stream, cx))).await;
            client.worker.counters.count(Metric::BackendHandshakes, BackendHandshake::Failed as usize);
            Ok(Err(close))
        }
    }
}

/// Whose fault it is that a handshake does not go on.
enum Stop {
    Client(Close),
    Backend(Close),
}

impl Stop {
    fn backend(detail: &str) -> Self {
        Self::Backend(Close::with(CloseReason::BackendHandshakeFailed, detail))
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::backend(&format!("no TLS: {error}"))
    }
}

/// A handshake with the bytes that go in and out of it.
struct BackendIo {
    tls: Box<BackendConnection>,
    received: Inbox,
    plaintext: Vec<u8>,
    out: Outbox,
}

impl BackendIo {
    /// Alternates between processing, sending and receiving until application data may flow.
    async fn run(&mut self, client: &Client, stream: &Stream) -> Result<State, Stop> {
        self.refuse_early_bytes(client, stream).await?;
        loop {
            client.worker.handshake_budget.admit(Stage::Begun).await;
            let (state, _) = client.worker.handshake_budget.charge(|| self.process());
            let state = state?;
            self.received.settle(&client.worker.buffers);
            if state != State::Handshaking {
                return Ok(state);
            }
            poll_fn(|cx| match self.poll_send(stream, cx) {
                Poll::Pending => poll_stop(client, cx),
                Poll::Ready(sent) => Poll::Ready(sent.map_err(Stop::from)),
            })
            .await?;
            self.receive(client, stream).await?;
        }
    }

    /// Bytes that are there before the ClientHello has left were written without TLS, by whoever could: what a proxy reads
    /// on as the beginning of an answer (nginx, CVE-2026-1642).
    async fn refuse_early_bytes(&mut self, client: &Client, stream: &Stream) -> Result<(), Stop> {
        let Self { received, .. } = self;
        let buffers = &client.worker.buffers;
        match poll_fn(|cx| Poll::Ready(received.poll_read(stream, buffers, cx))).await {
            Poll::Pending => Ok(()),
            Poll::Ready(Ok(0)) => Err(Stop::backend("closed before the handshake")),
            Poll::Ready(Ok(_)) => Err(Stop::backend("bytes came before the handshake had begun")),
            Poll::Ready(Err(error)) => Err(error.into()),
        }
    }

    fn process(&mut self) -> Result<State, Stop> {
        let Self { tls, received, plaintext, out } = self;
        let progress = tls.process(received.bytes(), plaintext, &mut out.bytes);
        let progress = progress.map_err(|failure| Stop::Backend(close_of(failure)))?;
        received.consume(progress.consumed);
        Ok(progress.state)
    }

    fn poll_send(&mut self, stream: &Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            match stream.poll_write(cx, self.out.pending(), Then::Wait) {
                Poll::Ready(Ok(written)) => self.out.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    async fn receive(&mut self, client: &Client, stream: &Stream) -> Result<(), Stop> {
        poll_fn(|cx| match self.received.poll_read(stream, &client.worker.buffers, cx) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(Stop::backend("closed in the handshake"))),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(())),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            Poll::Pending => poll_stop(client, cx),
        })
        .await
    }
}

/// An error once the client has gone or the time of the attempt is over.
fn poll_stop(client: &Client, cx: &mut Context<'_>) -> Poll<Result<(), Stop>> {
    client.check_reset(cx).map_err(Stop::Client)?;
    client.deadline.poll_expired(cx).map(|()| Err(Stop::backend("the handshake took too long")))
}

/// Why a backend's TLS ends its connection, in the handshake or after it.
pub(crate) fn close_of(failure: Failure) -> Close {
    let reason = match failure.kind {
        FailureKind::AlertReceived => CloseReason::BackendAlert,
        FailureKind::Certificate => CloseReason::BadBackendCertificate,
        FailureKind::Internal => CloseReason::Internal,
        FailureKind::Incompatible
        | FailureKind::NoCertificate
        | FailureKind::FalseResumption
        | FailureKind::NotTls
        | FailureKind::Protocol => CloseReason::BackendHandshakeFailed,
    };
    Close::with(reason, failure.detail)
}

/// As [`close_of`], after the handshake.
pub(crate) fn close_of_record(failure: Failure) -> Close {
    let close = close_of(failure);
    let reason = match close.reason {
        CloseReason::BackendHandshakeFailed => CloseReason::BadBackendRecord,
        reason => reason,
    };
    Close { reason, ..close }
}

fn record(client: &mut Client, tls: &mut BackendConnection) {
    let Some(info) = tls.finish_handshake() else { return };
    let result = if info.resumed { BackendHandshake::Resumed } else { BackendHandshake::Full };
    client.worker.counters.count(Metric::BackendHandshakes, result as usize);
    client.account.backend_tls = Some(Box::new(info));
}
