//! What one client keeps between its connections, and how the library gets at it.
//!
//! The library asks a session store that it shares among all connections, without any context, but always from within
//! a call on one connection. The purse of that connection is therefore put into a thread-local slot for the length of
//! the call, as the plan of a server's handshake is.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

use super::config::LibraryTerms;
use super::spec::Resume;

/// Sessions and tickets of one client. A session is only ever offered to the server (by name) that it came from, and
/// only on the terms it was made on, or a clone of them.
#[derive(Default)]
pub struct ClientSessions {
    /// The TLS 1.2 session: it may be resumed any number of times, until another one takes its place.
    session: Option<BoundSession<Tls12ClientSessionValue>>,
    /// TLS 1.3 tickets, newest last: each is for one connection (RFC 8446, appendix C.4).
    tickets: VecDeque<BoundSession<Tls13ClientSessionValue>>,
    /// What the openssl engine keeps.
    #[cfg(feature = "openssl")]
    pub(super) openssl: super::openssl::OpensslSessions,
}

/// A session with the server that it is from and the terms that it was made on.
type BoundSession<T> = (ConfigId, ServerName<'static>, T);

/// Tells terms apart; clones have the same.
pub(super) type ConfigId = u64;

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

    /// Throws everything away: the next handshake will be full.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    pub(super) fn forget_session(&mut self) {
        self.session = None;
    }

    fn keep(&mut self, ticket: BoundSession<Tls13ClientSessionValue>, at_most: usize) {
        self.tickets.push_back(ticket);
        while self.tickets.len() > at_most {
            self.tickets.pop_front();
        }
    }

    /// The newest ticket, as browsers take it: it lives longest. The older ones are for connections side by side.
    fn take(&mut self, on: ConfigId, server: &ServerName<'_>) -> Option<Tls13ClientSessionValue> {
        let newest = self.tickets.iter().rposition(|(terms, name, _)| *terms == on && name == server)?;
        self.tickets.remove(newest).map(|(_, _, ticket)| ticket)
    }
}

impl fmt::Debug for ClientSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Purse {{ session: {}, tickets: {} }}", self.session.is_some(), self.tickets.len())
    }
}

/// What a connection brings along for the library's callbacks, and what they note.
#[derive(Debug)]
pub(super) struct CallContext {
    pub(super) purse: ClientSessions,
    terms: ConfigId,
    resume: Resume,
    /// Tickets to keep at most.
    tickets_kept: usize,
    /// Whether the server's certificate and signature are verified.
    pub(super) verify: bool,
    /// What was taken out of the purse to be offered.
    pub(super) taken: Option<Taken>,
    /// Scheme of the server's signature.
    pub(super) scheme: Option<u16>,
}

impl CallContext {
    pub(super) fn new(terms: &LibraryTerms, purse: ClientSessions) -> Self {
        Self {
            verify: terms.verifies_next(purse.is_empty()),
            purse,
            terms: terms.id,
            resume: terms.resume,
            tickets_kept: terms.tickets_kept,
            taken: None,
            scheme: None,
        }
    }
}

/// A session that was handed to the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
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

/// Runs `work` with `errand` as the current one, and puts it back afterwards.
pub(super) fn enter<T>(errand: &mut Option<Box<CallContext>>, work: impl FnOnce() -> T) -> T {
    CURRENT.set(errand.take());
    let result = work();
    *errand = CURRENT.take();
    result
}

/// Calls `use_it` with the current errand, when there is one.
pub(super) fn with_current<T>(use_it: impl FnOnce(&mut CallContext) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|errand| errand.as_deref_mut().map(use_it))
}

/// The library's session store: the current errand's purse.
#[derive(Debug)]
pub(super) struct CurrentPurse;

impl ClientSessionStore for CurrentPurse {
    /// The key share is for the caller's first group, whatever a server chose before.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        with_current(|errand| errand.purse.session = Some((errand.terms, name, session)));
    }

    fn tls12_session(&self, server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        with_current(|errand| {
            let (terms, name, session) = errand.purse.session.as_ref()?;
            (*terms == errand.terms && name == server).then(|| {
                errand.taken = Some(Taken::Session);
                session.clone()
            })
        })?
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        with_current(|errand| errand.purse.forget_session());
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        with_current(|errand| {
            if errand.resume == Resume::Ticket {
                errand.purse.keep((errand.terms, name, ticket), errand.tickets_kept);
            }
        });
    }

    fn take_tls13_ticket(&self, server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        with_current(|errand| {
            let ticket = errand.purse.take(errand.terms, server)?;
            let early_data = usize::try_from(ticket.max_early_data_size()).unwrap_or(usize::MAX);
            errand.taken = Some(Taken::Ticket { early_data });
            Some(ticket)
        })?
    }
}
