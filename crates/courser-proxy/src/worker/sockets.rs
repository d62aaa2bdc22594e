//! The listening sockets of a worker, from the generation that names them to their end: who was promised a connection gets it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use courser_net::syn_filter::SynFilter;
use courser_net::{Address, AsyncListener, ListenSocket};
use courser_telemetry::metrics::AcceptQueue;
use tokio::task::JoinHandle;

use super::Listeners;
use crate::accept;
use crate::settings::Listener;
use crate::worker_state::WorkerState;

/// How long handshakes of TCP that have begun may take, at a socket that is removed: longer than nearly all round trips.
const HALF_OPEN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Sockets {
    serving: Vec<Serving>,
    /// The ends of those that are being removed.
    removed: Vec<JoinHandle<()>>,
}

impl Sockets {
    /// Serves new connections by these listeners, at the sockets that they name: those of before, and `opened`. The others
    /// are removed.
    pub(super) fn swap(
        &mut self,
        state: &Rc<WorkerState>,
        listeners: &Listeners,
        opened: Vec<ListenSocket>,
    ) -> io::Result<()> {
        self.removed.retain(|end| !end.is_finished());
        for socket in std::mem::take(&mut self.serving) {
            match listeners.get(socket.socket.address()) {
                Some(listener) => {
                    // One that cannot be set keeps its earlier times, which watch peers as well.
                    let _ = socket.socket.set_liveness(&listener.default.forwarding.liveness);
                    socket.listener.replace(Arc::clone(listener));
                    self.serving.push(socket);
                }
                None => self.removed.push(socket.remove(state)),
            }
        }
        for socket in opened {
            if let Some(listener) = listeners.get(socket.address()) {
                self.serving.push(Serving::start(state, socket, listener)?);
            }
        }
        Ok(())
    }

    /// Counts the clients that wait at each listener. Of a socket that workers share one says it for all.
    pub(super) fn measure(&self, state: &WorkerState) {
        let mut queues = BTreeMap::new();
        for serving in self.serving.iter().filter(|serving| !serving.socket.is_copy()) {
            let listener = Arc::clone(&serving.listener.borrow());
            let Ok(Some(found)) = serving.socket.accept_queue() else { continue };
            let before = serving.dropped.replace(found.dropped);
            let (_, sum) = queues.entry(listener.name.clone()).or_insert_with(|| {
                let dropped = listener.counters.of(state.index).queue().dropped;
                (listener, AcceptQueue { dropped, ..AcceptQueue::default() })
            });
            sum.length += u64::from(found.length);
            sum.limit += u64::from(found.limit);
            sum.dropped += u64::from(found.dropped.wrapping_sub(before));
        }
        queues.into_values().for_each(|(listener, queue)| listener.counters.of(state.index).set_queue(queue));
    }

    /// A descriptor of each, for another process. Their filters come off here and not when this one leaves: until then it may be
    /// killed, and by then they may be the other one's.
    pub(super) fn share(&self, state: &WorkerState) -> io::Result<Vec<ListenSocket>> {
        self.serving.iter().for_each(|serving| state.overload.sockets.remove(&serving.socket));
        self.serving.iter().map(|serving| serving.socket.share()).collect()
    }

    /// No other process serves what was [shared](Self::share).
    pub(super) fn reclaim(&self, state: &WorkerState) {
        for Serving { socket, listener, .. } in &self.serving {
            state.overload.sockets.add(socket, listener);
        }
    }

    /// Closes all at once, and serves who is in their queues.
    pub(super) async fn close(&mut self, state: &Rc<WorkerState>) {
        for socket in self.serving.drain(..) {
            socket.close(state).await;
        }
    }

    /// Leaves those whose addresses are in `kept` to another process, queues included, and removes the others.
    pub(super) async fn leave(&mut self, state: &Rc<WorkerState>, kept: &HashSet<Address>) {
        for socket in self.serving.drain(..) {
            if kept.contains(socket.socket.address()) {
                socket.stop_accepting().await;
            } else {
                self.removed.push(socket.remove(state));
            }
        }
    }

    /// Waits until those that are being removed are gone.
    pub(super) async fn removed(&mut self) {
        for end in self.removed.drain(..) {
            // One that panics is the worker's failure.
            let _ = end.await;
        }
    }
}

struct Serving {
    socket: Rc<AsyncListener>,
    /// By the kernel, when it was asked last.
    dropped: Cell<u32>,
    /// The listener of the next connection.
    listener: Rc<RefCell<Arc<Listener>>>,
    accepting: JoinHandle<()>,
}

impl Serving {
    fn start(state: &Rc<WorkerState>, socket: ListenSocket, listener: &Arc<Listener>) -> io::Result<Self> {
        let (socket, listener) =
            (Rc::new(AsyncListener::new(socket)?), Rc::new(RefCell::new(Arc::clone(listener))));
        state.overload.sockets.add(&socket, &listener);
        let accept = accept::accept(Rc::clone(state), Rc::clone(&socket), Rc::clone(&listener));
        let accepting = state.tasks.spawn("accept loop", accept);
        Ok(Self { accepting, socket, dropped: Cell::default(), listener })
    }

    /// The accept loop's hold on the socket goes with it, so that the socket closes right after the last look.
    async fn stop_accepting(self) -> (Rc<AsyncListener>, Arc<Listener>) {
        let Self { socket, listener, accepting, .. } = self;
        accepting.abort();
        let _ = accepting.await;
        (socket, Rc::unwrap_or_clone(listener).into_inner())
    }

    async fn close(self, state: &Rc<WorkerState>) {
        state.overload.sockets.remove(&self.socket);
        let (socket, listener) = self.stop_accepting().await;
        accept::accept_queued(state, &socket, &listener);
    }

    /// Closes the socket without losing a client: the kernel answers no new one, and those whose handshake it has begun are
    /// served. Closed at once, it would reset them (tcp(7), the queues of a listening socket end with it).
    fn remove(self, state: &Rc<WorkerState>) -> JoinHandle<()> {
        state.overload.sockets.remove(&self.socket);
        let worker = Rc::clone(state);
        state.tasks.spawn("end of a listening socket", async move {
            if self.socket.set_syn_filter(Some(&SynFilter::drop_all())).is_ok() && self.socket.is_tcp() {
                tokio::time::sleep(HALF_OPEN).await;
            }
            let (socket, listener) = self.stop_accepting().await;
            accept::accept_all(&worker, &socket, &listener).await;
        })
    }
}
