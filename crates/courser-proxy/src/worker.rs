//! A worker: one thread, one single-threaded runtime, its own listening sockets, and everything that its connections
//! share without a lock.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::{Listener as NetListener, Socket, cpu};
use courser_telemetry::{Events, Lines};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{Notify, watch};

use crate::accept;
use crate::buffers::Buffers;
use crate::counters::Counters;
use crate::deadline::Wheel;
use crate::settings::Listener;
use crate::sharing::{Exchange, Sharing};
use crate::turn::Turn;

/// What a process does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Accepts and serves.
    Serving,
    /// Accepts no more; serves what there is.
    Draining,
    /// Drops what is left.
    Stopping,
}

/// A worker before it runs.
pub struct Worker {
    /// Counted from 0.
    pub index: u16,
    /// CPU to stay on.
    pub cpu: Option<usize>,
    /// Its own listening sockets, each with its settings.
    pub sockets: Vec<(Socket, Arc<Listener>)>,
    /// Connections at most.
    pub max_connections: usize,
    /// Its end of the connection log.
    pub lines: Lines,
    /// What it needs to share sessions by ID; `None` where there are none.
    pub sharing: Option<Sharing>,
    /// Where it counts its handshakes.
    pub counters: Arc<Counters>,
    /// What to do, from the process's main thread.
    pub phase: watch::Receiver<Phase>,
}

impl Worker {
    /// Serves until the phase says to stop, or the last connection has ended while draining. Fails only if the runtime
    /// cannot be made.
    pub fn run(self) -> io::Result<()> {
        let Self { index, cpu, sockets, max_connections, lines, sharing, counters, phase } = self;
        if let Some(cpu) = cpu {
            cpu::pin(cpu)?;
        }
        let runtime = runtime()?;
        let state =
            runtime.block_on(async { WorkerState::new(index, max_connections, lines, sharing, counters) });
        CURRENT.set(Some(Rc::clone(&state)));
        let served = runtime.block_on(serve(Rc::clone(&state), sockets, phase));
        // Connections that are still there end here, each with its line.
        drop(runtime);
        CURRENT.set(None);
        state.lines.flush();
        served
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<WorkerState>>> = const { RefCell::new(None) };
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(|| {
            CURRENT.with_borrow(|state| {
                if let Some(state) = state {
                    state.idle();
                }
            });
        })
        .build_local(LocalOptions::default())
}

async fn serve(
    state: Rc<WorkerState>,
    sockets: Vec<(Socket, Arc<Listener>)>,
    mut phase: watch::Receiver<Phase>,
) -> io::Result<()> {
    tokio::task::spawn_local(Rc::clone(&state.wheel).drive());
    let mut open = Vec::new();
    for (socket, listener) in sockets {
        let socket = Rc::new(NetListener::new(socket)?);
        let accept = accept::accept(Rc::clone(&state), Rc::clone(&socket), Arc::clone(&listener));
        open.push((tokio::task::spawn_local(accept), socket, listener));
    }
    // A main thread that is gone means stop.
    let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
    for (accepting, socket, listener) in open {
        accepting.abort();
        // Once it is gone, nobody else keeps the socket open: it closes right after the last look.
        let _ = accepting.await;
        accept::accept_queued(&state, &socket, &listener);
    }
    tokio::select! {
        () = state.drained() => {}
        _ = phase.wait_for(|phase| *phase == Phase::Stopping) => {}
    }
    Ok(())
}

/// What the connections of a worker share.
pub(crate) struct WorkerState {
    pub(crate) index: u16,
    pub(crate) buffers: Buffers,
    pub(crate) wheel: Rc<Wheel>,
    pub(crate) turn: Rc<Turn>,
    pub(crate) lines: Lines,
    pub(crate) events: Events,
    pub(crate) exchange: Option<Exchange>,
    pub(crate) counters: Arc<Counters>,
    max_connections: usize,
    open: Cell<usize>,
    opened: Cell<u64>,
    /// A connection has ended.
    closed: Notify,
}

impl WorkerState {
    fn new(
        index: u16,
        max_connections: usize,
        lines: Lines,
        sharing: Option<Sharing>,
        counters: Arc<Counters>,
    ) -> Rc<Self> {
        Rc::new(Self {
            index,
            buffers: Buffers::default(),
            wheel: Wheel::new(),
            turn: Rc::default(),
            lines,
            events: Events::default(),
            exchange: sharing.map(Exchange::new),
            counters,
            max_connections,
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
    pub(crate) async fn admission(&self) {
        self.wait_for_at_most(self.max_connections - 1).await;
    }

    /// Whether there may be one more connection.
    pub(crate) fn has_room(&self) -> bool {
        self.open.get() < self.max_connections
    }

    async fn drained(&self) {
        self.wait_for_at_most(0).await;
    }

    async fn wait_for_at_most(&self, connections: usize) {
        while self.open.get() > connections {
            self.closed.notified().await;
        }
    }

    /// The event loop has nothing to do.
    fn idle(&self) {
        self.turn.idle();
        self.lines.flush();
    }
}
