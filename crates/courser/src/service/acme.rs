//! Orders certificates, where a host has `cert = { acme = true }`, on a thread of its own.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use courser_acme::{Agent, Handle};
use courser_config::Config;
use courser_net::account::Account;
use courser_proxy::{Challenges, Threads};
use courser_sharing::FleetHandle;
use courser_telemetry::Counts;
use courser_telemetry::event::{Level, log};

use super::{STOP_TIME, Service};
use crate::acme;
use crate::acme::board::Board;
use crate::exit::Failure;
use crate::fleet_keys::unix_now;
use crate::process::Process;
use crate::status::Status;

pub(crate) struct AcmeService {
    process: Arc<Process>,
    challenges: Arc<Challenges>,
    /// There is a new pair.
    renewed: Arc<dyn Fn() + Send + Sync>,
    fleet: Option<FleetHandle>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    threads: Option<Threads>,
    /// In a fleet from the start, else with the first certificate, or with what the process before this one has left.
    board: Option<Arc<Board>>,
    agent: Option<Running>,
}

struct Running {
    handle: Handle,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl AcmeService {
    /// `renewed` is called when there is a new pair.
    pub(crate) fn new(
        process: &Arc<Process>,
        fleet: Option<FleetHandle>,
        renewed: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (process, renewed) = (Arc::clone(process), Arc::new(renewed));
        Self { process, challenges: Arc::default(), renewed, fleet, state: Mutex::default() }
    }

    /// Where workers find what a CA may ask for.
    pub(crate) fn challenges(&self) -> &Arc<Challenges> {
        &self.challenges
    }

    /// Answers what the process before this one was to answer. To be called before this one accepts.
    pub(crate) fn take_over(&self) -> Result<(), Failure> {
        if self.process.pending.len() > 0 {
            self.board(&mut self.lock())?;
        }
        Ok(())
    }

    /// What is ordered is this from now on. The thread is started with the first certificate: most configurations order none.
    pub(crate) fn apply(&self, config: &Config) -> Result<(), Failure> {
        let settings = acme::settings(config, &Account::current())?;
        let mut state = self.lock();
        match (settings, &state.agent) {
            (Some(settings), Some(agent)) => agent.handle.replace(settings, acme::sets(config)),
            (Some(settings), None) => {
                let Some(threads) = state.threads.clone() else { return Ok(()) };
                let (renewed, board) = (Arc::clone(&self.renewed), self.board(&mut state)?);
                let renewed = move || renewed();
                let (agent, handle) = Agent::new(settings, acme::sets(config), board, renewed);
                let (running, ended) = mpsc::channel();
                let work = move || {
                    let _running = running;
                    if let Err(error) = agent.run() {
                        log(Level::Error, format_args!("certificates cannot be ordered: {error}"));
                    }
                };
                let started = threads.spawn("acme", work);
                started.map_err(|error| Failure::runtime("cannot start the thread acme", error))?;
                state.agent = Some(Running { handle, ended });
            }
            (None, Some(_)) => drop(stop(state.agent.take())),
            (None, None) => {}
        }
        Ok(())
    }

    /// The way to the agent, where something is ordered here.
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.lock().agent.as_ref().map(|agent| agent.handle.clone())
    }

    fn board(&self, state: &mut State) -> Result<Arc<Board>, Failure> {
        let board = state
            .board
            .take()
            .map_or_else(|| Board::new(&self.challenges, &self.process.pending, self.fleet.clone()), Ok)?;
        Ok(Arc::clone(state.board.insert(board)))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it has ended in time.
fn stop(agent: Option<Running>) -> bool {
    agent.is_none_or(|agent| {
        agent.handle.stop();
        agent.ended.recv_timeout(STOP_TIME) == Err(RecvTimeoutError::Disconnected)
    })
}

impl Service for AcmeService {
    fn name(&self) -> &'static str {
        "orders of certificates"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let mut state = self.lock();
        state.threads = Some(threads.clone());
        if self.fleet.is_some() {
            self.board(&mut state)?;
        }
        Ok(())
    }

    fn tick(&self, _now: Instant) {
        let board = self.lock().board.clone();
        board.iter().for_each(|board| board.forget_old(unix_now()));
        // The files are another process's now.
        if self.process.is_superseded.load(Ordering::Relaxed) {
            let agent = self.lock().agent.take();
            agent.iter().for_each(|agent| agent.handle.stop());
        }
    }

    fn stop(&self) -> bool {
        let agent = self.lock().agent.take();
        stop(agent)
    }

    fn status(&self, status: &mut Status, _counts: &mut Counts) {
        status.acme = self.handle().map(|handle| handle.status()).unwrap_or_default();
    }
}
