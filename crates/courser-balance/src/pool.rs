//! A pool of servers, shared by all workers.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::affinity::{self, AffinityKey};
use crate::balance::{Balance, Draw};
use crate::health::Availability;
use crate::queue::{Queue, Waiting};
use crate::retry::RetryBudget;
use crate::server::{Server, ServerPermit, ServerSettings};

/// Servers, and how connections are distributed to them.
#[derive(Debug)]
pub struct Pool<T> {
    servers: Servers<T>,
    balance: Balance,
    queue: Arc<Queue<ServerPermit<T>>>,
    /// Further attempts of its connections.
    pub retries: RetryBudget,
    /// Whether servers that are down or ejected get connections because no other one is left.
    is_desperate: AtomicBool,
}

#[derive(Debug)]
enum Servers<T> {
    Fixed(Box<[Arc<Server<T>>]>),
    /// Those of names: the lock is held for the length of a copy of one pointer.
    Changing(Mutex<Arc<[Arc<Server<T>>]>>),
}

/// The servers at one moment.
pub enum Current<'a, T> {
    /// For good.
    Fixed(&'a [Arc<Server<T>>]),
    /// Until a name has other addresses.
    Shared(Arc<[Arc<Server<T>>]>),
}

impl<T> Deref for Current<'_, T> {
    type Target = [Arc<Server<T>>];

    fn deref(&self) -> &[Arc<Server<T>>] {
        match self {
            Self::Fixed(servers) => servers,
            Self::Shared(servers) => servers,
        }
    }
}

/// Where a connection may go.
#[derive(Debug)]
pub enum Pick<T> {
    /// To this server, at which it has a place.
    Server(ServerPermit<T>),
    /// Nowhere yet: every server that could take it is full.
    Full,
    /// Nowhere: there is no server, or each was tried or is drained.
    None,
}

/// A connection that wants a server.
#[derive(Debug)]
pub struct Request<'a, T> {
    /// Number of the connection among its worker's.
    pub number: u64,
    /// Of the worker.
    pub seed: u64,
    /// What keeps it at its server.
    pub key: Option<AffinityKey>,
    /// Servers that have failed it.
    pub tried: &'a [Arc<Server<T>>],
}

impl<T> Pool<T> {
    /// A pool without servers, whose servers change if `changes`.
    pub fn new(balance: Balance, changes: bool) -> Self {
        let servers = match changes {
            true => Servers::Changing(Mutex::new(Arc::new([]))),
            false => Servers::Fixed(Box::new([])),
        };
        Self {
            servers,
            balance,
            queue: Arc::default(),
            retries: RetryBudget::default(),
            is_desperate: AtomicBool::new(false),
        }
    }

    /// A server for this pool, which has to be put into it.
    pub fn server(&self, settings: ServerSettings<T>) -> Arc<Server<T>> {
        Arc::new(Server::new(settings, Arc::clone(&self.queue)))
    }

    /// With these servers for good.
    pub fn with(mut self, servers: Vec<Arc<Server<T>>>) -> Self {
        self.servers = Servers::Fixed(servers.into());
        self
    }

    /// Replaces the servers of a pool that changes. Connections at those that are gone go on.
    pub fn replace(&self, servers: Vec<Arc<Server<T>>>) {
        if let Servers::Changing(current) = &self.servers {
            *current.lock().unwrap_or_else(PoisonError::into_inner) = servers.into();
            self.queue.wake_all();
        }
    }

