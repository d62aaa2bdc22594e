//! The workers: made of the settings before there is a thread, and started when everything else is there.

use std::sync::Arc;

use courser_config::{Config, Family, Log};
use courser_net::Network;
use courser_net::confinement::Confinement;
use courser_proxy::supervision::catch_panic;
use courser_proxy::{Command, Crowd, Limits, OverloadSettings, Prefixes, Worker};
use courser_telemetry::{Format, Sink};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::exit::Failure;
use crate::status_source::StatusSource;
use crate::supervisor::{Event, Supervisor};

/// The workers, and the main thread's ends of their commands, which the status has from now on too.
pub(super) fn prepare(
    config: &Config,
    source: &StatusSource,
    sink: &Sink,
    confinement: Option<&Arc<Confinement>>,
) -> (Vec<Worker>, Vec<UnboundedSender<Command>>) {
    let process = &source.process;
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
            admission: Arc::clone(&source.admission),
            lines: sink.lines(format),
            sharing: source.sharing.clone(),
            challenges: Arc::clone(source.acme.challenges()),
            counters: Arc::clone(counters),
            pulse: Arc::clone(pulse),
            overload: overload.clone(),
            confinement: confinement.cloned(),
            commands,
        };
        (worker, sender)
    };
    let all = process.cpus.iter().zip(&process.counters).zip(&process.pulses);
    let (workers, commands): (_, Vec<_>) = all.enumerate().map(worker).unzip();
    // Set once.
    drop(source.workers.set(commands.clone()));
    (workers, commands)
}

fn overload(settings: &courser_config::Process, crowd: &Arc<Crowd>) -> OverloadSettings {
    let lengths = |of: Family| {
        let prefixes = settings.overload_prefixes.iter().filter(move |prefix| prefix.family == of);
        prefixes.map(|prefix| prefix.bits).collect()
    };
    let limits = Limits {
        target_wait: settings.target_wait,
        patience: settings.patience,
        prefixes: Prefixes::new(lengths(Family::Ipv4), lengths(Family::Ipv6)),
    };
    let exempt = settings.overload_exempt.iter().map(|network| Network::new(network.address, network.prefix));
    OverloadSettings {
        limits: settings.overload.then_some(limits),
        exempt: exempt.collect(),
        crowd: Arc::clone(crowd),
    }
}

/// A thread for each. They wait for the first generation.
pub(super) fn start(workers: Vec<Worker>, supervisor: &Supervisor) -> Result<(), Failure> {
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
