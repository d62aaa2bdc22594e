//! The life of the program: starts services and workers in order, waits for signals, and ends in order.

mod start;
mod workers;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ArgMatches;
use courser_net::systemd;
use courser_proxy::Threads;
use courser_telemetry::{Output, Sink};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::exit::Failure;
use crate::log_files::LogFiles;
use crate::prepared::Prepared;
use crate::readiness::Readiness;
use crate::reload::{Current, Reloader};
use crate::service::reload::{ReloadHandle, ReloadService};
use crate::succeed::{Farewell, Succession, Upgrader};
use crate::supervisor::{Drain, Event, Supervisor};
use crate::{hardening, privileges};
use start::Start;

/// How long the process waits at its end for the reader of a log: two seconds for each of the two, so that it ends within
/// five of the drain.
pub(crate) const LAST_LINES: Duration = Duration::from_secs(2);

/// Serves until every worker has ended.
pub(crate) fn run(
    flags: &ArgMatches,
    prepared: Prepared,
    succession: &mut Option<Succession>,
    supervisor: Supervisor,
    log: Box<dyn Output + Send>,
    log_files: &LogFiles,
) -> Result<ExitCode, Failure> {
    let Prepared { program, inputs, served, process, generation, sharing, access, successor } = prepared;
    let (config, process) = (Arc::clone(&inputs.config), Arc::new(process));
    // Opens the way to the service manager while there are the privileges to.
    systemd::notify(if succession.is_some() { "" } else { "STATUS=starting" });
    // Before the log says that a socket is open: from then on a supervisor may send a signal.
    let signals = signals()?;
    let sink = sink(log, supervisor.threads())?;
    let (reload, reload_requests) = ReloadHandle::new(served.clone());

    let mut start = Start::new(&config, &process, supervisor.threads(), succession);
    let sharing = start.join_fleet(sharing)?;
    let source = start.status_source(sharing, &reload, &sink, &generation);
    let control = start.open_control(&source, successor.as_ref())?;
    let opened = start.open_sockets(&generation)?;
    let confinement = hardening::confinement(&config.process);
    let (workers, commands) = workers::prepare(&config, &source, &sink, confinement.as_ref());
    privileges::give_up(&config, successor.as_ref(), control.path())?;
    let checks = start.check_servers(&source.backends, confinement, &generation.pools)?;
    forward_signals(signals, &supervisor, log_files.clone())?;
    let housekeeping = start.keep_house(&sink)?;
    let drain = Drain::new(commands.clone(), config.process.drain_timeout);
    let readiness = Arc::new(Readiness::new(&process, drain.has_begun()));
    start.open_admin(&source, access, &readiness)?;
    workers::start(workers, &supervisor)?;
    start.watch_workers()?;
    source.acme.take_over()?;
    let sockets = start.serve(opened, &commands, &readiness)?;
    start.order_certificates(&source.acme)?;
    let Start { services, endpoints, .. } = start;

    let threads = supervisor.threads().clone();
    let upgrader = Upgrader {
        program,
        process: Arc::clone(&process),
        threads: threads.clone(),
        admission: Arc::clone(&source.admission),
        endpoints,
        supervisor: supervisor.events(),
        most_old: config.process.max_old_processes,
        drain_timeout: config.process.hard_stop_after.unwrap_or(config.process.drain_timeout),
        state: reload.upgrade_state(),
        successor: Arc::default(),
    };
    let farewell = Farewell::of(&upgrader);
    let reloader = Reloader {
        flags: flags.clone(),
        process,
        threads,
        upgrader,
        checks,
        orders: Arc::clone(&source.acme),
        workers: commands,
        is_draining: drain.has_begun(),
        log_files: log_files.clone(),
        looked_at: inputs.stamps.clone(),
        current: Current { number: 1, inputs, generation, sockets, served },
    };
    let watches = config.process.reload_on_change;
    services.start(Arc::new(ReloadService::new(reload.clone(), reload_requests, reloader, watches)))?;

    let tick = || {
        services.tick();
        log_files.tick(&sink);
    };
    let outcome = supervisor.supervise(drain, tick, || reload.ask());
    services.stop();
    farewell.finish();
    sink.finish(LAST_LINES);
    housekeeping.report_last_losses();
    outcome
}

/// From here on signals no longer end the process; [`run`] handles those that have come meanwhile too.
fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])
        .map_err(|error| Failure::runtime("cannot watch for signals", error))
}

fn forward_signals(
    mut signals: Signals,
    supervisor: &Supervisor,
    log_files: LogFiles,
) -> Result<(), Failure> {
    let events = supervisor.events();
    let forward = move || {
        for signal in signals.forever() {
            if signal == SIGUSR1 {
                log_files.reopen();
            } else if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    supervisor.spawn("signals", forward)
}

fn sink(log: Box<dyn Output + Send>, threads: &Threads) -> Result<Sink, Failure> {
    let (sink, work) = Sink::new(log);
    threads.spawn("log", work).map_err(|error| Failure::runtime("cannot start the log", error))?;
    Ok(sink)
}