    /// The servers of this moment.
    pub fn servers(&self) -> Current<'_, T> {
        match &self.servers {
            Servers::Fixed(servers) => Current::Fixed(servers),
            Servers::Changing(current) => {
                Current::Shared(Arc::clone(&*current.lock().unwrap_or_else(PoisonError::into_inner)))
            }
        }
    }

    /// Connections that wait for a place.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Chooses a server, and takes a place at it. Whoever comes while others wait for a place waits too.
    pub fn choose(&self, request: &Request<'_, T>, now: Duration) -> Pick<T> {
        let servers = self.servers();
        if let [only] = &*servers
            && !only.is_full()
            && request.tried.is_empty()
            && only.availability(now).is_last_resort()
            && let Some(place) = only.try_take()
        {
            return Pick::Server(place);
        }
        self.choose_among(&servers, request, now)
    }

    /// Joins those who wait for a place, after a choice that was [`Pick::Full`]. `since` is when the connection began to wait.
    ///
    /// # Errors
    /// The wait, unless there is something else to be done by now.
    pub fn wait(
        &self,
        request: &Request<'_, T>,
        since: Duration,
        patience: Duration,
        now: Duration,
    ) -> Result<Pick<T>, Waiting<ServerPermit<T>>> {
        self.queue.join(since, now, patience, || match self.choose(request, now) {
            Pick::Full => None,
            choice => Some(choice),
        })
    }

    /// Counts a connection that a server has failed. Returns how long the server is ejected for, if it is now: after the third
    /// in a row, unless half the pool is out already.
    pub fn failed(&self, server: &Server<T>, now: Duration) -> Option<Duration> {
        if !server.count_failure() {
            return None;
        }
        let servers = self.servers();
        let out = servers.iter().filter(|server| !server.availability(now).is_good()).count();
        if (out + 1) * 2 > servers.len() {
            return None;
        }
        let ejected = server.health.eject(now)?;
        server.ejections.fetch_add(1, Ordering::Relaxed);
        Some(ejected)
    }

    /// Sets whether the last choices had to make do with servers that are down or ejected. Returns whether that is news.
    pub fn set_desperate(&self, is_desperate: bool) -> bool {
        // Loaded first: a store would take the line from all workers for each connection.
        self.is_desperate.load(Ordering::Relaxed) != is_desperate
            && self.is_desperate.swap(is_desperate, Ordering::Relaxed) != is_desperate
    }

    fn choose_among(&self, servers: &[Arc<Server<T>>], request: &Request<'_, T>, now: Duration) -> Pick<T> {
        let is_untried =
            |server: &Server<T>| !request.tried.iter().any(|tried| std::ptr::eq(&**tried, server));
        let is_good = |server: &Server<T>| server.availability(now).is_good() && is_untried(server);
        let priorities = servers.iter().filter(|server| is_good(server)).map(|server| server.priority);
        let first = priorities.min();
        let good = |server: &Server<T>| {
            let is_eligible = Some(server.priority) == first && is_good(server);
            is_eligible.then(|| server.availability(now))
        };
        let last_resort = |server: &Server<T>| {
            let availability = server.availability(now);
            (availability.is_last_resort() && is_untried(server)).then_some(availability)
        };
        match self.take(servers, request, now, good) {
            Pick::None => self.take(servers, request, now, last_resort),
            choice => choice,
        }
    }

    /// Takes a place among the servers that are `eligible`.
    fn take(
        &self,
        servers: &[Arc<Server<T>>],
        request: &Request<'_, T>,
        now: Duration,
        eligible: impl Fn(&Server<T>) -> Option<Availability>,
    ) -> Pick<T> {
        let all = || servers.iter().filter_map(|server| eligible(server));
        if all().next().is_none() {
            return Pick::None;
        }
        // Where all are starting, none is slower to start than the others.
        let slow_start = all().any(|availability| !matches!(availability, Availability::Starting(_)));
        let weight = |server: &Server<T>| match eligible(server) {
            Some(availability) if !server.is_full() => {
                server.effective_weight(availability, slow_start).max(1)
            }
            _ => 0,
        };
        let turn = Draw { number: request.number, seed: request.seed, now };
        // Another worker may take the last place of a server between the look and the take.
        for _ in 0..=servers.len() {
            let kept = request.key.and_then(|key| affinity::choose(key, servers, weight));
            let chosen = kept.or_else(|| self.balance.choose(servers, turn, weight));
            match chosen.map(Server::try_take) {
                None => return Pick::Full,
                Some(Some(place)) => return Pick::Server(place),
                Some(None) => {}
            }
        }
        Pick::Full
    }
}
