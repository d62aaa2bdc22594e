//! The main thread while the workers serve: it handles signals and ends of threads, and drains. It waits for nothing but
//! events and the time.

use std::collections::HashSet;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use courser_net::{Address, systemd};
use courser_proxy::supervision::Panicked;
use courser_proxy::{Command, Threads};
use courser_telemetry::event::{Level, log};
use signal_hook::consts::SIGHUP;
use tokio::sync::mpsc::UnboundedSender;

use crate::exit::{self, Failure};

/// Between two rounds of housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

pub(crate) enum Event {
    Signal(i32),
    /// With the number of connections that were cut off.
    WorkerEnded {
        index: u16,
        result: Result<usize, String>,
    },
    Panicked(Panicked),
    /// Another process serves.
    Superseded(Superseded),
}

/// What another process has taken over.
pub(crate) struct Superseded {
    pub(crate) pid: u32,
    /// Addresses of the sockets that it accepts at.
    pub(crate) kept: Arc<HashSet<Address>>,
    /// Time for the open connections.
    pub(crate) drain_timeout: Duration,
}

/// Starts threads, and receives the events of their ends.
pub(crate) struct Supervisor {
    events: Sender<Event>,
    received: Receiver<Event>,
    threads: Threads,
}

impl Default for Supervisor {
    fn default() -> Self {
        let (events, received) = mpsc::channel();
        let sender = events.clone();
        // At the end of the process there is no receiver any more.
        let threads = Threads::new(move |panicked| drop(sender.send(Event::Panicked(panicked))));
        Self { events, received, threads }
    }
}

impl Supervisor {
    /// For services, which start their own threads.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    pub(crate) fn events(&self) -> Sender<Event> {
        self.events.clone()
    }

    pub(crate) fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
        let started = self.threads.spawn(name, work);
        started
            .map(drop)
            .map_err(|error| Failure::runtime(format_args!("cannot start the thread {name}"), error))
    }

    /// Handles events until the last worker has ended. What fails takes the rest with it, in order: a service with half
    /// its parts looks healthy and is not.
    pub(crate) fn supervise(
        self,
        mut drain: Drain,
        mut housekeeping: impl FnMut(),
        reload: impl Fn(),
    ) -> Result<ExitCode, Failure> {
        let (mut failure, mut cut_off, mut workers) = (None, 0, drain.workers.len());
        while workers > 0 {
            match self.received.recv_timeout(drain.time_left().min(HOUSEKEEPING)) {
                Ok(Event::Signal(SIGHUP)) => reload(),
                Ok(Event::Signal(_)) => drain.signal(),
                Ok(Event::WorkerEnded { index, result }) => {
                    workers -= 1;
                    match result {
                        Ok(connections) => cut_off += connections,
                        Err(error) => drain.fail(&mut failure, format!("worker {index} has failed"), error),
                    }
                }
                Ok(Event::Panicked(Panicked { thread, message })) => {
                    drain.fail(&mut failure, format!("thread {thread} has panicked"), message);
                }
                Ok(Event::Superseded(superseded)) => drain.supersede(superseded),
                Err(_) => housekeeping(),
            }
            drain.stop_when_due();
        }
        if cut_off > 0 {
            log(Level::Warning, format_args!("connections cut off: {cut_off}"));
        }
        let code = if cut_off > 0 { ExitCode::from(exit::CUT_OFF) } else { ExitCode::SUCCESS };
        failure.map_or(Ok(code), Err)
    }
}

/// The end of serving: first the open connections may finish, then they are cut off.
pub(crate) struct Drain {
    workers: Vec<UnboundedSender<Command>>,
    timeout: Duration,
    deadline: Option<Instant>,
    /// Also for those who would make new listeners.
    has_begun: Arc<AtomicBool>,
    /// It has begun since another process serves; no signal has come.
    is_superseded: bool,
}

impl Drain {
    /// A drain of these workers that has not begun.
    pub(crate) fn new(workers: Vec<UnboundedSender<Command>>, timeout: Duration) -> Self {
        Self { workers, timeout, deadline: None, has_begun: Arc::default(), is_superseded: false }
    }

