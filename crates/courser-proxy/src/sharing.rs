//! Sessions by ID beyond one handshake: looked for elsewhere before it, told to others after it, deleted when it ended
//! badly.
//!
//! Clients that take tickets have no part in this: their session IDs are random. Nothing here makes a handshake fail,
//! or wait longer than the deadlines in [`Sharing`].

mod burials;
mod lookup_limiter;
mod remote_store;

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use courser_session::fleet::Rate;
use courser_session::{
    CLOCK_SKEW, Cache, PolicyHash, Provenance, ResumptionFailure, SessionId, SharedSession, UnixSeconds,
};
use courser_telemetry::Counters;
use courser_telemetry::metrics::{Metric, RemoteLookup};

use crate::fleet::{FleetHandle, Pulled};
use crate::supervision::Tasks;
use burials::Burials;
use lookup_limiter::LookupLimiter;
use remote_store::RemoteStore;
pub use remote_store::StoreSettings;

/// How long a handshake waits for other hosts of the fleet unless told otherwise: some ten round trips within a data
/// centre, and far less than a client notices.
pub const DEFAULT_PULL_DEADLINE: Duration = Duration::from_millis(5);

/// How often one client address makes a worker ask elsewhere unless told otherwise: a network's worth of clients behind
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
    /// Which deletions leave a tombstone.
    pub burials: Arc<Burials>,
}

impl Sharing {
    /// For a host on its own.
    #[must_use]
    pub fn alone(cache: Arc<Cache>, tickets: bool) -> Self {
        let (pull_deadline, per_source) = (DEFAULT_PULL_DEADLINE, DEFAULT_PER_SOURCE);
        Self { cache, tickets, fleet: None, pull_deadline, store: None, per_source, burials: Arc::default() }
    }
}

/// A worker's part in it.
pub(crate) struct RemoteSessions {
    sharing: Sharing,
    shelf: Option<RemoteStore>,
    ration: RefCell<LookupLimiter>,
    started: Instant,
}

impl RemoteSessions {
    /// On the worker's runtime: a store is connected to from the start.
    pub(crate) fn new(sharing: Sharing, tasks: &Tasks) -> Self {
        let ration = RefCell::new(LookupLimiter::new(sharing.per_source));
        let shelf = sharing.store.as_ref().map(|store| RemoteStore::new(store, tasks));
        Self { sharing, shelf, ration, started: Instant::now() }
    }

    /// Whether clients get tickets.
    pub(crate) fn gives_tickets(&self) -> bool {
        self.sharing.tickets
    }

    /// Whether the session is worth asking for: there is somebody to ask, and this host does not know better.
    pub(crate) fn lacks(&self, id: &SessionId, policy: &PolicyHash) -> bool {
        let asks = self.shelf.is_some() || self.asks_fleet().is_some();
        let here = || self.sharing.cache.peek(id, policy, now());
        asks && matches!(here(), Err(ResumptionFailure::NotFound | ResumptionFailure::Evicted))
    }

    /// Asks elsewhere for a session on behalf of a client. If it is found, it is in the cache then.
    ///
    /// # Errors
    /// Why it is not; [`Miss::NotFound`] when nobody was asked, because the client or this worker has asked too often.
    pub(crate) async fn look_up(
        &self,
        id: SessionId,
        client: Option<IpAddr>,
        counters: &Counters,
    ) -> Result<(), ResumptionFailure> {
        let source = client.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let admitted = self.ration.borrow_mut().admit(&id, source, self.mono());
        if let Err(miss) = admitted {
            counters.count(Metric::RemoteLookups, RemoteLookup::Suppressed as usize);
            return Err(miss);
        }
        let _place = InFlightPermit(&self.ration);
        counters.count(Metric::RemoteLookups, RemoteLookup::Started as usize);
        let answer = self.ask(id, counters).await;
        if answer.is_err() {
            self.ration.borrow_mut().missed(id, self.mono());
        }
        answer
    }

    /// The other hosts first: they answer sooner, and have what the store has not got yet.
    async fn ask(&self, id: SessionId, counters: &Counters) -> Result<(), ResumptionFailure> {
        let mut miss = ResumptionFailure::NotFoundRemotely;
        if let Some(fleet) = self.asks_fleet() {
            match fleet.pull(id, self.sharing.pull_deadline).await {
                Pulled::Found => {
                    counters.count(Metric::RemoteLookups, RemoteLookup::FoundInFleet as usize);
                    return Ok(());
                }
                Pulled::Missing => {}
                Pulled::TimedOut => miss = ResumptionFailure::PullTimeout,
            }
        }
        let stored = self.ask_store(&id).await;
        if stored.is_ok() {
            counters.count(Metric::RemoteLookups, RemoteLookup::FoundInStore as usize);
        }
        stored.map_err(|why| if why == ResumptionFailure::NotFoundRemotely { miss } else { why })
    }

    async fn ask_store(&self, id: &SessionId) -> Result<(), ResumptionFailure> {
        let Some(shelf) = &self.shelf else { return Err(ResumptionFailure::NotFoundRemotely) };
        let SharedSession { id, policy, lifespan, state } = shelf.get(id, now()).await?;
        self.sharing.cache.put(&id, policy, state, lifespan, Provenance::Remote, now());
        Ok(())
    }

    fn asks_fleet(&self) -> Option<&FleetHandle> {
        self.sharing.fleet.as_ref().filter(|_| !self.sharing.pull_deadline.is_zero())
    }

    /// Tells the others of a session that a verified handshake made here.
    pub(crate) fn made(&self, session: SharedSession) {
        if let Some(shelf) = &self.shelf {
            shelf.put(&session, now());
        }
        if let Some(fleet) = &self.sharing.fleet {
            fleet.made(session);
        }
    }

    /// Deletes a session here and elsewhere (RFC 5246, section 7.2.2). Only for one whose client has proven, by a
    /// verified handshake, that it is its own: an ID is visible on the wire.
    pub(crate) fn deleted(&self, id: &SessionId, expires: UnixSeconds, client: Option<IpAddr>) {
        let is_buried = self.sharing.burials.admit(client);
        if is_buried {
            self.sharing.cache.bury(id, expires.plus(CLOCK_SKEW), now());
        } else {
            self.sharing.cache.remove(id);
        }
        if let Some(shelf) = &self.shelf {
            shelf.delete(id);
        }
        if let Some(fleet) = &self.sharing.fleet {
            if is_buried { fleet.deleted(*id) } else { fleet.removed(*id) }
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
