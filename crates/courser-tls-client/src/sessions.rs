//! One client's sessions between its connections, and the library's access to them.
//!
//! The library calls a session store that it shares among all connections, without any context, but always from within
//! a call on one connection. The sessions of that connection are therefore put into a thread-local slot for the length of
//! the call, as the plan of a server's handshake is.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use crate::spec::Resume;

/// Sessions and tickets of one client. A session is only ever offered to the server (by name) that it came from, and
/// only under the configuration that it was created under, or a clone of it.
#[derive(Default)]
pub struct ClientSessions {
    /// The TLS 1.2 session: it may be resumed any number of times, until another one takes its place.
    session: Option<BoundSession<Tls12ClientSessionValue>>,
    /// TLS 1.3 tickets, newest last: each is for one connection (RFC 8446, appendix C.4).
    tickets: VecDeque<BoundSession<Tls13ClientSessionValue>>,
    /// Those of the openssl engine.
    #[cfg(feature = "openssl")]
    pub(crate) openssl: crate::openssl::sessions::OpensslSessions,
}

/// A session with the configuration and the server that it is from.
type BoundSession<T> = (ConfigId, ServerName<'static>, T);

/// Identifies a configuration; clones have the same.
pub(crate) type ConfigId = u64;

impl ClientSessions {
    /// Whether there is nothing to resume with.
    pub fn is_empty(&self) -> bool {
        #[cfg(feature = "openssl")]
        if !self.openssl.is_empty() {
            return false;
        }
        self.session.is_none() && self.tickets.is_empty()
    }

    /// How many TLS 1.3 tickets are left.
    pub fn tickets(&self) -> usize {
        #[cfg(feature = "openssl")]
        let openssl = self.openssl.tickets();
        #[cfg(not(feature = "openssl"))]
        let openssl = 0;
        self.tickets.len() + openssl
    }

    /// Deletes all: the next handshake will be full.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn clear_session(&mut self) {
        self.session = None;
    }

    fn push_ticket(&mut self, ticket: BoundSession<Tls13ClientSessionValue>, at_most: usize) {
        self.tickets.push_back(ticket);
        while self.tickets.len() > at_most {
            self.tickets.pop_front();
        }
    }

    /// The newest ticket, as browsers take it: it lives longest. The older ones are for connections side by side.
    fn take_ticket(&mut self, on: ConfigId, server: &ServerName<'_>) -> Option<Tls13ClientSessionValue> {
        let newest = self.tickets.iter().rposition(|(config, name, _)| *config == on && name == server)?;
        self.tickets.remove(newest).map(|(_, _, ticket)| ticket)
    }
}

impl fmt::Debug for ClientSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientSessions {{ session: {}, tickets: {} }}", self.session.is_some(), self.tickets.len())
    }
}

/// A connection's data for the library's callbacks, and what they record.
#[derive(Debug)]
pub(crate) struct CallContext {
    pub(crate) sessions: ClientSessions,
    pub(crate) config: ConfigId,
    pub(crate) resume: Resume,
    /// Most tickets that are stored.
    pub(crate) max_tickets: usize,
    /// Whether the server's certificate and signature are verified.
    pub(crate) verify: bool,
    /// The session that the library got to offer.
    pub(crate) offered: Option<OfferedSession>,
    /// Scheme of the server's signature.
    pub(crate) scheme: Option<u16>,
}

/// A session that the library got to offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferedSession {
    /// Of TLS 1.2.
    Session,
    /// Of TLS 1.3.
    Ticket {
        /// Most bytes of early data that go with it.
        early_data: usize,
    },
}

thread_local! {
    static CURRENT: RefCell<Option<Box<CallContext>>> = const { RefCell::new(None) };
}

/// Runs `work` with `context` as the current one, and puts it back afterwards.
pub(crate) fn enter<T>(context: &mut Option<Box<CallContext>>, work: impl FnOnce() -> T) -> T {
    CURRENT.set(context.take());
    let result = work();
    *context = CURRENT.take();
    result
}

/// Calls `use_it` with the current context, when there is one.
pub(crate) fn with_current<T>(use_it: impl FnOnce(&mut CallContext) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|context| context.as_deref_mut().map(use_it))
}

/// The library's session store: the sessions of the current context.
#[derive(Debug)]
pub(crate) struct CurrentSessions;

impl ClientSessionStore for CurrentSessions {
    /// The key share is for the caller's first group, whatever a server chose before.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        with_current(|context| context.sessions.session = Some((context.config, name, session)));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        with_current(|context| {
            let (config, name, session) = context.sessions.session.as_ref()?;
            (*config == context.config && name == server).then(|| {
                context.offered = Some(OfferedSession::Session);
                session.clone()
            })
        })?
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        with_current(|context| context.sessions.clear_session());
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        with_current(|context| {
            if context.resume == Resume::Ticket {
                context.sessions.push_ticket((context.config, name, ticket), context.max_tickets);
            }
        });
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        with_current(|context| {
            let ticket = context.sessions.take_ticket(context.config, server)?;
            let early_data = usize::try_from(ticket.max_early_data_size()).unwrap_or(usize::MAX);
            context.offered = Some(OfferedSession::Ticket { early_data });
            Some(ticket)
        })?
    }
}