    /// Whether it has begun, from now on.
    pub(crate) fn has_begun(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_begun)
    }

    /// The first signal drains, the second stops.
    fn signal(&mut self) {
        if std::mem::take(&mut self.is_superseded) {
            // A service manager signals all processes of a service: this one then has no longer than the other.
            let latest = Instant::now() + self.timeout;
            self.deadline = self.deadline.map(|deadline| deadline.min(latest));
            return;
        }
        if self.has_begun.load(Ordering::Relaxed) { self.stop("stopping") } else { self.begin() }
    }

    /// Logs a failure and begins the drain. The first failure is the program's result.
    fn fail(&mut self, failure: &mut Option<Failure>, what: String, why: String) {
        log(Level::Error, format_args!("{what}: {why}"));
        failure.get_or_insert_with(|| Failure::runtime(what, why));
        self.begin();
    }

    /// Sends the command before the log line, which may wait for its reader.
    fn begin(&mut self) {
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        self.send(|| Command::Drain);
        systemd::notify("STOPPING=1\nSTATUS=draining");
        self.deadline = Some(Instant::now() + self.timeout);
        let timeout = self.timeout;
        log(Level::Info, format_args!("draining: no new connections, {timeout:?} for the open ones"));
    }

    /// Another process accepts at the sockets that it has kept.
    fn supersede(&mut self, superseded: Superseded) {
        let Superseded { pid, kept, drain_timeout } = superseded;
        if self.has_begun.swap(true, Ordering::Relaxed) {
            return;
        }
        self.send(|| Command::Leave { kept: Arc::clone(&kept) });
        self.is_superseded = true;
        self.deadline = Some(Instant::now() + drain_timeout);
        log(
            Level::Info,
            format_args!("process {pid} serves now: draining, {drain_timeout:?} for the open connections"),
        );
    }

    fn stop_when_due(&mut self) {
        if self.time_left().is_zero() {
            self.stop("drain timeout: stopping the connections that are left");
        }
    }

    fn stop(&mut self, why: &str) {
        self.send(|| Command::Stop);
        self.deadline = None;
        log(Level::Info, why);
    }

    fn send(&self, command: impl Fn() -> Command) {
        // A worker that has ended needs no command.
        self.workers.iter().for_each(|worker| drop(worker.send(command())));
    }

    /// Until the connections that are left are cut off.
    fn time_left(&self) -> Duration {
        let now = Instant::now();
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    const AN_HOUR: Duration = Duration::from_secs(3600);

    /// What the main thread makes of `events`, and the last command to the workers.
    fn after(
        events: impl IntoIterator<Item = Event>,
        workers: usize,
    ) -> (Result<ExitCode, Failure>, Option<Command>) {
        let supervisor = Supervisor::default();
        let (commands, mut received) = unbounded_channel();
        events.into_iter().for_each(|event| supervisor.events.send(event).unwrap());
        let outcome = supervisor.supervise(Drain::new(vec![commands; workers], AN_HOUR), || {}, || {});
        (outcome, std::iter::from_fn(|| received.try_recv().ok()).last())
    }

    fn ended(index: u16) -> Event {
        Event::WorkerEnded { index, result: Ok(0) }
    }

    #[test]
    fn a_thread_that_panics_ends_the_service_in_order() {
        let supervisor = Supervisor::default();
        let (commands, mut received) = unbounded_channel();
        supervisor.spawn("fleet", || panic!("on purpose")).unwrap();
        let worker = supervisor.events();
        supervisor
            .spawn("worker-0", move || {
                assert!(matches!(received.blocking_recv(), Some(Command::Drain)));
                worker.send(ended(0)).unwrap();
            })
            .unwrap();
        let outcome = supervisor.supervise(Drain::new(vec![commands], AN_HOUR), || {}, || {});
        let Err(Failure::Runtime(message)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(message, "thread fleet has panicked: on purpose");
    }

    #[test]
    fn a_failure_during_the_drain_cuts_nothing_off() {
        let failed = Event::WorkerEnded { index: 1, result: Err("why".to_owned()) };
        let (outcome, last) = after([Event::Signal(15), failed, ended(0)], 2);
        assert!(outcome.is_err());
        assert!(matches!(last, Some(Command::Drain)), "{last:?}");
    }

    #[test]
    fn connections_that_are_cut_off_show_in_the_exit_code() {
        let cut_off = Event::WorkerEnded { index: 0, result: Ok(2) };
        let (outcome, last) = after([Event::Signal(15), Event::Signal(15), cut_off], 1);
        assert_eq!(outcome.unwrap(), ExitCode::from(3));
        assert!(matches!(last, Some(Command::Stop)), "{last:?}");
        assert_eq!(after([Event::Signal(15), ended(0)], 1).0.unwrap(), ExitCode::SUCCESS);
    }
}
