//! Sessions of OpenSSL: from the server into the client's sessions, and from there into the next connection.

use std::cell::RefCell;
use std::collections::VecDeque;

use courser_tls::Failure;
use openssl::ssl::{Ssl, SslContext, SslContextBuilder, SslSession, SslSessionCacheMode};

use super::failure;
use crate::handshake_info::ResumptionMethod;
use crate::server_name::ServerName;

/// This engine's part of a client's sessions.
#[derive(Default)]
pub(crate) struct OpensslSessions {
    /// The session of TLS 1.2 or older: it may be resumed any number of times, until another one takes its place.
    session: Option<(StoredSession, ResumptionMethod)>,
    /// TLS 1.3 tickets, newest last: each is for one connection (RFC 8446, appendix C.4).
    tickets: VecDeque<StoredSession>,
}

/// A session, and the server and context that it may be used with.
struct StoredSession {
    session: SslSession,
    /// Where it was made. It may be used nowhere else.
    context: SslContext,
    name: ServerName,
}

impl OpensslSessions {
    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_none() && self.tickets.is_empty()
    }

    /// How many TLS 1.3 tickets there are.
    pub(crate) fn tickets(&self) -> usize {
        self.tickets.len()
    }

    /// Lets `ssl` offer a session of the server of this `name`: the newest ticket, which is used up by that, or else
    /// the old session. Gives its ID and by what it is named.
    pub(crate) fn offer(
        &mut self,
        ssl: &mut Ssl,
        name: &ServerName,
    ) -> Result<Option<(Vec<u8>, ResumptionMethod)>, Failure> {
        if let Some(newest) = self.tickets.iter().rposition(|stored| stored.fits(ssl, name))
            && let Some(ticket) = self.tickets.remove(newest)
        {
            return ticket.offer(ssl).map(|id| Some((id, ResumptionMethod::Psk)));
        }
        match self.session.as_ref().filter(|(stored, _)| stored.fits(ssl, name)) {
            Some((stored, offered)) => stored.offer(ssl).map(|id| Some((id, *offered))),
            None => Ok(None),
        }
    }

    /// Stores a session of TLS 1.2 or older in place of the one before.
    pub(crate) fn replace(
        &mut self,
        context: &SslContext,
        name: &ServerName,
        session: SslSession,
        by: ResumptionMethod,
    ) {
        self.session = Some((StoredSession::new(context, name, session), by));
    }

    /// Stores a TLS 1.3 ticket, and deletes the oldest ones above the limit.
    pub(crate) fn push_ticket(
        &mut self,
        context: &SslContext,
        name: &ServerName,
        session: SslSession,
        at_most: usize,
    ) {
        self.tickets.push_back(StoredSession::new(context, name, session));
        while self.tickets.len() > at_most {
            self.tickets.pop_front();
        }
    }
}

impl StoredSession {
    fn new(context: &SslContext, name: &ServerName, session: SslSession) -> Self {
        Self { session, context: context.clone(), name: name.clone() }
    }

    fn fits(&self, ssl: &Ssl, name: &ServerName) -> bool {
        std::ptr::eq(ssl.ssl_context(), &*self.context) && self.name == *name
    }

    #[expect(unsafe_code, reason = "the only way to offer a session: rust-openssl has no safe one")]
    fn offer(&self, ssl: &mut Ssl) -> Result<Vec<u8>, Failure> {
        if !std::ptr::eq(ssl.ssl_context(), &*self.context) {
            return Err(Failure::internal(
                "a session may only be used with the context that it was made with",
            ));
        }
        // SAFETY: what `set_session` requires of its caller has just been checked: the session was made in connections of
        // this context (`StoredSession::new`), and the context, being held by both, is the same object and not another one at
        // its address.
        unsafe { ssl.set_session(&self.session) }.map_err(|error| failure::internal(&error))?;
        Ok(self.session.id().to_vec())
    }
}

/// Makes connections of the context hand over what servers give them for later. The library calls back from within a
/// call on a connection and without a context of ours: the slot is the calling thread's.
pub(crate) fn enable(builder: &mut SslContextBuilder) {
    builder.set_session_cache_mode(SslSessionCacheMode::CLIENT | SslSessionCacheMode::NO_INTERNAL);
    builder
        .set_new_session_callback(|_, session| RECEIVED.with_borrow_mut(|received| received.push(session)));
}

/// Runs `work`, a call on one connection, and gives what the server has handed over in it.
pub(crate) fn collect<T>(work: impl FnOnce() -> T) -> (T, Vec<SslSession>) {
    RECEIVED.set(Vec::new());
    let result = work();
    (result, RECEIVED.take())
}

thread_local! {
    static RECEIVED: RefCell<Vec<SslSession>> = const { RefCell::new(Vec::new()) };
}
