//! The names that a CA may ask for now, in a table that all workers share. May not know a connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use courser_tls::{Identity, ServerTlsConfig};

/// What a CA offers alone (RFC 8737, section 6.2).
pub const PROTOCOL: &[u8] = b"acme-tls/1";

/// The names that a CA may ask for now, with the certificates of the answers. Workers look only where a client offers nothing
/// but [`PROTOCOL`], so its lock is none that connections take.
#[derive(Debug, Default)]
pub struct Challenges {
    pending: Mutex<HashMap<Box<str>, Answer>>,
}

/// What a CA gets.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) identity: Arc<Identity>,
    pub(crate) tls: Arc<ServerTlsConfig>,
}

impl Challenges {
    /// From now on a CA that asks for `name`, in lower case, gets this certificate. `tls` has [`PROTOCOL`] as its only protocol,
    /// and neither sessions nor tickets.
    pub fn publish(&self, name: &str, identity: Identity, tls: &Arc<ServerTlsConfig>) {
        let answer = Answer { identity: Arc::new(identity), tls: Arc::clone(tls) };
        self.lock().insert(name.into(), answer);
    }

    /// Nobody asks for it any more.
    pub fn withdraw(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<Answer> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Answer>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
