//! Who waits for a place at a server of the pool. A place that is given back is handed to one of them, so that nobody who
//! comes later can take it.
//!
//! First come, first served, until the oldest has waited for half its time: then the pool is overloaded, and whoever came
//! last is served first. Otherwise everyone would be served shortly before giving up (CoDel's authors call it "LIFO when
//! overloaded"; Facebook, "Fail at Scale", ACM Queue 2015).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Queue<P> {
    /// Those in line and those about to join: read without the lock by everyone who gives a place back.
    coming: AtomicUsize,
    /// Who joins sets how long one waits at most.
    line: Mutex<Line<P>>,
}

#[derive(Debug)]
struct Line<P> {
    /// In order of their coming.
    waiters: VecDeque<Arc<Waiter<P>>>,
    /// Serves the newest first.
    is_overloaded: bool,
}

#[derive(Debug)]
struct Waiter<P> {
    since: Duration,
    slot: Mutex<Slot<P>>,
}

#[derive(Debug)]
enum Slot<P> {
    Waiting(Waker),
    Handed(Handover<P>),
    Taken,
}

/// What a wait ends with.
#[derive(Debug)]
pub enum Handover<P> {
    /// A place.
    Permit(P),
    /// The pool has changed: there may be one now.
    Changed,
}

impl<P> Default for Queue<P> {
    fn default() -> Self {
        let line = Line { waiters: VecDeque::new(), is_overloaded: false };
        Self { coming: AtomicUsize::new(0), line: Mutex::new(line) }
    }
}

impl<P> Queue<P> {
    pub(crate) fn is_empty(&self) -> bool {
        self.coming.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.coming.load(Ordering::Relaxed)
    }

    /// Joins the line for who has waited since `since`, unless `try_again` finds a place after all: one that was given back before anybody could see that
    /// somebody comes.
    pub(crate) fn join<R>(
        self: &Arc<Self>,
        since: Duration,
        now: Duration,
        patience: Duration,
        try_again: impl FnOnce() -> Option<R>,
    ) -> Result<R, Waiting<P>> {
        self.coming.fetch_add(1, Ordering::SeqCst);
        let mut line = lock(&self.line);
        if let Some(found) = try_again() {
            self.coming.fetch_sub(1, Ordering::SeqCst);
            return Ok(found);
        }
        let waiter = Arc::new(Waiter { since, slot: Mutex::new(Slot::Waiting(Waker::noop().clone())) });
        let place = line.waiters.partition_point(|other| other.since <= since);
        line.waiters.insert(place, Arc::clone(&waiter));
        let oldest = line.waiters.front().map_or(now, |oldest| oldest.since);
        line.is_overloaded = now.saturating_sub(oldest) >= patience / 2;
        Err(Waiting { queue: Arc::clone(self), waiter })
    }

    /// Gives a place to the next in line, if there is one and `take` still finds a place.
    pub(crate) fn hand_over(&self, take: impl FnOnce() -> Option<P>) {
        if self.is_empty() {
            return;
        }
        let mut line = lock(&self.line);
        if line.waiters.is_empty() {
            return;
        }
        let Some(place) = take() else { return };
        let next = if line.is_overloaded { line.waiters.pop_back() } else { line.waiters.pop_front() };
        self.coming.fetch_sub(1, Ordering::SeqCst);
        drop(line);
        if let Some(waiter) = next {
            waiter.give(Handover::Permit(place));
        }
    }

    /// Lets everyone in line look at the pool again.
    pub(crate) fn wake_all(&self) {
        if self.is_empty() {
            return;
        }
        let waiters = std::mem::take(&mut lock(&self.line).waiters);
        self.coming.fetch_sub(waiters.len(), Ordering::SeqCst);
        for waiter in waiters {
            waiter.give(Handover::Changed);
        }
    }
}

impl<P> Waiter<P> {
    fn give(&self, handover: Handover<P>) {
        let mut slot = lock(&self.slot);
        if let Slot::Waiting(waker) = std::mem::replace(&mut *slot, Slot::Handed(handover)) {
            drop(slot);
            waker.wake();
        }
    }
}

/// A place in the line. Whoever drops it leaves the line; a place that was handed over meanwhile goes to the next one.
#[derive(Debug)]
pub struct Waiting<P> {
    queue: Arc<Queue<P>>,
    waiter: Arc<Waiter<P>>,
}

impl<P> Waiting<P> {
    /// When the wait began; whoever joins again after [`Handover::Changed`] counts from there.
    pub fn since(&self) -> Duration {
        self.waiter.since
    }

    /// Ready when something was handed over, once.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Handover<P>> {
        let mut slot = lock(&self.waiter.slot);
        match &mut *slot {
            Slot::Waiting(waker) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            Slot::Taken => Poll::Pending,
            Slot::Handed(_) => match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::Handed(handover) => Poll::Ready(handover),
                Slot::Waiting(_) | Slot::Taken => Poll::Pending,
            },
        }
    }
}

impl<P> Drop for Waiting<P> {
    fn drop(&mut self) {
        let mut line = lock(&self.queue.line);
        let before = line.waiters.len();
        line.waiters.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
        if line.waiters.len() < before {
            self.queue.coming.fetch_sub(1, Ordering::SeqCst);
        }
        drop(line);
        // A place in the slot goes back when the slot does, and from there to the next in line.
        let handed = std::mem::replace(&mut *lock(&self.waiter.slot), Slot::Taken);
        drop(handed);
    }
}

fn lock<S>(mutex: &Mutex<S>) -> MutexGuard<'_, S> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
