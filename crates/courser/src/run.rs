//! Starts services and workers, waits for signals, and ends in order.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::time::Duration;

use clap::ArgMatches;
use courser_config::{Config, Log};
use courser_net::confinement::Confinement;
use courser_net::{Network, systemd};
use courser_proxy::supervision::catch_panic;
use courser_proxy::{Admission, Command, Crowd, Limits, OverloadSettings, Threads, Worker};
use courser_session::Vault;
use courser_sharing::Sharing;
use courser_telemetry::event::{Level, log};
use courser_telemetry::{Format, Output, Sink};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::backends::Backends;
use crate::exit::Failure;
use crate::log_files::LogFiles;
use crate::prepared::Prepared;
use crate::process::Process;
use crate::readiness::Readiness;
use crate::reload::{Current, Reloader};
use crate::service::Services;
use crate::service::admin::AdminService;
use crate::service::checks::ChecksService;
use crate::service::control::ControlService;
use crate::service::fleet::FleetService;
use crate::service::housekeeping::Housekeeping;
use crate::service::reload::{ReloadHandle, ReloadService};
use crate::service::resolver::ResolverService;
use crate::service::watchdog::Watchdog;
use crate::session_file::SessionFile;
use crate::sockets::{Sockets, TAKE_OVER};
use crate::status_source::StatusSource;
use crate::succeed::{Endpoints, Farewell, OldProcesses, Succession, Upgrader};
use crate::supervisor::{Drain, Event, Supervisor};
use crate::{capacity, hardening, privileges, sharing};

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
    let Prepared { program, inputs, served, process, generation, sharing: sharing_inputs, access, successor } =
        prepared;
    let config = Arc::clone(&inputs.config);
    // Opens the way to the service manager while there are the privileges to.
    systemd::notify(if succession.is_some() { "" } else { "STATUS=starting" });
    // Before the log says that a socket is open: from then on a supervisor may send a signal.
    let signals = signals()?;
    let (process, threads) = (Arc::new(process), supervisor.threads());
    let services = Services::new(threads);
    let inherited = config.fleet.listen.as_ref().zip(succession.as_mut());
    let inherited = inherited.map(|(listen, succession)| succession.take_fleet(listen.value));
    let fleet = FleetService::new(&config, sharing_inputs.interface, &process, inherited.unwrap_or_default());
    let old = Arc::<OldProcesses>::default();
    let mut endpoints = Endpoints { list: Vec::new(), old: Arc::clone(&old) };
    let fleet = fleet.map(Arc::new);
    if let Some(fleet) = &fleet {
        services.start(Arc::clone(fleet) as _)?;
        endpoints.list.push(Arc::clone(fleet) as _);
    }
    let fleet = fleet.and_then(|fleet| fleet.handle());
    let sharing = sharing::share(&config, sharing_inputs.store, &process, fleet);
    let sink = sink(log, threads)?;
    let (reload, reload_requests) = ReloadHandle::new(served.clone());
    let backends = Arc::new(Backends::new(&process));
    // Before anyone can ask for them.
    backends.replace(generation.pools.list());
    let most = capacity::max_connections(&config, process.workers());
    let admission = Arc::new(Admission::new(most));
    let source = Arc::new(StatusSource {
        process: Arc::clone(&process),
        sharing: sharing.clone(),
        services: services.running(),
        backends: Arc::clone(&backends),
        reload: reload.clone(),
        log: sink.losses(),
        admission: Arc::clone(&admission),
        workers: OnceLock::new(),
        readiness: OnceLock::new(),
        history: Mutex::default(),
        old,
        latest: Mutex::default(),
    });
    let control = ControlService::new(config.process.control.clone(), successor.clone(), Arc::clone(&source));
    let control = Arc::new(control);
    control
        .inherit(succession.as_mut().and_then(|succession| succession.take_control(control.intended_path())));
    services.start(Arc::clone(&control) as _)?;
    endpoints.list.push(Arc::clone(&control) as _);
    let resolver = Arc::new(ResolverService::new(&process));
    services.start(Arc::clone(&resolver) as _)?;
    let handed_over = succession.as_mut().map(|succession| std::mem::take(&mut succession.sockets));
    let mut sockets = Sockets::new(process.workers(), handed_over.unwrap_or_default())?;
    let (taken, all_taken) = mpsc::channel();
    let first = sockets.hand_over(&generation, &taken)?;
    drop(taken);
    resolver.wait_for_first_answers();
    let confinement = hardening::confinement(&config.process);
    let workers =
        prepare_workers(&config, &process, &admission, &sink, sharing.as_ref(), confinement.as_ref());
    privileges::give_up(&config, successor.as_ref(), control.path())?;
    let checks = Arc::new(ChecksService::new(&backends, confinement));
    services.start(Arc::clone(&checks) as _)?;
    checks.apply(&config, &generation.pools)?;
    forward_signals(signals, &supervisor, log_files.clone())?;
    let housekeeping = Arc::new(Housekeeping::new(&process, session_file(&config, &process), sink.losses()));
    services.start(Arc::clone(&housekeeping) as _)?;
    let (workers, commands): (Vec<_>, Vec<_>) = workers.into_iter().unzip();
    // Set once.
    drop(source.workers.set(commands.clone()));
    let drain = Drain::new(commands.clone(), config.process.drain_timeout);
    let readiness = Arc::new(Readiness::new(&process, drain.has_begun()));
    // Set once.
    drop(source.readiness.set(Arc::clone(&readiness)));
    if !config.admin.listen.is_empty() {
        let listen: Vec<_> = config.admin.listen.iter().map(|listen| listen.value.to_string()).collect();
        let inherited = succession.as_mut().map(|succession| succession.take_admin(&listen));
        let (settings, inherited) = (config.admin.clone(), inherited.unwrap_or_default());
        let admin = AdminService::new(settings, access, source, Arc::clone(&readiness), inherited);
        let admin = Arc::new(admin);
        services.start(Arc::clone(&admin) as _)?;
        endpoints.list.push(admin);
    }
    start_workers(workers, &supervisor)?;
    if let Some(watchdog) = Watchdog::new(&process, succession.is_some()) {
        services.start(Arc::new(watchdog))?;
    }
    let serve = || {
        // A worker that has ended takes the program with it.
        commands.iter().zip(first).for_each(|(worker, first)| drop(worker.send(first)));
        // The end of the channel: every worker accepts, or has ended, which the supervisor finds out.
        let _ = all_taken.recv_timeout(TAKE_OVER);
        readiness.set_accepting();
    };
    begin(succession, &process, &sockets, &endpoints, threads, serve)?;
    sockets.forget_others();
    let upgrader = Upgrader {
        program,
        process: Arc::clone(&process),
        threads: threads.clone(),
        admission,
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
        process: Arc::clone(&process),
        threads: threads.clone(),
        upgrader,
        checks,
        workers: commands,
        is_draining: drain.has_begun(),
        log_files: log_files.clone(),
        looked_at: inputs.stamps.clone(),
        current: Current { number: 1, inputs, generation, sockets, served },
    };
    let watches = config.process.reload_on_change;
    services.start(Arc::new(ReloadService::new(reload.clone(), reload_requests, reloader, watches)))?;
    let outcome = {
        let tick = || {
            services.tick();
            log_files.tick(&sink);
        };
        supervisor.supervise(drain, tick, || reload.ask())
    };
    services.stop();
    farewell.finish();
    sink.finish(LAST_LINES);
    housekeeping.report_last_losses();
    outcome
}

