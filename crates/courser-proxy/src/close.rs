//! Closing: the last bytes of each side, and the time to read them.
//!
//! A socket that is closed while bytes wait unread in it sends RST, and an RST makes the peer throw away what it has
//! not read yet: the alert that says what was wrong. So after an alert the socket is drained for a while first.

use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use courser_net::{Stream, Then};
use courser_telemetry::CloseReason;

use crate::account::CLOSE_TIMEOUT;
use crate::buffers::{BUFFER_BYTES, Outbox};
use crate::client::{Client, EarlyClose};
use crate::pipe::Finished;
use crate::side::Side;

/// How long, and for how many bytes, a client that goes on talking is listened to.
#[derive(Clone, Copy)]
struct Linger {
    time: Duration,
    bytes: usize,
}

/// Not at all: nothing that it sends is in the way.
const NONE: Linger = Linger { time: CLOSE_TIMEOUT, bytes: 0 };

/// Until it has read an alert.
const ALERT: Linger = Linger { time: CLOSE_TIMEOUT, bytes: 1 << 20 };

/// Until it has sent what it began to send before it got its answer, and reads that; many clients listen only then.
const ANSWER: Linger = Linger { time: Duration::from_secs(10), bytes: usize::MAX };

/// Ends a connection that was refused: sends the alert, then FIN, then listens until the client has gone too.
pub(crate) async fn close_early(early: EarlyClose) {
    let EarlyClose { mut client, close, final_bytes } = early;
    let linger = match close.reason {
        CloseReason::ClosedAfterHandshake | CloseReason::AcmeChallenge => NONE,
        _ => ALERT,
    };
    client.account.set_close(close);
    if !final_bytes.is_empty() {
        let mut outbox = Outbox::default();
        outbox.bytes = final_bytes;
        send_and_linger(&client, &mut outbox, linger).await;
    }
}

/// Ends a connection whose pipe is over.
pub(crate) async fn close(finished: Finished) {
    let Finished { mut client, mut client_side, mut backend, mut backend_side, close } = finished;
    let reason = close.reason;
    client.account.set_close(close);
    if reason.cuts_request_short() {
        backend.cut();
    }
    if !backend.is_short() {
        end_backend(&backend, &mut backend_side).await;
    }
    // The backend need not wait for a client that takes its time.
    drop(backend);
    match reason {
        CloseReason::IdleTimeout => {
            let _ = client_side.end();
            send_and_linger(&client, &mut client_side.outbox, NONE).await;
        }
        // The backend may have more to say: without a close_notify the client can tell.
        CloseReason::ClientFinTimeout | CloseReason::BackendFinTimeout | CloseReason::MaxConnectionAge => {
            send_and_linger(&client, &mut client_side.outbox, NONE).await;
        }
        // The answer has left; a client that still sends would have it thrown away by a reset.
        CloseReason::BackendReset
        | CloseReason::BackendTruncated
        | CloseReason::BackendAlert
        | CloseReason::BadBackendRecord
        | CloseReason::BackendClosedEarly => {
            send_and_linger(&client, &mut client_side.outbox, ANSWER).await;
        }
        CloseReason::ClientAlert => {
            client.delete_session(client.account.handshake.as_deref());
            send_and_linger(&client, &mut client_side.outbox, ALERT).await;
        }
        // The alert is in `client_side`.
        CloseReason::BadRecord | CloseReason::Internal => {
            send_and_linger(&client, &mut client_side.outbox, ALERT).await;
        }
        _ => {}
    }
}

/// Sends a backend with TLS the end that goes before the FIN, if its socket takes it at once.
async fn end_backend(stream: &Stream, side: &mut Side) {
    let _ = side.end();
    if !side.outbox.is_empty() {
        let _ = poll_fn(|cx| Poll::Ready(poll_send(stream, &mut side.outbox, cx))).await;
    }
}

/// Sends what is left, then FIN; then reads on, within bounds, until the client closes.
async fn send_and_linger(client: &Client, outbox: &mut Outbox, linger: Linger) {
    client.deadline.set(linger.time);
    let mut budget = linger.bytes;
    let mut finished = false;
    poll_fn(|cx| {
        if client.deadline.poll_expired(cx).is_ready() {
            return Poll::Ready(());
        }
        if !finished {
            ready!(poll_send(&client.stream, outbox, cx));
            client.stream.shutdown();
            finished = true;
        }
        poll_drain(client, &mut budget, cx)
    })
    .await;
}

fn poll_send(stream: &Stream, outbox: &mut Outbox, cx: &mut Context<'_>) -> Poll<()> {
    while !outbox.is_empty() {
        match ready!(stream.poll_write(cx, outbox.pending(), Then::Shutdown)) {
            Ok(written) => outbox.advance(written),
            Err(_) => return Poll::Ready(()),
        }
    }
    Poll::Ready(())
}

fn poll_drain(client: &Client, budget: &mut usize, cx: &mut Context<'_>) -> Poll<()> {
    while *budget > 0 {
        let mut bytes = Vec::new();
        let read = client.stream.poll_read(cx, &mut bytes, |bytes| client.worker.buffers.make_room(bytes));
        client.worker.buffers.release(bytes);
        match ready!(read) {
            Ok(0) | Err(_) => return Poll::Ready(()),
            Ok(read) => *budget = budget.saturating_sub(read.min(BUFFER_BYTES)),
        }
    }
    Poll::Ready(())
}
