//! What a worker does when more clients come than it can serve: the gates in front of a handshake, and who has them moved.
//!
//! The control law and the order of the line are courser-overload's. Here they meet the clock, the kernel's queues and the
//! log. In peace a connection pays for a few tests of a flag.
//!
//! 0. SYN: a filter lets in a little more than can be served, known sources first (`overload/sockets.rs`).
//! 1. Accept: nothing, while more young clients wait in the line than are served soon.
//! 2. Source: where there is no filter, as behind a balancer, what it would have dropped is dropped when its source is known.
//! 3. Hello: clients that are gone, or have waited too long.
//! 4. Line: the newest first; the oldest are sent away.
//!
//! What is done in a handshake stays the same: an attack must not make it weaker.

mod crowd;
mod sockets;
mod visitors;

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_net::{Network, Stream};
use courser_overload::{Change, Class, Control, Limits, Seen};
use courser_session::UnixSeconds;
use courser_telemetry::metrics::{Metric, Shed};
use courser_telemetry::{Counters, Events};
use tokio::sync::Notify;

use crate::clock::since_start;
use crate::handshake_budget::HandshakeBudget;
use crate::pulse::Pulse;
use crate::settings::Listener;

pub use self::crowd::{Crowd, Visitors};
pub(crate) use self::sockets::Sockets;

/// What workers do in overload.
#[derive(Clone, Debug)]
pub struct OverloadSettings {
    /// `None`: nothing.
    pub limits: Option<Limits>,
    /// Sources that are always let in.
    pub exempt: Vec<Network>,
    /// What the workers of the process share.
    pub crowd: Arc<Crowd>,
}

impl OverloadSettings {
    /// First come, first served, also those who have left.
    pub fn off() -> Self {
        Self { limits: None, exempt: Vec::new(), crowd: Arc::new(Crowd::new(Visitors::new(0), 0.0)) }
    }
}

/// The control of one worker, and its gates.
pub(crate) struct Overload {
    settings: OverloadSettings,
    control: RefCell<Control>,
    pub(crate) sockets: Sockets,
    is_on: Cell<bool>,
    /// When it began.
    began: Cell<UnixSeconds>,
    /// The worker accepts no more: there is nothing to choose.
    has_ended: Cell<bool>,
    /// Gate 1: so many may be accepted.
    credit: Cell<u32>,
    reopened: Notify,
    /// When the last tick was, and for how long the worker had been busy then.
    last: Cell<(Duration, Duration)>,
    /// Mean microseconds of a handshake.
    mean_cost: Cell<f64>,
    /// Dropped after accept since the last tick.
    shed: Cell<u32>,
}

impl Overload {
    pub(crate) fn new(settings: OverloadSettings) -> Self {
        let mut control = Control::new(settings.limits.clone().unwrap_or_default());
        control.set_capacity(settings.crowd.capacity());
        Self {
            control: RefCell::new(control),
            sockets: Sockets::default(),
            settings,
            is_on: Cell::new(false),
            began: Cell::new(UnixSeconds(0)),
            has_ended: Cell::new(false),
            credit: Cell::new(0),
            reopened: Notify::new(),
            last: Cell::default(),
            mean_cost: Cell::new(0.0),
            shed: Cell::new(0),
        }
    }

    /// Gate 1: waits until there may be one more. In overload each handshake that begins makes room for a few: an accept loop
    /// that takes all that there are would fill the event loop with clients whose ClientHello is yet to be read.
    pub(crate) async fn may_accept(&self) {
        while self.is_on.get() {
            if let Some(left) = self.credit.get().checked_sub(1) {
                self.credit.set(left);
                return;
            }
            self.reopened.notified().await;
        }
    }

