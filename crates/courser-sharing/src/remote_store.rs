//! A worker's way to the session store: sessions go there sealed, and come back only if our keys sealed them for their ID.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use courser_session::{ResumptionFailure, SecretBytes, SessionId, SharedSession, UnixSeconds, Vault};
pub use courser_store::Connector;
use courser_store::{Store, StoreCounters, StoreEndpoint, StoreFailure};
use tokio::task::AbortHandle;

/// A session store, for all workers.
#[derive(Clone)]
pub struct StoreSettings {
    /// Where it is.
    pub endpoint: Arc<StoreEndpoint>,
    /// How long a handshake may wait for it.
    pub timeout: Duration,
    /// Where it is counted how it goes.
    pub counters: Arc<StoreCounters>,
    /// What seals.
    pub vault: Arc<Vault>,
}

impl fmt::Debug for StoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreSettings {{ {}, timeout: {:?} }}", self.endpoint.url(), self.timeout)
    }
}

pub(crate) struct RemoteStore {
    store: Store,
    vault: Arc<Vault>,
}

impl RemoteStore {
    /// Starts connecting, on the worker's runtime.
    pub(crate) fn new(settings: &StoreSettings, spawn: impl FnOnce(Connector) -> AbortHandle) -> Self {
        let StoreSettings { endpoint, timeout, counters, vault } = settings.clone();
        Self { store: Store::new(endpoint, timeout, counters, spawn), vault }
    }

    /// Asks for a session.
    ///
    /// # Errors
    /// Why there is none: [`ResumptionFailure::NotFoundRemotely`], [`ResumptionFailure::StoreTimeout`], or what is wrong
    /// with what is there.
    pub(crate) async fn get(
        &self,
        id: &SessionId,
        now: UnixSeconds,
    ) -> Result<SharedSession, ResumptionFailure> {
        match self.store.get(&Vault::name(id)).await {
            Ok(Some(value)) => self.vault.open(id, &value, now),
            Ok(None) => Err(ResumptionFailure::NotFoundRemotely),
            // The breaker is open: the store was not asked.
            Err(StoreFailure::Unavailable) => Err(ResumptionFailure::NotFound),
            Err(_) => Err(ResumptionFailure::StoreTimeout),
        }
    }

    /// Stores a session for as long as it lives.
    pub(crate) fn put(&self, session: &SharedSession, now: UnixSeconds) {
        // Without randomness nothing is sealed: only this host resumes the session.
        let Ok(nonce) = SecretBytes::random() else { return };
        if let Some(value) = self.vault.seal(session, *nonce.as_bytes(), now) {
            self.store.put(&Vault::name(&session.id), &value, session.lifespan.remaining(now));
        }
    }

    pub(crate) fn delete(&self, id: &SessionId) {
        self.store.delete(&Vault::name(id));
    }
}
