//! What every step of a connection has: the client's side, from the accepted socket on, and the close that comes before the
//! pipe. May not know any step.

use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use courser_net::Stream;
use courser_telemetry::{Close, CloseReason};
use courser_tls::HandshakeInfo;
use courser_wire::alert::{self, Description};

use crate::account::Account;
use crate::buffers::Inbox;
use crate::deadline::Deadline;
use crate::settings::Listener;
use crate::worker_state::WorkerState;

/// A connection that nothing is known of but its peer.
pub(crate) struct Accepted {
    pub(crate) client: Client,
}

/// The client's side of a connection: what every step has.
pub(crate) struct Client {
    pub(crate) worker: Rc<WorkerState>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) stream: Stream,
    /// Until when the current step has to be done.
    pub(crate) deadline: Deadline,
    /// Its account, which counts it and writes its line when it is dropped.
    pub(crate) account: Box<Account>,
}

/// A connection that ends before its relay.
pub(crate) struct EarlyClose {
    pub(crate) client: Client,
    pub(crate) close: Close,
    /// The last bytes for the client: an alert, or what was waiting.
    pub(crate) final_bytes: Vec<u8>,
}

/// Why a connection ends before its ClientHello was read, and the alert for it.
pub(crate) type Refusal = (Close, Vec<u8>);

impl Client {
    /// Reads more of what comes before the handshake, within its deadline.
    pub(crate) async fn read_greeting(&self, received: &mut Inbox) -> Result<(), Refusal> {
        let read = poll_fn(|cx| match received.poll_read(&self.stream, &self.worker.buffers, cx) {
            Poll::Ready(read) => Poll::Ready(read.map_err(|_| CloseReason::ClientReset)),
            Poll::Pending => self.deadline.poll_expired(cx).map(|()| Err(CloseReason::HelloTimeout)),
        });
        let why = match read.await {
            Ok(1..) => return Ok(()),
            Ok(0) if received.is_empty() => CloseReason::Probe,
            Ok(0) => CloseReason::ClosedInHello,
            Err(why) => why,
        };
        Err((why.into(), Vec::new()))
    }

    /// The client's address, as a PROXY header names it where there is one; none of a unix socket.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.account.client.map(|address| address.ip())
    }

    /// Deletes the session of this connection's handshake, here and on all hosts: the client has sent a fatal alert under
    /// its keys, which an observer who only saw the session's ID could not. Such a session must not be resumed (RFC 5246,
    /// section 7.2.2).
    pub(crate) fn delete_session(&self, facts: Option<&HandshakeInfo>) {
        let session = facts.and_then(|facts| facts.session);
        if let (Some(session), Some(remote)) = (session, &self.worker.remote_sessions) {
            remote.delete(&session.id, session.expires, self.address());
        }
    }

    /// An error once the client has gone: nobody connects for those who have left.
    pub(crate) fn check_reset(&self, cx: &mut Context<'_>) -> Result<(), Close> {
        match self.stream.poll_reset(cx) {
            Poll::Ready(()) => Err(CloseReason::ClientReset.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Ends the connection without a byte: the client is gone.
    pub(crate) fn close_silently(self, close: impl Into<Close>) -> Box<EarlyClose> {
        self.close_with(close, Vec::new())
    }

    pub(crate) fn close_with(
        self,
        close: impl Into<Close>,
        final_bytes: impl Into<Vec<u8>>,
    ) -> Box<EarlyClose> {
        Box::new(EarlyClose { client: self, close: close.into(), final_bytes: final_bytes.into() })
    }
}

/// An alert of our own, in the clear.
pub(crate) fn alert(description: Description) -> Vec<u8> {
    alert::record(description).to_vec()
}
