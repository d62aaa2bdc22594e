//! How many connections the process may have open, over all its workers, and who waits at the limit.
//!
//! One number for all: a limit for each worker would have clients wait at a full one while others have room.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use courser_telemetry::Events;
use tokio::sync::Notify;

/// The connections of the process, counted.
#[derive(Debug)]
pub struct Admission {
    limit: usize,
    open: AtomicUsize,
    /// Accept loops that wait for room.
    waiting: AtomicUsize,
    /// There is room for one more.
    freed: Notify,
    /// The limit was reached, and that was logged.
    is_reported: AtomicBool,
}

impl Admission {
    /// At most `most` connections, at least one.
    pub fn new(most: usize) -> Self {
        let (open, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { limit: most.max(1), open, waiting, freed: Notify::new(), is_reported: AtomicBool::new(false) }
    }

    /// Connections at most.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Waits until there is room for one more connection, and counts it.
    pub(crate) async fn enter(&self, events: &Events) {
        if self.try_enter() {
            return;
        }
        self.report_full(events);
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let mut freed = pin!(self.freed.notified());
            // From here on no notification is missed.
            freed.as_mut().enable();
            if self.try_enter() {
                return;
            }
            freed.await;
        }
    }

    /// Counts one more connection, if there is room.
    pub(crate) fn try_enter(&self) -> bool {
        let one_more = |open: usize| (open < self.limit).then_some(open + 1);
        self.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more).is_ok()
    }

    pub(crate) fn leave(&self, events: &Events) {
        let open = self.open.fetch_sub(1, Ordering::SeqCst) - 1;
        // Whoever waits has said so before it found no room.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_one();
        }
        if self.is_reported.load(Ordering::Relaxed) && open <= self.room_again() {
            self.report_room(events);
        }
    }

    /// So much below the limit that the next connection does not reach it again at once.
    fn room_again(&self) -> usize {
        self.limit - (self.limit / 16).max(1)
    }

    #[cold]
    fn report_full(&self, events: &Events) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            let most = self.limit;
            events.warn(
                "max_connections",
                format_args!(
                    "{most} connections are open, as many as max_connections allows: further clients wait"
                ),
            );
        }
    }

    #[cold]
    fn report_room(&self, events: &Events) {
        if self.is_reported.swap(false, Ordering::Relaxed) {
            let open = self.open();
            events.warn("max_connections", format_args!("{open} connections are open: clients wait no more"));
        }
    }
}

/// Counted among those who wait, also when the wait is given up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn there_are_never_more_than_the_limit_and_nobody_waits_for_ever() {
        const MOST: usize = 3;
        let admission = Arc::new(Admission::new(MOST));
        let worker = |_| {
            let admission = Arc::clone(&admission);
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let events = Events::default();
                runtime.block_on(async {
                    for _ in 0..2_000 {
                        admission.enter(&events).await;
                        assert!(admission.open() <= MOST);
                        tokio::task::yield_now().await;
                        admission.leave(&events);
                    }
                });
            })
        };
        let workers: Vec<_> = (0..8).map(worker).collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(admission.open(), 0);
    }

    #[test]
    fn the_limit_is_told_once_until_there_is_clearly_room_again() {
        let (admission, events) = (Admission::new(32), Events::default());
        assert!((0..32).all(|_| admission.try_enter()) && !admission.try_enter());
        admission.report_full(&events);
        admission.leave(&events);
        assert!(admission.is_reported.load(Ordering::Relaxed), "one place is no room");
        admission.leave(&events);
        assert!(!admission.is_reported.load(Ordering::Relaxed));
    }
}
