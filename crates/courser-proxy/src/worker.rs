//! A worker: one thread, one single-threaded runtime, its own listening sockets.

mod sockets;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use courser_net::confinement::Confinement;
use courser_net::{Address, ListenSocket, cpu};
use courser_sharing::Sharing;
use courser_telemetry::event::{Level, log};
use courser_telemetry::{Counters, Lines};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::admission::Admission;
use crate::challenges::Challenges;
use crate::clock::since_start;
use crate::gates;
use crate::overload::OverloadSettings;
use crate::pulse::Pulse;
use crate::settings::Listener;
use crate::worker_state::WorkerState;
use sockets::Sockets;

/// The listener of each listening socket, by the socket's address.
pub type Listeners = HashMap<Address, Arc<Listener>>;

/// A worker that has done what it was told drops it: nothing is ever sent, and the end of the channel says it.
pub type Taken = std::sync::mpsc::Sender<std::convert::Infallible>;

/// An order from the main thread.
#[derive(Debug)]
pub enum Command {
    /// Serve new connections by these listeners; open connections go on with theirs.
    Swap {
        /// A socket whose address is not among them is closed, after the connections in its queue are accepted.
        listeners: Arc<Listeners>,
        /// Sockets to serve beside those that the worker has.
        opened: Vec<ListenSocket>,
        /// Dropped when new connections are served by them.
        taken: Taken,
    },
    /// Ask the kernel how many clients wait, and drop this.
    Measure(Taken),
    /// Answer with a descriptor of each listening socket, for another process. From now on that one owns their filters.
    Share(std::sync::mpsc::Sender<io::Result<Vec<ListenSocket>>>),
    /// The other process has not come: their filters are this one's again.
    Reclaim,
    /// Accept no more: another process does at `kept`, queues included. Other sockets are removed, after the connections in
    /// their queues are accepted. Serve the open connections to their end.
    Leave {
        /// Addresses of sockets.
        kept: Arc<HashSet<Address>>,
    },
    /// Accept no more; serve the open connections to their end.
    Drain,
    /// Drop the connections that are left.
    Stop,
}

/// A worker before it runs.
pub struct Worker {
    /// Counted from 0.
    pub index: u16,
    /// CPU to stay on.
    pub cpu: Option<usize>,
    /// The connections of the process, and how many it may have.
    pub admission: Arc<Admission>,
    /// Its end of the connection log.
    pub lines: Lines,
    /// What it needs to share sessions by ID; `None` where there are none.
    pub sharing: Option<Sharing>,
    /// What a CA may ask for.
    pub challenges: Arc<Challenges>,
    /// Its counters.
    pub counters: Arc<Counters>,
    /// Whether it turns.
    pub pulse: Arc<Pulse>,
    /// What it does when more come than it can serve.
    pub overload: OverloadSettings,
    /// What its thread is confined to once it has its runtime.
    pub confinement: Option<Arc<Confinement>>,
    /// Orders from the main thread. Without the first [`Command::Swap`] the worker has no socket.
    pub commands: UnboundedReceiver<Command>,
}

impl Worker {
    /// Serves until [`Command::Stop`], or until the last connection has ended after [`Command::Drain`]. Returns the number
    /// of connections that were cut off.
    ///
    /// # Errors
    /// When the runtime cannot be made, or a task that all connections need has panicked.
    pub fn run(self) -> io::Result<usize> {
        let Self {
            index,
            cpu,
            admission,
            lines,
            sharing,
            challenges,
            counters,
            pulse,
            overload,
            confinement,
            commands,
        } = self;
        if let Some(cpu) = cpu {
            cpu::pin(cpu)?;
        }
        let runtime = runtime()?;
        confine(index, confinement.as_deref());
        let state = runtime.block_on(async {
            WorkerState::new(index, admission, lines, sharing, challenges, (counters, pulse), overload)
        });
        CURRENT.set(Some(Rc::clone(&state)));
        let served = runtime.block_on(serve(Rc::clone(&state), commands));
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

fn with_current(work: impl FnOnce(&WorkerState)) {
    CURRENT.with_borrow(|state| {
        if let Some(state) = state {
            work(state);
        }
    });
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(|| with_current(WorkerState::on_idle))
        .on_thread_unpark(|| with_current(|state| state.pulse.wake(since_start())))
        .build_local(LocalOptions::default())
}

async fn serve(state: Rc<WorkerState>, commands: UnboundedReceiver<Command>) -> io::Result<usize> {
    tokio::select! {
        biased;
        failure = state.tasks.failure() => Err(failure),
        served = obey(&state, commands) => served,
    }
}

/// Returns the number of connections that were open at [`Command::Stop`].
async fn obey(state: &Rc<WorkerState>, mut commands: UnboundedReceiver<Command>) -> io::Result<usize> {
    let pulse = Rc::clone(state);
    state.tasks.spawn("timer wheel", Rc::clone(&state.wheel).drive(move || pulse.pulse.turn(since_start())));
    state.tasks.spawn("overload control", gates::watch(Rc::clone(state)));
    let mut sockets = Sockets::default();
    loop {
        match commands.recv().await {
            Some(Command::Swap { listeners, opened, taken }) => {
                sockets.swap(state, &listeners, opened)?;
                drop(taken);
            }
            Some(Command::Measure(done)) => {
                sockets.measure(state);
                drop(done);
            }
            // Whoever asked may have given up.
            Some(Command::Share(answer)) => drop(answer.send(sockets.share(state))),
            Some(Command::Reclaim) => sockets.reclaim(state),
            Some(Command::Leave { kept }) => {
                sockets.leave(state, &kept).await;
                break;
            }
            Some(Command::Drain) => {
                sockets.close(state).await;
                break;
            }
            // A main thread that is gone means stop.
            Some(Command::Stop) | None => {
                sockets.close(state).await;
                return Ok(state.open.get());
            }
        }
    }
    state.overload.end(&state.handshake_budget);
    let drained = async {
        sockets.removed().await;
        state.drained().await;
    };
    tokio::select! {
        () = drained => {}
        () = stop(&mut commands) => {}
    }
    Ok(state.open.get())
}

async fn stop(commands: &mut UnboundedReceiver<Command>) {
    while !matches!(commands.recv().await, Some(Command::Stop) | None) {}
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use courser_telemetry::{Format, Sink};

    use super::*;

    /// What becomes of a worker without sockets that `harm` has been done to. Without harm it would serve for ever.
    fn worker_after(harm: impl FnOnce(&WorkerState)) -> io::Result<usize> {
        let (_main, commands) = tokio::sync::mpsc::unbounded_channel();
        let lines = Sink::new(io::sink()).0.lines(Format::Off);
        runtime()?.block_on(async {
            let state = WorkerState::new(
                0,
                Arc::new(Admission::new(1)),
                lines,
                None,
                Arc::default(),
                Default::default(),
                OverloadSettings::off(),
            );
            harm(&state);
            let served = serve(state, commands);
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
