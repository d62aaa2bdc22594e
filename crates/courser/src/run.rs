//! Starts the workers, waits for signals, and ends in order.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use courser_proxy::{Phase, Worker};
use courser_session::Cache;
use courser_telemetry::Sink;
use courser_telemetry::event::say;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::assemble::Assembly;
use crate::exit::Failure;
use crate::fleet_keys::{Kept, unix_now};
use crate::session_file::SessionFile;

/// How often the main thread looks after what nobody else does.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// How often it looks for sessions that have expired.
const SWEEP: Duration = Duration::from_secs(60);

/// What the main thread waits for.
enum Event {
    Signal(i32),
    WorkerEnded { index: u16, result: Result<(), String> },
}

/// From here on signals no longer end the process; [`run`] handles those that have come meanwhile too.
pub(crate) fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::runtime("cannot watch for signals", error))
}

/// Serves until every worker has ended.
pub(crate) fn run(mut assembly: Assembly, signals: Signals) -> Result<ExitCode, Failure> {
    let (events, happened) = mpsc::channel();
    forward_signals(signals, events.clone());
    let sink = Sink::start(io::stdout());
    let (phase, _) = watch::channel(Phase::Serving);
    let mut house = House::of(&mut assembly);
    let control = assembly.control.take();
    let drain_timeout = assembly.drain_timeout;
    let workers = start_workers(assembly, &sink, &phase, &events)?;
    let outcome = supervise(&happened, &phase, workers, drain_timeout, || house.keep());
    drop(control);
    house.leave();
    if sink.lost() > 0 {
        say(
            "warning",
            format_args!(
                "{} batches of connection lines were left out: their reader was too slow",
                sink.lost()
            ),
        );
    }
    sink.stop();
    outcome
}

fn forward_signals(mut signals: Signals, events: Sender<Event>) {
    thread::spawn(move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
}

/// Returns how many were started.
fn start_workers(
    assembly: Assembly,
    sink: &Sink,
    phase: &watch::Sender<Phase>,
    events: &Sender<Event>,
) -> Result<usize, Failure> {
    let workers = assembly.sockets.len();
    for (index, (sockets, cpu)) in assembly.sockets.into_iter().zip(assembly.cpus).enumerate() {
        let index = u16::try_from(index).expect("the configuration allows 1024 workers");
        let (lines, phase) = (sink.lines(assembly.log), phase.subscribe());
        let (max_connections, sharing) = (assembly.max_connections, assembly.sharing.clone());
        let counters = Arc::clone(&assembly.counters[usize::from(index)]);
        let confinement = assembly.confinement.clone();
        let worker =
            Worker { index, cpu, sockets, max_connections, lines, sharing, counters, confinement, phase };
        let ended = Ended { index, events: events.clone() };
        thread::Builder::new()
            .name(format!("worker-{index}"))
            .spawn(move || ended.report(worker.run()))
            .map_err(|error| Failure::runtime("cannot start a worker", error))?;
    }
    Ok(workers)
}

/// Reports the end of a worker, also of one that panics.
struct Ended {
    index: u16,
    events: Sender<Event>,
}

impl Ended {
    fn report(self, result: io::Result<()>) {
        let _ = self
            .events
            .send(Event::WorkerEnded { index: self.index, result: result.map_err(|e| e.to_string()) });
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        if thread::panicking() {
            let result = Err("it panicked".to_owned());
            let _ = self.events.send(Event::WorkerEnded { index: self.index, result });
        }
    }
}

/// Handles events until the last worker has ended. A worker that fails takes the others with it, in order: a service
/// with half its workers looks healthy and is not.
fn supervise(
    happened: &Receiver<Event>,
    phase: &watch::Sender<Phase>,
    mut workers: usize,
    drain_timeout: Duration,
    mut housekeeping: impl FnMut(),
) -> Result<ExitCode, Failure> {
    let mut failure = None;
    let mut deadline: Option<Instant> = None;
    while workers > 0 {
        let left =
            deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        match happened.recv_timeout(left.min(HOUSEKEEPING)) {
            Ok(Event::Signal(SIGHUP)) => {
                say("warning", "SIGHUP ignored: settings are read at the start only");
            }
            Ok(Event::Signal(_)) => drain(phase, drain_timeout, &mut deadline),
            Ok(Event::WorkerEnded { index, result }) => {
                workers -= 1;
                if let Err(error) = result {
                    say("error", format_args!("worker {index} has failed: {error}; draining the others"));
                    drain(phase, drain_timeout, &mut deadline);
                    failure = Some(Failure::runtime(format_args!("worker {index} has failed"), error));
                }
            }
            Err(_) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                say("warning", "drain timeout: stopping the connections that are left");
                phase.send_replace(Phase::Stopping);
                deadline = None;
            }
            Err(_) => housekeeping(),
        }
    }
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

/// What the main thread looks after.
struct House {
    cache: Option<Arc<Cache>>,
    swept: Instant,
    keys: Kept,
    session_file: Option<SessionFile>,
}

impl House {
    /// Takes over from the assembly, and gets the cache of the last start back.
    fn of(assembly: &mut Assembly) -> Self {
        let (keys, session_file) = (assembly.keys.clone(), assembly.session_file.take());
        if let Some(file) = &session_file {
            file.restore();
        }
        let mut house = Self { cache: assembly.cache.clone(), swept: Instant::now(), keys, session_file };
        house.keep();
        house
    }

    /// Rolls keys. Secrets of sessions that nobody can resume any more do not stay in the memory of an idle process.
    fn keep(&mut self) {
        self.keys.advance();
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            if let Some(cache) = &self.cache {
                cache.sweep(unix_now());
            }
        }
    }

    /// The end, in order.
    fn leave(self) {
        if let Some(file) = self.session_file {
            file.save();
        }
    }
}

/// The first call drains, the second stops.
fn drain(phase: &watch::Sender<Phase>, timeout: Duration, deadline: &mut Option<Instant>) {
    if *phase.borrow() == Phase::Serving {
        say("info", format_args!("draining: no new connections, {timeout:?} for the open ones"));
        phase.send_replace(Phase::Draining);
        *deadline = Some(Instant::now() + timeout);
    } else {
        say("info", "stopping");
        phase.send_replace(Phase::Stopping);
        *deadline = None;
    }
}
