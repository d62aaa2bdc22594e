//! The library's session store and ticketer, on courser-session, with the policy and the lifespan of the current
//! handshake's plan.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_session::{
    Cache, Lifespan, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, State, Stored,
    Ticketer, UnixSeconds,
};
use rustls::server::{ProducesTickets, StoresServerSessions};

use crate::plan::{CachedSession, HandshakePlan, SessionOffer, with_current};
use crate::random;

/// Largest state of a session that is cached or sealed, in bytes; it holds the client's certificates. A ticket that fills
/// more than one record (RFC 8446, section 5.1: 2^14 bytes) with the rest of the ClientHello is more than some programs
/// on the path take, and one near 2^16 is more than we take: a client could never resume with it.
const MAX_STATE: usize = 12 * 1024;

/// Sessions of this process: the cache for session IDs, the keys for tickets, the lifetime of both.
#[derive(Clone)]
pub struct Sessions {
    /// Sessions by ID; `None` when session IDs are switched off.
    pub cache: Option<Arc<Cache>>,
    /// Ticket keys; `None` when tickets are switched off.
    pub ticketer: Option<Arc<Ticketer>>,
    /// How long a session may be resumed after its full handshake.
    pub lifetime: Duration,
}

impl Sessions {
    fn new_lifespan(&self) -> Lifespan {
        let created = now();
        Lifespan { created, expires: UnixSeconds(created.0 + self.lifetime.as_secs()) }
    }

    /// Whether one of these tickets opens, or the cache has a session of this ID, to a session of this policy that was made by
    /// `until`. Nothing is counted or used.
    pub(crate) fn has_session<'a>(
        &self,
        policy: &PolicyHash,
        mut tickets: impl Iterator<Item = &'a [u8]>,
        id: Option<&SessionId>,
        until: UnixSeconds,
    ) -> bool {
        let is_from_before = |lifespan: Lifespan| lifespan.created <= until;
        let opens = |ticket| {
            let opened = self.ticketer.as_ref().map(|ticketer| ticketer.lifespan(policy, ticket, now()));
            matches!(opened, Some(Ok(lifespan)) if is_from_before(lifespan))
        };
        let is_cached = |id| {
            let cached = self.cache.as_ref().and_then(|cache| cache.copy(id, now()));
            cached.is_some_and(|cached| cached.policy == *policy && is_from_before(cached.lifespan))
        };
        tickets.any(opens) || id.is_some_and(is_cached)
    }

    /// A resumed session retains its original lifespan however often its ticket is renewed. A new one does not outlive
    /// the client's certificate.
    fn lifespan(&self, plan: &HandshakePlan) -> Lifespan {
        plan.lifespan.unwrap_or_else(|| {
            let fresh = self.new_lifespan();
            plan.client_expires.map_or(fresh, |end| fresh.ending_by(end))
        })
    }

    fn record_lookup(
        plan: &mut HandshakePlan,
        found: Result<(Vec<u8>, Lifespan), ResumptionFailure>,
    ) -> Option<Vec<u8>> {
        match found {
            Ok((state, lifespan)) => {
                plan.lifespan = Some(lifespan);
                Some(state)
            }
            Err(failure) => {
                plan.record_failure(failure);
                None
            }
        }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ids, tickets) = (self.cache.is_some(), self.ticketer.is_some());
        write!(f, "Sessions {{ ids: {ids}, tickets: {tickets}, lifetime: {:?} }}", self.lifetime)
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, id: Vec<u8>, state: Vec<u8>) -> bool {
        let (Some(cache), Ok(id)) = (&self.cache, SessionId::try_from(&id[..])) else { return false };
        if state.len() > MAX_STATE {
            return false;
        }
        with_current(|plan| {
            let (policy, lifespan, state) = (plan.policy, self.lifespan(plan), State::from(state));
            let put = cache.put(&id, policy, state.clone(), lifespan, Provenance::Local, now());
            if put.is_stored() {
                let (origin, expires) = (Provenance::Local, lifespan.expires);
                plan.session = Some(CachedSession { id, provenance: origin, expires });
                plan.new_session = Some(SharedSession { id, policy, lifespan, state });
            }
        })
        .is_some()
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        let (cache, id) = (self.cache.as_ref()?, SessionId::try_from(id).ok()?);
        with_current(|plan| {
            if plan.offer == SessionOffer::Tickets && self.ticketer.is_some() {
                return None;
            }
            let found = cache.get(&id, &plan.policy, now());
            plan.session = found.as_ref().ok().map(|stored| {
                let Stored { lifespan, origin, .. } = stored;
                CachedSession { id, provenance: *origin, expires: lifespan.expires }
            });
            Self::record_lookup(plan, found.map(|stored| (stored.state.to_vec(), stored.lifespan)))
        })?
    }

    /// TLS 1.3 sessions are stateless tickets or nothing: a pre-shared key identity is never looked up here. (A session
    /// ID is visible on the wire, and this call would let anyone who saw it remove the session.)
    fn take(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Whether this handshake gets a session ID. A client that takes tickets does not need one: storing its session
    /// as well would halve what the cache can hold for those that do.
    fn can_cache(&self) -> bool {
        let by_id =
            |plan: &mut HandshakePlan| plan.offer == SessionOffer::SessionId || self.ticketer.is_none();
        self.cache.is_some() && with_current(by_id).unwrap_or(false)
    }
}

impl ProducesTickets for Sessions {
    fn enabled(&self) -> bool {
        self.ticketer.is_some()
    }

    /// Seconds until the ticket expires: what is left of the session's lifetime.
    fn lifetime(&self) -> u32 {
        let left = with_current(|plan| self.lifespan(plan).expires.0.saturating_sub(now().0));
        u32::try_from(left.unwrap_or(0)).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, state: &[u8]) -> Option<Vec<u8>> {
        let ticketer = self.ticketer.as_ref().filter(|_| state.len() <= MAX_STATE)?;
        let mut nonce = [0; 12];
        random::fill(&mut nonce).ok()?;
        with_current(|plan| ticketer.seal(&plan.policy, self.lifespan(plan), state, nonce, now()))?
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let ticketer = self.ticketer.as_ref()?;
        with_current(|plan| {
            let opened = ticketer.open(&plan.policy, ticket, now());
            Self::record_lookup(plan, opened.map(|opened| (opened.state, opened.lifespan)))
        })?
    }
}

/// The library stamps sessions with the wall clock as well.
fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
