//! The pools of a generation: a later one with the same settings has the same pool, and so its connections, limits and health.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use courser_config::{BackendAddress, PoolConfig};
use courser_proxy::Pool;

/// Pools by the settings that they were made of.
#[derive(Clone, Default)]
pub(crate) struct Pools(BTreeMap<Key, (PoolSettings, Arc<Pool>)>);

/// What a pool is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PoolSettings {
    /// Of the configuration, with what its TLS is made of.
    Named(Box<PoolConfig>, Option<[u8; 32]>),
    /// Of a host that names none.
    Own { name: String, servers: Vec<BackendAddress>, queue_timeout: Duration, tls: Option<[u8; 32]> },
}

/// Kind and name: a host's own pool may be called as one of the configuration.
type Key = (bool, String);

impl PoolSettings {
    fn key(&self) -> Key {
        match self {
            Self::Named(pool, _) => (false, pool.name.clone()),
            Self::Own { name, .. } => (true, name.clone()),
        }
    }
}

impl Pools {
    /// The pool of these settings: the one of `previous`, or one that is made.
    pub(crate) fn add(
        &mut self,
        settings: PoolSettings,
        previous: &Self,
        make: impl FnOnce() -> Pool,
    ) -> Arc<Pool> {
        let key = settings.key();
        let kept = previous.0.get(&key).filter(|(known, _)| *known == settings);
        let pool = kept.map_or_else(|| Arc::new(make()), |(_, pool)| Arc::clone(pool));
        self.0.insert(key, (settings, Arc::clone(&pool)));
        pool
    }

    /// The pool of the configuration with this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Pool>> {
        self.0.get(&(false, name.to_owned())).map(|(_, pool)| pool)
    }

    /// All of them, those of the configuration first.
    pub(crate) fn list(&self) -> Vec<Arc<Pool>> {
        self.0.values().map(|(_, pool)| Arc::clone(pool)).collect()
    }
}
