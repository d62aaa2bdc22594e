//! A worker: one thread, one single-threaded runtime, its own listening sockets.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::confinement::Confinement;
use courser_net::{AsyncListener, ListenSocket, cpu};
use courser_sharing::Sharing;
use courser_telemetry::event::{Level, log};
use courser_telemetry::{Counters, Lines};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;

use crate::accept;
use crate::admission::Admission;
use crate::settings::Listener;

use crate::worker_state::WorkerState;

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
    pub sockets: Vec<(ListenSocket, Arc<Listener>)>,
    /// The connections of the process, and how many it may have.
    pub admission: Arc<Admission>,
    /// Its end of the connection log.
    pub lines: Lines,
    /// What it needs to share sessions by ID; `None` where there are none.
    pub sharing: Option<Sharing>,
    /// Its counters.
    pub counters: Arc<Counters>,
    /// What its thread is confined to once it has its runtime.
    pub confinement: Option<Arc<Confinement>>,
    /// What to do, from the process's main thread.
    pub phase: watch::Receiver<Phase>,
}

impl Worker {
    /// Serves until the phase is to stop, or the last connection has ended while draining. Returns how many connections
    /// were cut off.
    ///
    /// # Errors
    /// When the runtime cannot be made, or a task that all connections need has panicked.
    pub fn run(self) -> io::Result<usize> {
        let Self { index, cpu, sockets, admission, lines, sharing, counters, confinement, phase } = self;
        if let Some(cpu) = cpu {
            cpu::pin(cpu)?;
        }
        let runtime = runtime()?;
        confine(index, confinement.as_deref());
        let state = runtime.block_on(async { WorkerState::new(index, admission, lines, sharing, counters) });
        CURRENT.set(Some(Rc::clone(&state)));
        let served = runtime.block_on(serve(Rc::clone(&state), sockets, phase));
        // Connections that are still there end here, each with its line.
        drop(runtime);
        CURRENT.set(None);
        state.lines.flush();
        served
    }
}

/// From here on the thread opens no file. It serves also where that cannot be had: the main thread has tried it before.
fn confine(index: u16, confinement: Option<&Confinement>) {
    if let Some(Err(error)) = confinement.map(Confinement::enter) {
        log(Level::Warning, format_args!("worker {index} is not confined: {error}"));
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
                    state.on_idle();
                }
            });
        })
        .build_local(LocalOptions::default())
}

async fn serve(
    state: Rc<WorkerState>,
    sockets: Vec<(ListenSocket, Arc<Listener>)>,
    phase: watch::Receiver<Phase>,
) -> io::Result<usize> {
    tokio::select! {
        biased;
        failure = state.tasks.failure() => Err(failure),
        served = serve_phases(&state, sockets, phase) => served,
    }
}

/// Returns how many connections were open when the phase changed to stop.
async fn serve_phases(
    state: &Rc<WorkerState>,
    sockets: Vec<(ListenSocket, Arc<Listener>)>,
    mut phase: watch::Receiver<Phase>,
) -> io::Result<usize> {
    state.tasks.spawn("timer wheel", Rc::clone(&state.wheel).drive());
    let mut open = Vec::new();
    for (socket, listener) in sockets {
        let socket = Rc::new(AsyncListener::new(socket)?);
        let accept = accept::accept(Rc::clone(state), Rc::clone(&socket), Arc::clone(&listener));
        open.push((state.tasks.spawn("accept loop", accept), socket, listener));
    }
    // A main thread that is gone means stop.
    let _ = phase.wait_for(|phase| *phase != Phase::Serving).await;
    for (accepting, socket, listener) in open {
        accepting.abort();
        // Once it is gone, nothing else keeps the socket open: it closes right after the last look.
        let _ = accepting.await;
        accept::accept_queued(state, &socket, &listener);
    }
    tokio::select! {
        () = state.drained() => {}
        _ = phase.wait_for(|phase| *phase == Phase::Stopping) => {}
    }
    Ok(state.open.get())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use courser_telemetry::{Format, Sink};

    use super::*;

    /// What becomes of a worker without sockets that `harm` has been done to. Without harm it would serve for ever.
    fn worker_after(harm: impl FnOnce(&WorkerState)) -> io::Result<usize> {
        let (_main, phase) = watch::channel(Phase::Serving);
        let lines = Sink::new(io::sink()).0.lines(Format::Off);
        runtime()?.block_on(async {
            let state = WorkerState::new(0, Arc::new(Admission::new(1)), lines, None, Arc::default());
            harm(&state);
            let served = serve(state, Vec::new(), phase);
            tokio::time::timeout(Duration::from_secs(20), served).await.expect("it serves on, unharmed")
        })
    }

    #[test]
    fn a_task_that_all_connections_need_takes_its_worker_with_it() {
        let harmed =
            worker_after(|state| drop(state.tasks.spawn("accept loop", async { panic!("on purpose") })));
        assert_eq!(harmed.unwrap_err().to_string(), "its accept loop has panicked");
    }

    #[test]
    fn a_wheel_that_nobody_turns_any_more_takes_its_worker_with_it() {
        let harmed = worker_after(|state| state.wheel.jam());
        assert_eq!(harmed.unwrap_err().to_string(), "its timer wheel has panicked");
    }
}
