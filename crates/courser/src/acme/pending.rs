//! What authorities may ask for now. It lasts as long as the process, and goes over in an upgrade: the next process would else
//! answer an authority that looks just then with the wrong certificate, which counts as a failure of the order.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use courser_acme::Unanswered;
use courser_session::UnixSeconds;
use courser_sharing::DomainCheck;

/// By name.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    checks: Mutex<Checks>,
}

#[derive(Debug, Default)]
struct Checks {
    by_name: HashMap<String, DomainCheck>,
    /// They have been written down for another process, which would not know of more.
    is_handed_over: bool,
}

impl Pending {
    /// Adds one, or replaces that of its name. Returns whether its answer is another one than before.
    ///
    /// # Errors
    /// Another process is about to take over, which does not know this one: the order goes on there.
    pub(crate) fn put(&self, check: &DomainCheck) -> Result<bool, Unanswered> {
        let mut checks = self.lock();
        if checks.is_handed_over {
            let before = checks.by_name.get(&check.name);
            let is_known = before.is_some_and(|before| before.digest == check.digest);
            return if is_known { Ok(false) } else { Err(Unanswered::HandedOver) };
        }
        let before = checks.by_name.insert(check.name.clone(), check.clone());
        Ok(before.is_none_or(|before| before.digest != check.digest))
    }

    pub(crate) fn get(&self, name: &str) -> Option<DomainCheck> {
        self.lock().by_name.get(name).cloned()
    }

    pub(crate) fn remove(&self, name: &str) -> Option<DomainCheck> {
        self.lock().by_name.remove(name)
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().by_name.len()
    }

    pub(crate) fn list(&self) -> Vec<DomainCheck> {
        self.lock().by_name.values().cloned().collect()
    }

    /// Names of those that are over.
    pub(crate) fn over(&self, now: UnixSeconds) -> Vec<String> {
        let checks = self.lock();
        let over = checks.by_name.values().filter(|check| check.expires <= now);
        over.map(|check| check.name.clone()).collect()
    }

    /// All of them, for the next process. None are added from now on.
    pub(crate) fn hand_over(&self) -> Vec<DomainCheck> {
        self.lock().is_handed_over = true;
        self.list()
    }

    /// No other process has taken over.
    pub(crate) fn keep(&self) {
        self.lock().is_handed_over = false;
    }

    fn lock(&self) -> MutexGuard<'_, Checks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
