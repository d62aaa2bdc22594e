//! What the main thread does while others serve: it hears of signals and of ends, and drains. It waits for nothing but
//! events and the time.

use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use courser_proxy::supervision::Panicked;
use courser_proxy::{Phase, Threads};
use courser_telemetry::event::{Level, log};
use signal_hook::consts::SIGHUP;
use tokio::sync::watch;

use crate::exit::{self, Failure};

/// How often the main thread looks after what nobody else does.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// What the main thread waits for.
pub(crate) enum Event {
    Signal(i32),
    /// With how many connections were cut off.
    WorkerEnded {
        index: u16,
        result: Result<usize, String>,
    },
    Panicked(Panicked),
}

/// Starts threads, and learns of their ends.
pub(crate) struct Supervisor {
    events: Sender<Event>,
    happened: Receiver<Event>,
    threads: Threads,
}

impl Default for Supervisor {
    fn default() -> Self {
        let (events, happened) = mpsc::channel();
        let tell = events.clone();
        // At the end of the process nobody is there to be told.
        let threads = Threads::new(move |panicked| drop(tell.send(Event::Panicked(panicked))));
        Self { events, happened, threads }
    }
}

impl Supervisor {
    /// For those who start threads themselves.
    pub(crate) fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Where events are told.
    pub(crate) fn events(&self) -> Sender<Event> {
        self.events.clone()
    }

    /// Starts a thread.
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
        mut workers: usize,
        mut drain: Drain<'_>,
        mut housekeeping: impl FnMut(),
    ) -> Result<ExitCode, Failure> {
        let (mut failure, mut cut_off) = (None, 0);
        while workers > 0 {
            match self.happened.recv_timeout(drain.time_left().min(HOUSEKEEPING)) {
                Ok(Event::Signal(SIGHUP)) => {
                    log(Level::Warning, "SIGHUP ignored: settings are read at the start only");
                }
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
pub(crate) struct Drain<'a> {
    phase: &'a watch::Sender<Phase>,
    timeout: Duration,
    deadline: Option<Instant>,
}

impl<'a> Drain<'a> {
    /// That which has not begun.
    pub(crate) fn new(phase: &'a watch::Sender<Phase>, timeout: Duration) -> Self {
        Self { phase, timeout, deadline: None }
    }

    /// The first signal drains, the second stops.
    fn signal(&mut self) {
        if *self.phase.borrow() == Phase::Serving {
            self.begin();
        } else {
            self.stop("stopping");
        }
    }

    /// Something has failed. The first failure is the program's.
    fn fail(&mut self, failure: &mut Option<Failure>, what: String, why: String) {
        log(Level::Error, format_args!("{what}: {why}"));
        failure.get_or_insert_with(|| Failure::runtime(what, why));
        self.begin();
    }

    /// The phase changes before a word is said of it.
    fn begin(&mut self) {
        if *self.phase.borrow() != Phase::Serving {
            return;
        }
        self.phase.send_replace(Phase::Draining);
        self.deadline = Some(Instant::now() + self.timeout);
        let timeout = self.timeout;
        log(Level::Info, format_args!("draining: no new connections, {timeout:?} for the open ones"));
    }

    fn stop_when_due(&mut self) {
        if self.time_left().is_zero() {
            self.stop("drain timeout: stopping the connections that are left");
        }
    }

    fn stop(&mut self, why: &str) {
        self.phase.send_replace(Phase::Stopping);
        self.deadline = None;
        log(Level::Info, why);
    }

    /// Until the connections that are left are cut off.
    fn time_left(&self) -> Duration {
        let now = Instant::now();
        self.deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the main thread makes of `events`, and the last phase.
    fn after(events: impl IntoIterator<Item = Event>, workers: usize) -> (Result<ExitCode, Failure>, Phase) {
        let supervisor = Supervisor::default();
        let (phase, _) = watch::channel(Phase::Serving);
        events.into_iter().for_each(|event| supervisor.events.send(event).unwrap());
        let outcome = supervisor.supervise(workers, Drain::new(&phase, Duration::from_secs(3600)), || {});
        let phase = *phase.borrow();
        (outcome, phase)
    }

    fn ended(index: u16) -> Event {
        Event::WorkerEnded { index, result: Ok(0) }
    }

    #[test]
    fn a_thread_that_panics_ends_the_service_in_order() {
        let supervisor = Supervisor::default();
        let (phase, mut seen) = watch::channel(Phase::Serving);
        supervisor.spawn("fleet", || panic!("on purpose")).unwrap();
        let worker = supervisor.events();
        supervisor
            .spawn("worker-0", move || {
                while *seen.borrow_and_update() == Phase::Serving {
                    std::thread::yield_now();
                }
                worker.send(ended(0)).unwrap();
            })
            .unwrap();
        let outcome = supervisor.supervise(1, Drain::new(&phase, Duration::from_secs(3600)), || {});
        let Err(Failure::Runtime(message)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(message, "thread fleet has panicked: on purpose");
        assert_eq!(*phase.borrow(), Phase::Draining);
    }

    #[test]
    fn a_failure_during_the_drain_cuts_nothing_off() {
        let failed = Event::WorkerEnded { index: 1, result: Err("why".to_owned()) };
        let (outcome, phase) = after([Event::Signal(15), failed, ended(0)], 2);
        assert!(outcome.is_err());
        assert_eq!(phase, Phase::Draining);
    }

    #[test]
    fn connections_that_are_cut_off_show_in_the_exit_code() {
        let cut_off = Event::WorkerEnded { index: 0, result: Ok(2) };
        let (outcome, phase) = after([Event::Signal(15), Event::Signal(15), cut_off], 1);
        assert_eq!((outcome.unwrap(), phase), (ExitCode::from(3), Phase::Stopping));
        assert_eq!(after([Event::Signal(15), ended(0)], 1).0.unwrap(), ExitCode::SUCCESS);
    }
}