    fn make_room(&self, clients: u32) {
        if self.is_on.get() {
            self.credit.set((self.credit.get() + clients).min(MOST_CREDIT));
            self.reopened.notify_waiters();
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.get()
    }

    /// A client has been served in peace: in overload it comes before those who have not.
    pub(crate) fn remember(&self, client: SocketAddr) {
        if !self.is_on.get() {
            self.settings.crowd.visitors.insert(client.ip());
        }
    }

    /// Gates 2 and 3: how a client stands in the line whose ClientHello has come, or why it is not served. `is_alone`: nobody
    /// is in front of it. `has_session`: whether it proves that it has been here by a time; asked where its address does not.
    pub(crate) fn enter(
        &self,
        source: Option<SocketAddr>,
        stream: &Stream,
        listener: &Arc<Listener>,
        is_alone: bool,
        has_session: impl FnOnce(UnixSeconds) -> bool,
    ) -> Result<Class, Shed> {
        let is_on = self.is_on.get();
        if !is_on && is_alone {
            // It does not have to stand in it.
            return Ok(Class::Other);
        }
        let is_known = source.is_some_and(|source| self.is_known(source.ip()));
        if !is_on {
            return Ok(if is_known { Class::Known } else { Class::Other });
        }
        let waited = stream.tcp_info().map(|info| info.last_received).unwrap_or_default();
        if waited > self.control.borrow().longest_wait() {
            return Err(Shed::Late);
        }
        let source = source.filter(|source| !self.is_exempt(source.ip()));
        let is_filtered = self.sockets.is_filtered(listener);
        let ip = source.map(|source| source.ip());
        let has_been_here = is_known || has_session(self.began.get());
        // Its SYN was one of a stranger's to the filter, and it stands for as many.
        let counts_as_known = if is_filtered { is_known } else { has_been_here };
        let passed = is_filtered.then_some(waited);
        let (class, share) = self.control.borrow_mut().arrived(ip, counts_as_known, passed);
        let class = if has_been_here && class == Class::Other { Class::Known } else { class };
        let is_over = |source: SocketAddr| !is_filtered && self.sockets.draw(source) >= share;
        if source.is_some_and(is_over) { Err(Shed::Source) } else { Ok(class) }
    }

    /// A handshake begins, and makes room for others.
    pub(crate) fn begin(&self) {
        self.make_room(ROOM);
    }

    /// A client is not served.
    pub(crate) fn shed(&self) {
        self.shed.set(self.shed.get() + 1);
        self.make_room(1);
    }

    /// A handshake of this source has cost so much: it is charged for more or less than one.
    pub(crate) fn charge(&self, source: Option<IpAddr>, cost: Duration) {
        let cost = cost.as_secs_f64() * 1e6;
        let mean = self.mean_cost.get();
        self.mean_cost.set(if mean > 0.0 { mean + (cost - mean) / 64.0 } else { cost });
        if self.is_on.get() && mean > 0.0 {
            let is_known = source.is_some_and(|source| self.is_known(source));
            self.control.borrow_mut().charge(source, is_known, cost / mean - 1.0);
        }
    }

    fn is_known(&self, source: IpAddr) -> bool {
        self.settings.crowd.visitors.contains(source) || self.is_exempt(source)
    }

    fn is_exempt(&self, source: IpAddr) -> bool {
        self.settings.exempt.iter().any(|network| network.contains(source))
    }

    /// Whether it watches the line at all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.settings.limits.is_some() && !self.has_ended.get()
    }

    /// Looks at the line. Returns whether there is anything to watch.
    pub(crate) fn tick(
        &self,
        budget: &HandshakeBudget,
        pulse: &Pulse,
        counters: &Counters,
        events: &Events,
    ) -> bool {
        let now = since_start();
        pulse.turn(now);
        let (last, busy_before) = self.last.replace((now, pulse.busy()));
        let busy = pulse.busy() - busy_before;
        if self.is_on.get() {
            budget.shed_older(now, self.control.borrow().longest_wait());
        }
        let kernel = self.sockets.look();
        let (waiting, longest_wait, young) = budget.line(|line| {
            (line.waiting(), line.longest_wait(now), line.younger_than(now, self.control.borrow().young()))
        });
        let seen = Seen {
            served: budget.take_begun(),
            waiting,
            longest_wait,
            cost: Duration::from_secs_f64(self.mean_cost.get() / 1e6),
            dropped: kernel.dropped,
            is_queue_full: kernel.is_full,
            rested: (now - last).saturating_sub(busy),
        };
        let mut control = self.control.borrow_mut();
        let change = control.tick(now, &seen);
        self.settings.crowd.set_capacity(control.capacity());
        self.is_on.set(control.is_overload());
        budget.set_overload(control.is_overload());
        if let Some(change) = change {
            if change == Change::Began {
                self.began.set(unix_now());
            }
            self.sockets.apply(&control, change, &self.settings, events);
        }
        if self.is_on.get() || change == Some(Change::Ended) {
            counters.add(Metric::Shed, Shed::Syn as usize, kernel.dropped.into());
            let refused = kernel.dropped.saturating_add(self.shed.replace(0));
            self.settings.crowd.report(change, now, refused, control.shares());
        }
        if control.accepts(young) {
            // Also where no handshake begins that makes room.
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is small and positive"
            )]
            let room =
                (control.capacity() * TICK.as_secs_f64() * 2.0).clamp(1.0, f64::from(MOST_CREDIT)) as u32;
            self.make_room(room.saturating_sub(self.credit.get()));
        } else {
            self.credit.set(0);
        }
        if change == Some(Change::Ended) {
            self.reopened.notify_waiters();
        }
        self.is_on.get() || waiting > 0
    }

    /// The worker has closed its sockets, or left them to another process. It serves who has got in.
    pub(crate) fn end(&self, budget: &HandshakeBudget) {
        self.has_ended.set(true);
        budget.set_overload(false);
        if self.is_on.replace(false) {
            self.settings.crowd.leave();
        }
    }
}

fn unix_now() -> UnixSeconds {
    UnixSeconds(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
}

/// How often the line is looked at: a tenth of the time after which overload is certain.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Clients for whom a handshake that begins makes room. By more than one, the line always has a choice.
const ROOM: u32 = 2;

/// Clients that may be accepted before one of them is read.
const MOST_CREDIT: u32 = 64;
