//! Sessions of OpenSSL: from the server into a purse, and from there into the next connection.

use std::cell::RefCell;
use std::collections::VecDeque;

use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslSession, SslSessionCacheMode};

use super::{OpensslClientConfig, failure};
use crate::client::{Offered, ServerName};
use crate::failure::Failure;

/// This engine's part of a purse.
#[derive(Default)]
pub(in crate::client) struct OpensslSessions {
    /// The session of TLS 1.2 or older: it may be resumed any number of times, until another one takes its place.
    session: Option<(StoredSession, Offered)>,
    /// TLS 1.3 tickets, newest last: each is for one connection (RFC 8446, appendix C.4).
    tickets: VecDeque<StoredSession>,
}

/// A session, and for whom it may be used.
struct StoredSession {
    session: SslSession,
    /// Where it was made. It may be used nowhere else.
    context: SslContext,
    name: ServerName,
}

impl OpensslSessions {
    pub(in crate::client) fn is_empty(&self) -> bool {
        self.session.is_none() && self.tickets.is_empty()
    }

    /// How many TLS 1.3 tickets there are.
    pub(in crate::client) fn tickets(&self) -> usize {
        self.tickets.len()
    }

    /// Lets `ssl` offer a session of the server of this `name`: the newest ticket, which is used up by that, or else
    /// the old session. Gives its ID and by what it is named.
    pub(super) fn offer(
        &mut self,
        ssl: &mut Ssl,
        name: &ServerName,
    ) -> Result<Option<(Vec<u8>, Offered)>, Failure> {
        if let Some(newest) = self.tickets.iter().rposition(|kept| kept.fits(ssl, name))
            && let Some(ticket) = self.tickets.remove(newest)
        {
            return ticket.offer(ssl).map(|id| Some((id, Offered::Psk)));
        }
        match self.session.as_ref().filter(|(kept, _)| kept.fits(ssl, name)) {
            Some((kept, offered)) => kept.offer(ssl).map(|id| Some((id, *offered))),
            None => Ok(None),
        }
    }

    /// Keeps a session of TLS 1.2 or older in place of the one before.
    pub(super) fn replace(
        &mut self,
        terms: &OpensslClientConfig,
        name: &ServerName,
        session: SslSession,
        by: Offered,
    ) {
        self.session = Some((StoredSession::new(terms, name, session), by));
    }

    /// Keeps a TLS 1.3 ticket, and throws away the oldest ones above the limit.
    pub(super) fn keep(&mut self, terms: &OpensslClientConfig, name: &ServerName, session: SslSession) {
        self.tickets.push_back(StoredSession::new(terms, name, session));
        while self.tickets.len() > terms.tickets_kept {
            self.tickets.pop_front();
        }
    }
}

impl StoredSession {
    fn new(terms: &OpensslClientConfig, name: &ServerName, session: SslSession) -> Self {
        Self { session, context: terms.context.clone(), name: name.clone() }
    }

    fn fits(&self, ssl: &Ssl, name: &ServerName) -> bool {
        std::ptr::eq(ssl.ssl_context(), &*self.context) && self.name == *name
    }

    #[allow(unsafe_code, reason = "the only way to offer a session: rust-openssl has no safe one")]
    fn offer(&self, ssl: &mut Ssl) -> Result<Vec<u8>, Failure> {
        if !std::ptr::eq(ssl.ssl_context(), &*self.context) {
            return Err(Failure::internal(
                "a session may only be used with the context that it was made with",
            ));
        }
        // SAFETY: what `set_session` asks of its caller has just been checked: the session was made in connections of
        // this context (`Kept::new`), and the context, being held by both, is the same object and not another one at
        // its address.
        unsafe { ssl.set_session(&self.session) }.map_err(|error| failure::ours(&error))?;
        Ok(self.session.id().to_vec())
    }
}

/// Makes connections of the context hand over what servers give them for later. The library calls back from within a
/// call on a connection and without a context of ours: the slot is the calling thread's.
pub(super) fn enable(builder: &mut SslContextBuilder) {
    builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    builder
        .set_new_session_callback(|_, session| RECEIVED.with_borrow_mut(|received| received.push(session)));
}

/// Runs `work`, a call on one connection, and gives what the server has handed over in it.
pub(super) fn collect<T>(work: impl FnOnce() -> T) -> (T, Vec<SslSession>) {
    RECEIVED.set(Vec::new());
    let result = work();
    (result, RECEIVED.take())
}

thread_local! {
    static RECEIVED: RefCell<Vec<SslSession>> = const { RefCell::new(Vec::new()) };
}
