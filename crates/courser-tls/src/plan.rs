//! The plan of one handshake: what was decided before the library saw the ClientHello, and what its callbacks noted.
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
    /// TLS 1.2 without the ticket extension: sessions are kept by their ID.
    SessionId,
}

/// A session that is kept by its ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptSession {
    /// The ID.
    pub id: SessionId,
    /// Where it was made.
    pub origin: Provenance,
    /// Until when it may be resumed.
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
    /// When the certificate that the client has shown ends, or one that it rests on.
    pub(crate) client_ends: Option<UnixSeconds>,
    /// Why an offered session was not resumed.
    pub(crate) miss: Option<ResumptionFailure>,
    /// What asking elsewhere for the session came to; it explains that this host has none.
    elsewhere: Option<ResumptionFailure>,
    /// The session that is being resumed or was made, if it is kept by its ID.
    pub(crate) session: Option<KeptSession>,
    /// The one that was made, to be told to others.
    pub(crate) made: Option<SharedSession>,
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
            client_ends: None,
            miss: None,
            elsewhere: None,
            session: None,
            made: None,
            scheme: None,
        }
    }

    /// Notes that the session which the client offers by its ID was asked for elsewhere, in vain.
    pub fn asked_elsewhere(&mut self, miss: ResumptionFailure) {
        self.elsewhere = Some(miss);
    }

    /// Notes why a session is not resumed. That this host has none, or no longer, says less than what those said who
    /// were asked for it.
    pub(crate) fn missed(&mut self, miss: ResumptionFailure) {
        let asked = self
            .elsewhere
            .filter(|_| matches!(miss, ResumptionFailure::NotFound | ResumptionFailure::Evicted));
        self.miss = Some(asked.unwrap_or(miss));
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
        with_current(|plan| Arc::clone(&plan.identity.certified))
    }
}
