//! Starts the workers, waits for signals, and ends in order.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_proxy::supervision::catch_panic;
use courser_proxy::{Phase, Worker};
use courser_session::Cache;
use courser_telemetry::{Sink, event};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::watch;

use crate::assemble::Assembly;
use crate::exit::Failure;
use crate::fleet_keys::{PersistentKeys, unix_now};
use crate::loss_report::LossReport;
use crate::session_file::SessionFile;
use crate::supervisor::{Drain, Event, Supervisor};

/// How long the process waits at its end for who reads a log: two seconds for each of the two, so that it ends within
/// five of the drain.
pub(crate) const LAST_LINES: Duration = Duration::from_secs(2);

/// How often it looks for sessions that have expired.
const SWEEP: Duration = Duration::from_secs(60);

/// From here on signals no longer end the process; [`run`] handles those that have come meanwhile too.
pub(crate) fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Failure::runtime("cannot watch for signals", error))
}

/// Serves until every worker has ended.
pub(crate) fn run(
    mut assembly: Assembly,
    signals: Signals,
    supervisor: Supervisor,
) -> Result<ExitCode, Failure> {
    forward_signals(signals, &supervisor)?;
    let (phase, _) = watch::channel(Phase::Serving);
    let mut house = Maintenance::of(&mut assembly);
    let (control, drain_timeout) = (assembly.control.take(), assembly.drain_timeout);
    let workers = start_workers(&mut assembly, &phase, &supervisor)?;
    let drain = Drain::new(&phase, drain_timeout);
    let outcome = supervisor.supervise(workers, drain, || house.keep());
    drop(control);
    // Until here the assembly holds what goes on beside the workers: names are looked up again as long as it is there.
    house.leave(assembly.sink);
    outcome
}

fn forward_signals(mut signals: Signals, supervisor: &Supervisor) -> Result<(), Failure> {
    let events = supervisor.events();
    let forward = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    supervisor.spawn("signals", forward)
}

/// Returns how many were started.
fn start_workers(
    assembly: &mut Assembly,
    phase: &watch::Sender<Phase>,
    supervisor: &Supervisor,
) -> Result<usize, Failure> {
    let (sockets, workers) = (std::mem::take(&mut assembly.sockets), assembly.cpus.len());
    for (index, (sockets, &cpu)) in sockets.into_iter().zip(&assembly.cpus).enumerate() {
        let index = u16::try_from(index).expect("the configuration allows 1024 workers");
        let (lines, phase) = (assembly.sink.lines(assembly.log), phase.subscribe());
        let (admission, sharing) = (Arc::clone(&assembly.admission), assembly.sharing.clone());
        let counters = Arc::clone(&assembly.counters[usize::from(index)]);
        let confinement = assembly.confinement.clone();
        let worker = Worker { index, cpu, sockets, admission, lines, sharing, counters, confinement, phase };
        let events = supervisor.events();
        let work = move || {
            let ended = catch_panic(|| worker.run()).map_err(|panic| format!("it has panicked: {panic}"));
            let result = ended.and_then(|result| result.map_err(|error| error.to_string()));
            // A main thread that is gone needs no word.
            let _ = events.send(Event::WorkerEnded { index, result });
        };
        supervisor.spawn(&format!("worker-{index}"), work)?;
    }
    Ok(workers)
}

/// What the main thread looks after.
struct Maintenance {
    cache: Option<Arc<Cache>>,
    swept: Instant,
    keys: PersistentKeys,
    session_file: Option<SessionFile>,
    losses: Vec<LossReport>,
}

impl Maintenance {
    /// Takes over from the assembly, and gets the cache of the last start back.
    fn of(assembly: &mut Assembly) -> Self {
        let (keys, session_file) = (assembly.keys.clone(), assembly.session_file.take());
        if let Some(file) = &session_file {
            file.restore();
        }
        let events = event::losses().map(|losses| LossReport::new("events", losses));
        let losses = vec![LossReport::new("connection log", assembly.sink.losses())];
        let losses = losses.into_iter().chain(events).collect();
        let (cache, swept) = (assembly.cache.clone(), Instant::now());
        let mut house = Self { cache, swept, keys, session_file, losses };
        house.keep();
        house
    }

    /// Rolls keys, and tells of lost lines. Secrets of sessions that nobody can resume any more do not stay in the memory of an idle process.
    fn keep(&mut self) {
        self.keys.advance();
        if self.swept.elapsed() >= SWEEP {
            self.swept = Instant::now();
            if let Some(cache) = &self.cache {
                cache.sweep(unix_now());
            }
        }
        let now = Instant::now();
        self.losses.iter_mut().for_each(|losses| losses.tell(now));
    }

    /// The end, in order. Whoever reads the log has [`LAST_LINES`] for what is left of it.
    fn leave(self, sink: Sink) {
        if let Some(file) = self.session_file {
            file.save();
        }
        sink.finish(LAST_LINES);
        self.losses.into_iter().for_each(LossReport::tell_last);
    }
}
