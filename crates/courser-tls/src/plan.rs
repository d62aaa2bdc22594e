//! The plan of one handshake: what was decided before the library saw the ClientHello, and what its callbacks recorded.
//!
//! The library calls its certificate, session and ticket traits without any context, but always from within the call
//! that processes a connection's records, on the same thread. The plan is therefore put into a thread-local slot for
//! the length of that call. The alternative, a configuration object per connection, costs a dozen contended reference
//! counts each.

use std::cell::RefCell;
use std::sync::Arc;

use courser_session::{
    Lifespan, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, UnixSeconds,
};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::identity::Identity;

/// What the client offered to resume with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOffer {
    /// TLS 1.3, or TLS 1.2 with the session ticket extension: a session ID beside it is random and names nothing, as
    /// long as tickets are given out.
    Tickets,
    /// TLS 1.2 without the ticket extension: session-ID resumption.
    SessionId,
}

/// A session in the cache, for session-ID resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedSession {
    /// The server's session ID (RFC 5246, section 7.4.1.3).
    pub id: SessionId,
    /// Which host created it.
    pub provenance: Provenance,
    /// When it can no longer be resumed.
    pub expires: UnixSeconds,
}

/// What was decided for one handshake.
#[derive(Debug)]
pub struct HandshakePlan {
    /// Certificate to serve.
    pub identity: Arc<Identity>,
    /// Policy that a session has to have been made under.
    pub policy: PolicyHash,
    /// What the client can resume with.
    pub offer: SessionOffer,
    /// Original lifespan of the session being resumed.
    pub(crate) lifespan: Option<Lifespan>,
    /// When the client's certificate chain expires.
    pub(crate) client_expires: Option<UnixSeconds>,
    /// Why an offered session was not resumed.
    pub(crate) resumption_failure: Option<ResumptionFailure>,
    /// Why the remote lookup did not find the session; more precise than that this host has none.
    remote_failure: Option<ResumptionFailure>,
    /// The session that is being resumed or was created, if the cache holds it.
    pub(crate) session: Option<CachedSession>,
    /// The session that this handshake created, to be replicated.
    pub(crate) new_session: Option<SharedSession>,
    /// Scheme that the certificate's key signed with.
    pub(crate) scheme: Option<u16>,
}

impl HandshakePlan {
    /// A plan before its handshake.
    pub fn new(identity: Arc<Identity>, policy: PolicyHash, offer: SessionOffer) -> Self {
        Self {
            identity,
            policy,
            offer,
            lifespan: None,
            client_expires: None,
            resumption_failure: None,
            remote_failure: None,
            session: None,
            new_session: None,
            scheme: None,
        }
    }

    /// Records that a remote lookup did not find the session that the client offers by its ID.
    pub fn record_remote_failure(&mut self, failure: ResumptionFailure) {
        self.remote_failure = Some(failure);
    }

    /// Records why a session is not resumed. The result of a remote lookup explains more than that this host has none,
    /// or no longer.
    pub(crate) fn record_failure(&mut self, failure: ResumptionFailure) {
        let remote = self
            .remote_failure
            .filter(|_| matches!(failure, ResumptionFailure::NotFound | ResumptionFailure::Evicted));
        self.resumption_failure = Some(remote.unwrap_or(failure));
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Box<HandshakePlan>>> = const { RefCell::new(None) };
}

/// Runs `work` with `plan` as the current one, and puts it back afterwards, also when `work` panics: the next
/// connection of this thread must not find it.
pub(crate) fn enter<T>(plan: &mut Option<Box<HandshakePlan>>, work: impl FnOnce() -> T) -> T {
    struct Entered<'a>(&'a mut Option<Box<HandshakePlan>>);

    impl Drop for Entered<'_> {
        fn drop(&mut self) {
            *self.0 = CURRENT.take();
        }
    }

    CURRENT.set(plan.take());
    let _entered = Entered(plan);
    work()
}

/// Whether a handshake is under way in the call that runs on this thread.
pub(crate) fn is_current() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Calls `use_it` with the current plan, when there is one.
pub(crate) fn with_current<T>(use_it: impl FnOnce(&mut HandshakePlan) -> T) -> Option<T> {
    CURRENT.with_borrow_mut(|plan| plan.as_deref_mut().map(use_it))
}

/// Gives the library the certificate of the current plan.
#[derive(Debug)]
pub(crate) struct PlannedCertificate;

impl ResolvesServerCert for PlannedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        with_current(|plan| Arc::clone(plan.identity.certified_now()))
    }
}
