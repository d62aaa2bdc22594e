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
    /// Connections at most, at the start.
    pub limit: Option<NonZeroU32>,
    /// Gets connections when no server of a lower number can (RFC 2782).
    pub priority: u16,
}

/// Who sets a part of a server's share. The parts multiply: neither undoes the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharer {
    /// The operator.
    Operator,
    /// The server's agent.
    Agent,
}

/// The most that a server may get of its weight, in percent: HAProxy's bound for what an agent says.
const MOST_PERCENT: u16 = 25_600;

/// 100 percent by each, side by side, so that a choice loads them at once.
const SHARES: u32 = 100 << 16 | 100;

/// A server that connections go to. Shared by all workers, which count in it without a lock; on cache lines of its own, so
/// that counting one does not slow another down (two, because processors fetch them in pairs).
#[derive(Debug)]
#[repr(align(128))]
pub struct Server<T> {
    settings: ServerSettings<T>,
    /// Stands for it when connections are spread by a key, on every host alike.
    pub(crate) identity: u64,
    shares: AtomicU32,
    /// 0 for none. At first what is configured.
    limit: AtomicU32,
    in_flight: AtomicU32,
    connections: AtomicU64,
    failures: AtomicU64,
    pub(crate) ejections: AtomicU64,
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
            shares: AtomicU32::new(SHARES),
            limit: AtomicU32::new(settings.limit.map_or(0, NonZeroU32::get)),
            settings,
            in_flight: AtomicU32::new(0),
            connections: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            ejections: AtomicU64::new(0),
            health: Health::default(),
            latency: Latency::default(),
            queue,
        }
    }

    /// Whether it gets connections, and how many.
    pub fn availability(&self, now: Duration) -> Availability {
        match self.shares() {
            (0, _) | (_, 0) => Availability::Draining,
            _ => self.health.availability(now),
        }
    }

    /// Whether this one has drained it.
    pub fn is_drained_by(&self, by: Drain) -> bool {
        self.health.is_drained_by(by)
    }

    /// How much longer it is ejected for; zero where it is not.
    pub fn ejected_for(&self, now: Duration) -> Duration {
        self.health.ejected_for(now)
    }

    /// How often it was ejected since the start.
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Ordering::Relaxed)
    }

    /// Percent of its weight that operator and agent have left it, both together.
    pub fn percent(&self) -> u32 {
        let (operator, agent) = self.shares();
        match operator * agent {
            0 => 0,
            product => (product / 100).max(1),
        }
    }

    /// Sets the percentage of its weight, by who says so; 0 gives it no new connections. Returns whether that is news.
    pub fn set_percent(&self, by: Sharer, percent: u16) -> bool {
        let percent = u32::from(percent.min(MOST_PERCENT));
        let next = |shares: u32| {
            Some(match by {
                Sharer::Operator => shares & 0xffff | percent << 16,
                Sharer::Agent => shares & !0xffff | percent,
            })
        };
        let before = self.shares.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        self.queue.wake_all();
        before.ok().and_then(next) != before.ok()
    }

    /// What is left of its weight by the operator, and by the agent, in percent. At most [`MOST_PERCENT`] each.
    fn shares(&self) -> (u32, u32) {
        let shares = self.shares.load(Ordering::Relaxed);
        (shares >> 16, shares & 0xffff)
    }

    /// Connections that it gets at most, now.
    pub fn limit(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.limit.load(Ordering::Relaxed))
    }

    /// Sets how many connections it gets at most; those beyond a lower limit go on. Returns whether that is news.
    pub fn set_limit(&self, limit: Option<NonZeroU32>) -> bool {
        let limit = limit.map_or(0, NonZeroU32::get);
        let before = self.limit.swap(limit, Ordering::Relaxed);
        self.queue.wake_all();
        before != limit
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
        let (operator, agent) = self.shares();
        u64::from(self.weight.get()) * u64::from(operator * agent) * u64::from(started)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.limit().is_some_and(|limit| self.in_flight() >= limit.get())
    }

    /// Takes a place, if there is one. Never more than the limit are taken, not even for a moment.
    pub fn try_take(self: &Arc<Self>) -> Option<ServerPermit<T>> {
        match self.limit() {
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
        if server.limit().is_none() {
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