/// Has this process serve: at once, or in the place of the one before it.
fn begin(
    succession: &mut Option<Succession>,
    process: &Process,
    sockets: &Sockets,
    endpoints: &Endpoints,
    threads: &Threads,
    serve: impl FnOnce(),
) -> Result<(), Failure> {
    let Some(predecessor) = succession else {
        endpoints.begin()?;
        serve();
        systemd::notify("READY=1\nSTATUS=generation 1 serves");
        return Ok(());
    };
    let cache = process.sessions.cache.as_ref();
    if let (Some(memory), Some(cache)) = (predecessor.memory.take(), cache) {
        let replayed = memory.replay(cache);
        let count = replayed.map_err(|error| Failure::runtime("cannot read the sessions", error))?;
        log(Level::Info, format_args!("upgrade: sessions taken over: {count}"));
    }
    let kept = sockets.addresses().map(ToString::to_string).collect();
    let old = predecessor.take_over(kept, cache.map(Arc::as_ref), serve)?;
    *succession = None;
    systemd::notify(&format!("MAINPID={}\nREADY=1\nSTATUS=generation 1 serves", std::process::id()));
    if let Err(failure) = endpoints.begin() {
        // It serves already, and nobody else does.
        log(Level::Error, failure.text(false).trim_end());
    }
    for (old, channel) in old {
        let pid = old.pid;
        if let Err(error) = endpoints.old.follow(old, channel, cache.cloned(), threads) {
            log(Level::Warning, format_args!("upgrade: process {pid} cannot be followed: {error}"));
        }
    }
    log(Level::Info, "upgrade: this process serves");
    Ok(())
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

/// A worker before it runs, and its main thread's end of its commands.
type Prepare = (Worker, UnboundedSender<Command>);

fn prepare_workers(
    config: &Config,
    process: &Process,
    admission: &Arc<Admission>,
    sink: &Sink,
    sharing: Option<&Sharing>,
    confinement: Option<&Arc<Confinement>>,
) -> Vec<Prepare> {
    let format = match config.process.log {
        Log::Text => Format::Text,
        Log::Json => Format::Json,
        Log::Off => Format::Off,
    };
    let overload = overload(&config.process, &process.crowd);
    let worker = |(index, ((&cpu, counters), pulse))| {
        let (sender, commands) = unbounded_channel();
        let worker = Worker {
            index: u16::try_from(index).expect("the configuration allows 1024 workers"),
            cpu,
            admission: Arc::clone(admission),
            lines: sink.lines(format),
            sharing: sharing.cloned(),
            counters: Arc::clone(counters),
            pulse: Arc::clone(pulse),
            overload: overload.clone(),
            confinement: confinement.cloned(),
            commands,
        };
        (worker, sender)
    };
    process.cpus.iter().zip(&process.counters).zip(&process.pulses).enumerate().map(worker).collect()
}

fn overload(settings: &courser_config::Process, crowd: &Arc<Crowd>) -> OverloadSettings {
    let limits = Limits { target_wait: settings.target_wait, patience: settings.patience };
    let exempt = settings.overload_exempt.iter().map(|network| Network::new(network.address, network.prefix));
    OverloadSettings {
        limits: settings.overload.then_some(limits),
        exempt: exempt.collect(),
        crowd: Arc::clone(crowd),
    }
}

fn start_workers(workers: Vec<Worker>, supervisor: &Supervisor) -> Result<(), Failure> {
    let start = |worker: Worker| {
        let (index, events) = (worker.index, supervisor.events());
        let work = move || {
            let ended = catch_panic(|| worker.run()).map_err(|panic| format!("it has panicked: {panic}"));
            let result = ended.and_then(|result| result.map_err(|error| error.to_string()));
            // A main thread that is gone needs no event.
            let _ = events.send(Event::WorkerEnded { index, result });
        };
        supervisor.spawn(&format!("worker-{index}"), work)
    };
    workers.into_iter().try_for_each(start)
}

fn session_file(config: &Config, process: &Process) -> Option<SessionFile> {
    let (path, keys) = (config.sessions.file.as_ref()?.value.clone(), &process.keys.keys);
    let cache = Arc::clone(process.sessions.cache.as_ref()?);
    Some(SessionFile { path, vault: Vault::new(Arc::clone(keys)), cache })
}

fn sink(log: Box<dyn Output + Send>, threads: &Threads) -> Result<Sink, Failure> {
    let (sink, work) = Sink::new(log);
    threads.spawn("log", work).map_err(|error| Failure::runtime("cannot start the log", error))?;
    Ok(sink)
}
