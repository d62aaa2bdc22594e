//! The numbers of the table of metrics as a scraper gets them. May not count anything itself.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use courser_fleet::Refusal;
use courser_session::ResumptionFailure;
use courser_telemetry::exposition::{Exposition, Family, TextFormat, Value};
use courser_telemetry::metrics::{Combination, Definition, Kind, METRICS, Metric, Outcome, State, Step};
use courser_telemetry::{CloseReason, Counts, Resumption};
use courser_tls::{Identity, names};

use crate::status::Status;
use crate::status::backends::ServerRow;
use crate::status_source::StatusSource;

/// Series of certificates, and of servers, at most.
const MOST: usize = 1000;

/// What stands for a label that has no value.
const NONE: &str = "none";

/// All numbers of now, and how many series they are.
pub(crate) fn scrape(source: &StatusSource, format: TextFormat) -> (String, usize) {
    let (status, counts) = source.collect();
    let mut exposition = Exposition::new(format);
    for definition in METRICS.iter().filter(|definition| is_there(definition, &status)) {
        let family = exposition.family(definition.metric);
        match definition.metric {
            Metric::StepDuration => steps(family, &counts),
            _ if of_process(definition.metric) => process(family, definition.metric, source, &status),
            _ if definition.series.is_empty() || of_listeners(definition.metric) => {
                labelled(family, definition.metric, source, &status);
            }
            _ => counted(family, definition, &counts),
        }
    }
    let series = exposition.series();
    (exposition.finish(), series)
}

/// Whether the program has the part that a metric is about.
fn is_there(definition: &Definition, status: &Status) -> bool {
    let name = definition.name;
    (status.cache.is_some() || !name.starts_with("courser_cache_"))
        && (status.messages.is_some() || !name.starts_with("courser_fleet_"))
        && (status.store.is_some() || !name.starts_with("courser_store_"))
}

fn of_process(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::BuildInfo
            | Metric::StartTime
            | Metric::ConfigGeneration
            | Metric::ConfigReloadSuccess
            | Metric::ConfigReloadTime
            | Metric::FleetPeers
    )
}

fn of_listeners(metric: Metric) -> bool {
    matches!(metric, Metric::Connections | Metric::OpenConnections | Metric::Handshakes)
}

