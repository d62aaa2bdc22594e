//! What a thread of the generator lends to its connections.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use courser_net::{ConnectError, Connector, Stream, timer};
use tokio::sync::Notify;

use crate::attempt::Client;
use crate::offered::Session;
use crate::origin::OriginSockets;
use crate::plan::{Plan, Reuse};
use crate::tally::ThreadStats;

/// One connection in this many has its segments counted: asking the kernel costs a system call.
const SAMPLED: u64 = 64;

/// What the threads of a run share with its observer.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// The run is to end now: what is open is given the drain's time.
    pub(crate) stop: AtomicBool,
    /// Connections held open.
    pub(crate) held: AtomicU64,
}

/// What a thread lends to its connections.
pub(crate) struct Worker {
    pub(crate) plan: Arc<Plan>,
    pub(crate) stats: RefCell<ThreadStats>,
    pub(crate) buffers: Rc<crate::channel::Buffers>,
    pub(crate) start: Duration,
    connectors: Vec<Connector>,
    pub(crate) control: Arc<Control>,
    /// Its thread, counted from 0.
    index: usize,
    /// Connections and clients so far: what takes turns goes by them.
    connections: Cell<u64>,
    pub(crate) clients: Cell<u64>,
    random: RefCell<fastrand::Rng>,
    /// Clients between two connections.
    pub(crate) resting: RefCell<VecDeque<Client>>,
    pub(crate) over: Cell<bool>,
    /// The least time from a request to the first byte of its answer so far: no round trip takes longer. 0 before the first.
    pub(crate) fastest_answer: Cell<Duration>,
    pub(crate) idle: Notify,
}

impl Worker {
    pub(crate) fn new(plan: &Arc<Plan>, thread: usize, start: Duration, control: &Arc<Control>) -> Self {
        let sources = plan.sockets.sources.iter().map(|source| Some(*source));
        let sources: Vec<_> = if plan.sockets.sources.is_empty() { vec![None] } else { sources.collect() };
        let connector = |source| Connector { source, nodelay: !plan.sockets.nagle };
        let windows = plan.windows().iter().map(|window| (window.from, window.to)).collect();
        let index = thread as u64;
        Self {
            plan: Arc::clone(plan),
            stats: RefCell::new(ThreadStats::new(windows)),
            buffers: Rc::default(),
            start,
            connectors: sources.into_iter().map(connector).collect(),
            control: Arc::clone(control),
            index: thread,
            connections: Cell::new(index),
            clients: Cell::new(index),
            random: RefCell::new(fastrand::Rng::with_seed(plan.seed ^ index)),
            resting: RefCell::default(),
            over: Cell::new(false),
            fastest_answer: Cell::default(),
            idle: Notify::new(),
        }
    }

    /// The origin, if this thread serves it.
    pub(crate) fn origin(&self) -> Option<&OriginSockets> {
        self.plan.origin.as_ref().filter(|_| self.index == 0)
    }

    /// Time since the start of the run.
    pub(crate) fn now(&self) -> Duration {
        timer::now().saturating_sub(self.start)
    }

    /// Whether the steady phase is over: nothing new starts.
    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Whether the next connection is looked at closely.
    pub(crate) fn samples(&self) -> bool {
        self.connections.get().is_multiple_of(SAMPLED)
    }

    /// Connects a client.
    pub(crate) async fn connect(&self, client: &Client) -> Result<Stream, ConnectError> {
        let index = self.connections.replace(self.connections.get() + 1);
        self.connectors[in_turn(index, self.connectors.len())].connect(self.address(client)).await
    }

    /// Where a client connects to: each of its connections goes to the address after that of the one before.
    pub(crate) fn address(&self, client: &Client) -> SocketAddr {
        let addresses = &self.plan.target.addresses;
        addresses[in_turn(client.number.wrapping_add(client.used.into()), addresses.len())]
    }

    /// Whether a ClientHello offers what was asked.
    pub(crate) fn check(&self, hello: &[u8], has_session: bool) -> Result<Session, String> {
        self.plan
            .target
            .security
            .as_ref()
            .map_or(Ok(Session::None), |tls| tls.check.offer(hello, has_session))
    }

    /// Whether the first request goes out with the ClientHello where the session allows it.
    pub(crate) fn sends_early(&self) -> bool {
        self.plan.target.security.as_ref().is_some_and(|tls| tls.early_data)
    }

    /// Whether a connection without HTTP/2 has failed.
    pub(crate) fn requires_http2(&self) -> bool {
        self.plan.target.security.as_ref().is_some_and(|tls| tls.requires_http2)
    }

    pub(crate) fn hold(&self) {
        self.control.held.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn release(&self) {
        self.control.held.fetch_sub(1, Ordering::Relaxed);
    }

    /// Called when a connection has ended.
    pub(crate) fn notify_if_idle(&self) {
        if self.stats.borrow().in_flight == 0 {
            self.idle.notify_waiters();
        }
    }

    pub(crate) fn client(&self) -> Client {
        let index = self.clients.replace(self.clients.get() + self.plan.threads.len() as u64);
        let security = self.plan.target.security.as_ref();
        let name = security.map(|tls| tls.names.pick(index, &mut self.random.borrow_mut()).clone());
        Client { name, sessions: Default::default(), number: index, used: 0, was_served: false }
    }

    /// Whether a client of so many connections starts a new session with the next one.
    pub(crate) fn is_spent(&self, client: &Client) -> bool {
        matches!(self.plan.reuse, Reuse::Times(times) if client.used >= times)
    }
}

fn in_turn(index: u64, count: usize) -> usize {
    usize::try_from(index).unwrap_or(0) % count
}
