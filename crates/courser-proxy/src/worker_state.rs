//! What the connections of a worker share, without a lock.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use courser_sharing::{RemoteSessions, Sharing};
use courser_telemetry::{Counters, Events, Lines};
use tokio::sync::Notify;

use crate::admission::Admission;
use crate::buffers::Buffers;
use crate::challenges::Challenges;
use crate::clock::since_start;
use crate::deadline::Wheel;
use crate::handshake_budget::HandshakeBudget;
use crate::overload::{Overload, OverloadSettings};
use crate::pulse::Pulse;
use crate::supervision::Tasks;

pub(crate) struct WorkerState {
    pub(crate) index: u16,
    pub(crate) tasks: Tasks,
    pub(crate) buffers: Buffers,
    pub(crate) wheel: Rc<Wheel>,
    pub(crate) handshake_budget: Rc<HandshakeBudget>,
    pub(crate) overload: Overload,
    pub(crate) lines: Lines,
    pub(crate) events: Events,
    pub(crate) remote_sessions: Option<RemoteSessions>,
    pub(crate) challenges: Arc<Challenges>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) pulse: Arc<Pulse>,
    admission: Arc<Admission>,
    pub(crate) open: Cell<usize>,
    opened: Cell<u64>,
    /// A connection has ended.
    closed: Notify,
}

/// Leave for one connection of a worker, counted as long as it is held.
pub(crate) struct Permit(Rc<WorkerState>);

impl Permit {
    pub(crate) fn worker(&self) -> Rc<WorkerState> {
        Rc::clone(&self.0)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.admission.leave(&self.0.events);
    }
}

impl WorkerState {
    pub(crate) fn new(
        index: u16,
        admission: Arc<Admission>,
        lines: Lines,
        sharing: Option<Sharing>,
        challenges: Arc<Challenges>,
        (counters, pulse): (Arc<Counters>, Arc<Pulse>),
        overload: OverloadSettings,
    ) -> Rc<Self> {
        let tasks = Tasks::default();
        Rc::new(Self {
            index,
            buffers: Buffers::default(),
            wheel: Wheel::new(),
            handshake_budget: HandshakeBudget::new(tasks.clone()),
            overload: Overload::new(overload),
            lines,
            events: Events::default(),
            remote_sessions: sharing.map(|sharing| {
                RemoteSessions::new(sharing, |connector| {
                    tasks.spawn("session store's connector", connector).abort_handle()
                })
            }),
            tasks,
            challenges,
            counters,
            pulse,
            admission,
            open: Cell::new(0),
            opened: Cell::new(0),
            closed: Notify::new(),
        })
    }

    /// Counts a connection and returns its number.
    pub(crate) fn connection_opened(&self) -> u64 {
        self.open.set(self.open.get() + 1);
        self.opened.set(self.opened.get() + 1);
        self.opened.get()
    }

    pub(crate) fn connection_closed(&self) {
        self.open.set(self.open.get() - 1);
        self.closed.notify_waiters();
    }

    /// Waits until there may be one more connection.
    pub(crate) async fn admit(self: &Rc<Self>) -> Permit {
        self.admission.enter(&self.events).await;
        Permit(Rc::clone(self))
    }

    /// Leave for one more connection, if there is room.
    pub(crate) fn try_admit(self: &Rc<Self>) -> Option<Permit> {
        self.admission.try_enter().then(|| Permit(Rc::clone(self)))
    }

    pub(crate) async fn drained(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }

    /// The event loop has nothing to do.
    pub(crate) fn on_idle(&self) {
        self.handshake_budget.reset();
        self.lines.flush();
        self.pulse.rest(since_start());
    }
}