fn process(mut family: Family<'_>, metric: Metric, source: &StatusSource, status: &Status) {
    match metric {
        Metric::BuildInfo => family.sample(&[&status.version], 1),
        Metric::StartTime => family.sample(&[], since_epoch(source.process.started_at)),
        Metric::ConfigGeneration => {
            family.sample(&[], status.generation.as_ref().map_or(0, |generation| generation.number));
        }
        Metric::ConfigReloadSuccess => family.sample(&[], source.reload.last_was_successful()),
        Metric::ConfigReloadTime => family.sample(&[], since_epoch(source.reload.last_attempt())),
        _ => {
            let peers = status.messages.iter().flat_map(|messages| &messages.peers);
            let (silent, alive): (Vec<_>, Vec<_>) = peers.partition(|peer| peer.is_silent);
            family.sample(&["alive"], alive.len() as u64);
            family.sample(&["silent"], silent.len() as u64);
        }
    }
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn steps(mut family: Family<'_>, counts: &Counts) {
    for step in Step::ALL {
        family.histogram(&[step.name()], &counts.step(*step));
    }
}

/// Numbers that workers count for the process, or that were put in.
fn counted(mut family: Family<'_>, definition: &Definition, counts: &Counts) {
    for (series, &number) in counts.of(definition.metric).iter().enumerate() {
        let value = match definition.unit {
            "seconds" => Value::Time(Duration::from_micros(number)),
            _ => Value::Count(number),
        };
        match definition.metric {
            Metric::ResumptionFailures => family.sample(&[ResumptionFailure::ALL[series].name()], value),
            Metric::FleetRefusals => family.sample(&[Refusal::ALL[series].name()], value),
            _ if definition.labels.is_empty() => family.sample(&[], value),
            _ => family.sample(&definition.series[series].split('/').collect::<Vec<_>>(), value),
        }
    }
    debug_assert!(definition.kind != Kind::Histogram);
}

/// Numbers that have labels from the configuration.
fn labelled(family: Family<'_>, metric: Metric, source: &StatusSource, status: &Status) {
    match metric {
        Metric::Connections | Metric::OpenConnections | Metric::Negotiated => {
            listeners(family, metric, source);
        }
        Metric::Handshakes => handshakes(family, source),
        Metric::AcceptQueueLength | Metric::AcceptQueueLimit | Metric::SynDropped => {
            queues(family, metric, source);
        }
        Metric::WorkerBusy | Metric::WorkerConnections => workers(family, metric, status),
        Metric::CertificateNotAfter | Metric::CertificateLifetime | Metric::StapleNotAfter => {
            certificates(family, metric, source);
        }
        _ => servers(family, metric, &status.backends.servers),
    }
}

fn listeners(mut family: Family<'_>, metric: Metric, source: &StatusSource) {
    for listener in source.process.directory.listeners() {
        let name = listener.name.as_str();
        match metric {
            Metric::Connections => {
                for (reason, count) in CloseReason::ALL.iter().zip(listener.closed()) {
                    family.sample(&[name, reason.cause().name(), reason.name()], count);
                }
            }
            Metric::OpenConnections => {
                for (state, count) in State::ALL.iter().zip(listener.open()) {
                    family.sample(&[name, state.name()], count);
                }
            }
            _ => {
                for (Combination { suite, group, scheme }, count) in listener.negotiated() {
                    let version = if suite >> 8 == 0x13 { "TLSv1.3" } else { "TLSv1.2" };
                    let suite = names::suite(suite).unwrap_or(NONE);
                    let (group, scheme) = (names::group(group), names::scheme(scheme));
                    let labels = [name, version, suite, group.unwrap_or(NONE), scheme.unwrap_or(NONE)];
                    family.sample(&labels, count);
                }
            }
        }
    }
}

fn handshakes(mut family: Family<'_>, source: &StatusSource) {
    for ((listener, host), counters) in source.process.directory.hosts() {
        for (Outcome { kind, version, result }, count) in counters.outcomes() {
            let (kind, version) = (kind.map_or(NONE, Resumption::name), version.unwrap_or(NONE));
            family.sample(&[&listener, &host, kind, version, result.name()], count);
        }
    }
}

/// Of each listener and worker that has asked the kernel.
fn queues(mut family: Family<'_>, metric: Metric, source: &StatusSource) {
    for listener in source.process.directory.listeners() {
        for (worker, block) in listener.workers().iter().enumerate() {
            let queue = block.queue();
            if queue.limit == 0 {
                continue;
            }
            let value = match metric {
                Metric::AcceptQueueLength => queue.length,
                Metric::AcceptQueueLimit => queue.limit,
                _ => queue.dropped,
            };
            family.sample(&[&listener.name, &worker.to_string()], value);
        }
    }
}

fn workers(mut family: Family<'_>, metric: Metric, status: &Status) {
    for (index, worker) in status.workers.iter().enumerate() {
        let value = match metric {
            Metric::WorkerBusy => Value::Time(Duration::from_micros(worker.busy_us)),
            _ => Value::Count(worker.connections),
        };
        family.sample(&[&index.to_string()], value);
    }
}

/// Of those for one name with one kind of key the one that ends first.
fn certificates(mut family: Family<'_>, metric: Metric, source: &StatusSource) {
    let mut seen = BTreeSet::new();
    for certificate in source.reload.ending(4 * MOST) {
        if seen.len() >= MOST || !seen.insert((certificate.name().to_owned(), certificate.key().to_owned())) {
            continue;
        }
        let Identity { not_before, not_after, .. } = *certificate.identity;
        let seconds = match metric {
            Metric::CertificateNotAfter => not_after,
            Metric::StapleNotAfter => match &certificate.staple {
                Some(staple) => staple.not_after,
                None => continue,
            },
            _ => not_after.saturating_sub(not_before),
        };
        family.sample(&[certificate.name(), certificate.key()], Value::Signed(seconds));
    }
}

fn servers(mut family: Family<'_>, metric: Metric, servers: &[ServerRow]) {
    for server in servers.iter().take(MOST) {
        let value = match metric {
            Metric::ServerUp => u64::from(server.gets_connections()),
            Metric::ServerOpenConnections => server.connections.into(),
            Metric::ServerConnections => server.served,
            Metric::ServerFailures => server.failures,
            _ => server.ejections,
        };
        family.sample(&[&server.pool, &server.server], value);
    }
}
