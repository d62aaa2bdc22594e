//! What a worker does with sessions by ID beyond one handshake: looks them up elsewhere before it, sends them to others
//! after it, deletes them when it ended badly.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_fleet::Rate;
use courser_session::{
    CLOCK_SKEW, Cache, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, UnixSeconds,
};
use courser_telemetry::Counters;
use courser_telemetry::metrics::{Metric, RemoteLookup};
use tokio::task::AbortHandle;

use crate::fleet::{FleetHandle, Pulled};
use crate::lookup_limiter::LookupLimiter;
use crate::remote_store::{Connector, RemoteStore, StoreSettings};
use crate::tombstone_limiter::TombstoneLimiter;

/// How long a handshake waits for other hosts of the fleet unless configured otherwise: some ten round trips within a data
/// centre, and far less than a client notices.
pub const DEFAULT_PULL_DEADLINE: Duration = Duration::from_millis(5);

/// Look-ups that one client address may cause per worker unless configured otherwise: a network's worth of clients behind
/// one address come back at once, and who invents IDs is not worth more.
pub const DEFAULT_PER_SOURCE: Rate = Rate { per_second: 50, burst: 200 };

/// What a worker needs to share sessions.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// This host's sessions.
    pub cache: Arc<Cache>,
    /// Whether clients get tickets: who takes one has no session by ID then.
    pub tickets: bool,
    /// The other hosts.
    pub fleet: Option<FleetHandle>,
    /// How long a handshake may wait for them; zero: they are not asked.
    pub pull_deadline: Duration,
    /// A store that is asked when no other host has a session.
    pub store: Option<StoreSettings>,
    /// How often one client address (IPv6: network of 64 bits) makes a worker ask elsewhere.
    pub per_source: Rate,
    /// Limits the tombstones of each client address.
    pub tombstones: Arc<TombstoneLimiter>,
}

impl Sharing {
    /// For a host on its own.
    pub fn alone(cache: Arc<Cache>, tickets: bool) -> Self {
        let (pull_deadline, per_source) = (DEFAULT_PULL_DEADLINE, DEFAULT_PER_SOURCE);
        Self {
            cache,
            tickets,
            fleet: None,
            pull_deadline,
            store: None,
            per_source,
            tombstones: Arc::default(),
        }
    }
}

/// The sessions of other hosts and of the store, for one worker.
pub struct RemoteSessions {
    sharing: Sharing,
    store: Option<RemoteStore>,
    limiter: RefCell<LookupLimiter>,
    started: Instant,
}

impl RemoteSessions {
    /// Starts connecting to the store, if there is one: `spawn` makes a task of that on the worker's runtime.
    pub fn new(sharing: Sharing, spawn: impl FnOnce(Connector) -> AbortHandle) -> Self {
        let limiter = RefCell::new(LookupLimiter::new(sharing.per_source));
        let store = sharing.store.as_ref().map(|settings| RemoteStore::new(settings, spawn));
        Self { sharing, store, limiter, started: Instant::now() }
    }

    /// Whether clients get tickets.
    pub fn gives_tickets(&self) -> bool {
        self.sharing.tickets
    }

    /// Whether a look-up could find the session: there is a fleet or a store, and this host's cache has no record of it.
    pub fn lacks(&self, id: &SessionId, policy: &PolicyHash) -> bool {
        let asks = self.store.is_some() || self.fleet().is_some();
        let here = || self.sharing.cache.peek(id, policy, now());
        asks && matches!(here(), Err(ResumptionFailure::NotFound | ResumptionFailure::Evicted))
    }

    /// Looks a session up in the fleet and the store for a client. If it is found, it is in the cache then.
    ///
    /// # Errors
    /// Why it is not; [`ResumptionFailure::NotFound`] when the look-up was suppressed.
    pub async fn look_up(
        &self,
        id: SessionId,
        client: Option<IpAddr>,
        counters: &Counters,
    ) -> Result<(), ResumptionFailure> {
        let source = client.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let admitted = self.limiter.borrow_mut().admit(&id, source, self.mono());
        if let Err(failure) = admitted {
            counters.count(Metric::RemoteLookups, RemoteLookup::Suppressed as usize);
            return Err(failure);
        }
        let _permit = InFlightPermit(&self.limiter);
        counters.count(Metric::RemoteLookups, RemoteLookup::Started as usize);
        let answer = self.find(id, counters).await;
        if answer.is_err() {
            self.limiter.borrow_mut().record_failure(id, self.mono());
        }
        answer
    }

    /// The other hosts first: they answer sooner, and have what the store has not got yet.
    async fn find(&self, id: SessionId, counters: &Counters) -> Result<(), ResumptionFailure> {
        let mut failure = ResumptionFailure::NotFoundRemotely;
        if let Some(fleet) = self.fleet() {
            match fleet.pull(id, self.sharing.pull_deadline).await {
                Pulled::Found => {
                    counters.count(Metric::RemoteLookups, RemoteLookup::FoundInFleet as usize);
                    return Ok(());
                }
                Pulled::Missing => {}
                Pulled::TimedOut => failure = ResumptionFailure::PullTimeout,
            }
        }
        let stored = self.get_from_store(&id).await;
        if stored.is_ok() {
            counters.count(Metric::RemoteLookups, RemoteLookup::FoundInStore as usize);
        }
        stored.map_err(|why| if why == ResumptionFailure::NotFoundRemotely { failure } else { why })
    }

    async fn get_from_store(&self, id: &SessionId) -> Result<(), ResumptionFailure> {
        let Some(store) = &self.store else { return Err(ResumptionFailure::NotFoundRemotely) };
        let SharedSession { id, policy, lifespan, state } = store.get(id, now()).await?;
        self.sharing.cache.put(&id, policy, state, lifespan, Provenance::Remote, now());
        Ok(())
    }

    fn fleet(&self) -> Option<&FleetHandle> {
        self.sharing.fleet.as_ref().filter(|_| !self.sharing.pull_deadline.is_zero())
    }

    /// Sends a session that a verified handshake made here to the store and the peers.
    pub fn replicate(&self, session: SharedSession) {
        if let Some(store) = &self.store {
            store.put(&session, now());
        }
        if let Some(fleet) = &self.sharing.fleet {
            fleet.push(session);
        }
    }

    /// Deletes a session here and elsewhere (RFC 5246, section 7.2.2). Only for one whose client has proven, by a
    /// verified handshake, that it is its own: an ID is visible on the wire.
    pub fn delete(&self, id: &SessionId, expires: UnixSeconds, client: Option<IpAddr>) {
        let is_buried = self.sharing.tombstones.admit(client);
        if is_buried {
            self.sharing.cache.delete(id, expires.plus(CLOCK_SKEW), now());
        } else {
            self.sharing.cache.remove(id);
        }
        if let Some(store) = &self.store {
            store.delete(id);
        }
        if let Some(fleet) = &self.sharing.fleet {
            if is_buried { fleet.delete(*id) } else { fleet.remove(*id) }
        }
    }

    /// Milliseconds since this worker began.
    fn mono(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// One of the few look-ups that may be under way, given back also when its connection is dropped.
struct InFlightPermit<'a>(&'a RefCell<LookupLimiter>);

impl Drop for InFlightPermit<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().leave();
    }
}

fn now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}
