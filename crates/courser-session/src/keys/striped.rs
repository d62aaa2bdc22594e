//! A value that every thread reads and hardly anyone writes. May not be held on to: what was read is dropped at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// The same value in each stripe. A thread reads its own, so no two workers meet at a lock. Wholly lock-free would
/// be a value per thread, but then a thread that sleeps keeps old keys alive.
pub(super) struct Striped<T>(Box<[Stripe<T>]>);

/// Two cache lines apart: processors fetch lines in pairs.
#[repr(align(128))]
struct Stripe<T>(RwLock<Arc<T>>);

impl<T> Striped<T> {
    pub(super) fn new(value: T) -> Self {
        let value = Arc::new(value);
        Self((0..STRIPES).map(|_| Stripe(RwLock::new(Arc::clone(&value)))).collect())
    }

    /// The value, for as long as the guard lives: meanwhile it cannot be replaced.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Arc<T>> {
        self.0[stripe_of_this_thread()].0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts `value` in place of the old one, which is dropped with its last reader.
    pub(super) fn replace(&self, value: T) -> Arc<T> {
        let value = Arc::new(value);
        for stripe in &self.0 {
            *stripe.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&value);
        }
        value
    }
}

/// Threads are numbered as they first come here, so up to this many workers have a stripe each.
fn stripe_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static STRIPE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    STRIPE.with(|stripe| *stripe)
}

/// Enough that each worker of a large machine has its own; 128 bytes each.
const STRIPES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker that sleeps through a roll must not keep the old keys in memory.
    #[test]
    fn whoever_replaces_the_value_takes_the_old_one_from_all() {
        let striped = Striped::new(1);
        let old = Arc::downgrade(&striped.read());
        striped.replace(2);
        assert!(striped.0.iter().all(|stripe| **stripe.0.read().unwrap() == 2));
        assert!(old.upgrade().is_none(), "the old value is still held");
    }
}
