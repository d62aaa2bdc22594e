//! The life of one connection, step by step. Each step takes what the one before gave, so none can be skipped,
//! repeated or done out of order; a step that ends the connection gives an [`Ending`] instead.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::Stream;
use courser_telemetry::Close;
use courser_tls::HandshakeInfo;

use crate::accept::Accepted;
use crate::account::Account;
use crate::deadline::Deadline;
use crate::settings::Listener;
use crate::worker::WorkerState;
use crate::{backend, certificate, classify, close, handshake, pipe, proxy_header, resume};

/// Serves one connection from its first byte to its line in the log.
pub(crate) async fn serve(accepted: Accepted) {
    if let Err(ending) = path(accepted).await {
        close::refuse(*ending).await;
    }
}

async fn path(accepted: Accepted) -> Result<(), Box<EarlyClose>> {
    let classified = classify::classify(accepted).await?;
    let chosen = certificate::select(classified)?;
    let primed = resume::plan_resumption(chosen).await;
    let secured = handshake::handshake(primed).await?;
    let connected = backend::connect(secured).await?;
    let announced = proxy_header::send_proxy_header(connected)?;
    let finished = pipe::relay(announced).await;
    close::close(finished).await;
    Ok(())
}

/// The client's end of a connection: what every step has.
pub(crate) struct Client {
    /// Its worker.
    pub(crate) worker: Rc<WorkerState>,
    /// The settings it was accepted under.
    pub(crate) listener: Arc<Listener>,
    /// Its socket.
    pub(crate) stream: Stream,
    /// Until when the current step has to be done.
    pub(crate) deadline: Deadline,
    /// What is noted about it. Dropped, it writes the line.
    pub(crate) account: Box<Account>,
}

/// A connection that ends before its relay.
pub(crate) struct EarlyClose {
    /// The client.
    pub(crate) client: Client,
    /// Why.
    pub(crate) end: Close,
    /// Bytes that tell the client so: an alert.
    pub(crate) farewell: Vec<u8>,
}

impl Client {
    /// The client's address; none of a unix socket.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.account.peer.map(|address| address.ip())
    }

    /// Deletes the session of this connection, of whose handshake these are the facts, here and everywhere: the client has
    /// ended it with an error, and has said so under its keys, which nobody could who only saw the session's ID. Such a
    /// session must not be resumed (RFC 5246, section 7.2.2).
    pub(crate) fn delete_session(&self, facts: Option<&HandshakeInfo>) {
        let session = facts.and_then(|facts| facts.session);
        if let (Some(session), Some(exchange)) = (session, &self.worker.exchange) {
            exchange.delete(&session.id, session.expires, self.address());
        }
    }

    /// Ends the connection without a word: the client is gone.
    pub(crate) fn gone(self, end: impl Into<Close>) -> Box<EarlyClose> {
        self.ending(end, Vec::new())
    }

    /// Ends the connection with `farewell`.
    pub(crate) fn ending(self, end: impl Into<Close>, farewell: impl Into<Vec<u8>>) -> Box<EarlyClose> {
        Box::new(EarlyClose { client: self, end: end.into(), farewell: farewell.into() })
    }
}
