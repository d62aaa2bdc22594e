//! One server of a pool: its weight, its limit, the connections it has.

use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::hash::hash;
use crate::health::{Availability, Drain, Health};
use crate::latency::Latency;
use crate::queue::Queue;

/// What is configured of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings<T> {
    /// As it is configured, or with its address where a name has several.
    pub name: String,
    /// How it is reached.
    pub target: T,
    /// Its share among the others'.
    pub weight: NonZeroU32,
    /// Connections at most.
    pub limit: Option<NonZeroU32>,
    /// Gets connections when no server of a lower number can (RFC 2782).
    pub priority: u16,
}

/// A server that connections go to. Shared by all workers, which count in it without a lock; on cache lines of its own, so
/// that counting one does not slow another down (two, because processors fetch them in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub struct Server<T> {
    settings: ServerSettings<T>,
    /// Stands for it when connections are spread by a key, on every host alike.
    pub(crate) identity: u64,
    percent: AtomicU32,
    in_flight: AtomicU32,
    connections: AtomicU64,
    failures: AtomicU64,
    pub(crate) health: Health,
    latency: Latency,
    queue: Arc<Queue<ServerPermit<T>>>,
}

impl<T> Deref for Server<T> {
    type Target = ServerSettings<T>;

    fn deref(&self) -> &ServerSettings<T> {
        &self.settings
    }
}

impl<T> Server<T> {
    pub(crate) fn new(settings: ServerSettings<T>, queue: Arc<Queue<ServerPermit<T>>>) -> Self {
        Self {
            identity: hash(settings.name.as_bytes()),
            settings,
            percent: AtomicU32::new(100),
            in_flight: AtomicU32::new(0),
            connections: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            health: Health::default(),
            latency: Latency::default(),
            queue,
        }
    }

    /// Whether it gets connections, and how many.
    pub fn availability(&self, now: Duration) -> Availability {
        self.health.availability(now)
    }

    /// Percent of its weight that operator or agent have left it.
    pub fn percent(&self) -> u32 {
        self.percent.load(Ordering::Relaxed)
    }

    /// Sets the percentage of its weight; 0 gives it no new connections.
    pub fn set_percent(&self, percent: u32) {
        self.percent.store(percent, Ordering::Relaxed);
        self.queue.wake_all();
    }

    /// Connections that it has, those that are being made included.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Connections that it has got since the start.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections that it has failed since the start.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Microseconds that it takes to connect, of late.
    pub fn latency_micros(&self, now: Duration) -> f64 {
        self.latency.micros(now)
    }

    /// What its checks say. Returns whether that is news.
    pub fn set_down(&self, is_down: bool, now: Duration) -> bool {
        let changed = self.health.set_down(is_down, now);
        self.queue.wake_all();
        changed
    }

    /// Begins or ends a drain. Returns whether that is news.
    pub fn set_drained(&self, by: Drain, is_drained: bool, now: Duration) -> bool {
        let changed = self.health.set_drained(by, is_drained, now);
        self.queue.wake_all();
        changed
    }

    /// Counts how long it took to connect.
    pub fn connected(&self, taken: Duration, now: Duration) {
        self.latency.observe(taken, now);
    }

    /// It has sent a byte: whatever it failed before, it works. To have accepted a connection is not enough: so does a proxy
    /// in front of a dead server.
    pub fn answered(&self) {
        self.health.succeeded();
    }

    /// Counts a connection that it has failed: refused, not answered, or reset before its first byte.
    pub(crate) fn count_failure(&self) -> bool {
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.health.failed()
    }

    /// Its weight at this moment, in units that only compare: 0 for no connections.
    pub(crate) fn effective_weight(&self, availability: Availability, slow_start: bool) -> u64 {
        let started = match availability {
            Availability::Starting(percent) if slow_start => percent,
            _ => 100,
        };
        u64::from(self.weight.get()) * u64::from(self.percent()) * u64::from(started)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.limit.is_some_and(|limit| self.in_flight() >= limit.get())
    }

    /// Takes a place, if there is one. Never more than the limit are taken, not even for a moment.
    pub fn try_take(self: &Arc<Self>) -> Option<ServerPermit<T>> {
        match self.limit {
            None => {
                self.in_flight.fetch_add(1, Ordering::Relaxed);
            }
            Some(limit) => {
                let next = |taken| (taken < limit.get()).then_some(taken + 1);
                self.in_flight.fetch_update(Ordering::SeqCst, Ordering::SeqCst, next).ok()?;
            }
        }
        Some(self.place())
    }

    fn place(self: &Arc<Self>) -> ServerPermit<T> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        ServerPermit(Arc::clone(self))
    }
}

/// A place for one connection at a server, given back when it is dropped.
#[derive(Debug)]
pub struct ServerPermit<T>(Arc<Server<T>>);

impl<T> ServerPermit<T> {
    /// Where the place is.
    pub fn server(&self) -> &Arc<Server<T>> {
        &self.0
    }
}

impl<T> Drop for ServerPermit<T> {
    fn drop(&mut self) {
        let server = &self.0;
        if server.limit.is_none() {
            server.in_flight.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        // Before the look at the queue: who comes to the queue looks for a place after it is seen there.
        server.in_flight.fetch_sub(1, Ordering::SeqCst);
        if server.health.is_wanted() {
            server.queue.hand_over(|| server.try_take());
        }
    }
}
