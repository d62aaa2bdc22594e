//! The status of the running program, from its parts, for the control socket.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use courser_acme::RecordError;
use courser_fleet::{Direction, Passed, PeerStatus, PullCounts, ReceivedCounts, Refusal};
use courser_proxy::{Admission, Command, Pulse};
use courser_session::{ClockStatus, ResumptionFailure, Stats};
use courser_sharing::{FleetStatus, Sharing, UnsentCounts};
use courser_store::{StoreCount, StoreCounters};
use courser_telemetry::metrics::{Combination, Distribution, ListenerBlock, Metric, REFUSALS, State, Step};
use courser_telemetry::time::{micros, write_rfc3339};
use courser_telemetry::{CloseReason, Counts, LossCause, Losses, Resumption, event};
use courser_tls::names;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use crate::acme;
use crate::backends::{Backends, Change};
use crate::control::{ControlHandler, RequestOutcome, SUPERSEDED};
use crate::findings::findings;
use crate::fleet_keys::{PersistentKeys, unix_now};
use crate::process::Process;
use crate::readiness::Readiness;
use crate::recent::History;
use crate::service::Running;
use crate::service::acme::AcmeService;
use crate::service::reload::ReloadHandle;
use crate::status;
use crate::status::backends::ServerRow;
use crate::succeed::{self, OldProcesses};

/// Where the status of the running program comes from.
pub(crate) struct StatusSource {
    pub(crate) process: Arc<Process>,
    pub(crate) sharing: Option<Sharing>,
    pub(crate) acme: Arc<AcmeService>,
    pub(crate) services: Running,
    pub(crate) reload: ReloadHandle,
    pub(crate) backends: Arc<Backends>,
    /// Lost lines of the connection log.
    pub(crate) log: Arc<Losses>,
    pub(crate) admission: Arc<Admission>,
    /// Once they are there.
    pub(crate) workers: OnceLock<Vec<UnboundedSender<Command>>>,
    /// Once it is known.
    pub(crate) readiness: OnceLock<Arc<Readiness>>,
    pub(crate) history: Mutex<History>,
    /// Processes that this one has replaced.
    pub(crate) old: Arc<OldProcesses>,
    /// For who asks often.
    pub(crate) latest: Mutex<Option<(Instant, Arc<Value>)>>,
}

impl ControlHandler for Arc<StatusSource> {
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        match request {
            "fleet status" => {
                serde_json::to_writer(&mut *out, &self.status())?;
                writeln!(out)?;
                Ok(RequestOutcome::Known)
            }
            "reload" => self.reload(false, out),
            "reload check" => self.reload(true, out),
            "fleet watch" => self.watch(out).map(|()| RequestOutcome::Known),
            "status watch" => self.watch_status(out).map(|()| RequestOutcome::Known),
            "backend list" => write_servers(out, self.backends.rows()),
            _ if request.starts_with("acme ") => self.acme(request, out),
            _ if request.starts_with("upgrade") => self.upgrade(request, out),
            _ => match request.strip_prefix("backend ").and_then(Change::parse) {
                Some((change, name)) => match self.backends.change(name, change) {
                    Ok(servers) => write_servers(out, servers),
                    Err(why) => {
                        writeln!(out, "{}", json!({ "error": why, "kind": "name" }))?;
                        Ok(RequestOutcome::Known)
                    }
                },
                None => Ok(RequestOutcome::Unknown),
            },
        }
    }
}

impl StatusSource {
    /// A status that is at most a second old: however many ask, it is taken once a second.
    pub(crate) fn latest(&self) -> Arc<Value> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((taken, status)) if taken.elapsed() < STATUS_AGE => Arc::clone(status),
            _ => {
                let status = Arc::new(serde_json::to_value(self.status()).unwrap_or_default());
                *latest = Some((Instant::now(), Arc::clone(&status)));
                status
            }
        }
    }

    /// The status with what has happened lately, and what is wrong.
    pub(crate) fn status(&self) -> status::Status {
        let (mut status, counts) = self.collect();
        status.state = match self.readiness.get().map(|readiness| readiness.readiness()) {
            None => "starting".to_owned(),
            Some(Ok(())) => "ready".to_owned(),
            Some(Err(why)) => why,
        };
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.add_recent(Instant::now(), &counts, &mut status);
        status.findings = findings(&status);
        status
    }

    /// The status, and the counts that it was made of.
    pub(crate) fn collect(&self) -> (status::Status, Counts) {
        self.measure();
        let mut counts = Counts::default();
        self.process.counters.iter().for_each(|worker| counts.add(&worker.read()));
        let events = event::losses().map_or([0; 2], |losses| losses.by_cause());
        counts.set(Metric::LogLinesLost, &[self.log.by_cause(), events].concat());
        self.count_listeners(&mut counts);
        let cache = self.process.sessions.cache.as_deref();
        if let Some(cache) = cache {
            count_sessions(&mut counts, &cache.stats());
        }
        let store = self.sharing.as_ref().and_then(|sharing| sharing.store.as_ref());
        if let Some(store) = store {
            count_store(&mut counts, &store.counters);
        }
        let mut status = status::Status {
            schema: status::SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.process.name.clone(),
            pid: std::process::id(),
            old_processes: self.old.list(),
            up_s: self.process.started.elapsed().as_secs(),
            keys: self.process.fleet.as_ref().map(keys).unwrap_or_default(),
            generation: Some(self.reload.serving()),
            cache: cache.map(|_| status::Cache::default()),
            store: store
                .map(|store| status::Store { url: store.endpoint.url().to_string(), ..Default::default() }),
            ..Default::default()
        };
        self.services.status(&mut status, &mut counts);
        self.backends.count(&mut counts);
        show(&mut status, &counts);
        status.backends.servers = self.backends.rows();
        self.add_rows(&mut status);
        (status, counts)
    }

    /// Has workers ask the kernel how many clients wait. One that is busy says so later: its last answer holds.
    fn measure(&self) {
        let (done, all_done) = mpsc::channel();
        for worker in self.workers.get().into_iter().flatten() {
            let _ = worker.send(Command::Measure(done.clone()));
        }
        drop(done);
        let _ = all_done.recv_timeout(PATIENCE);
    }

    fn count_listeners(&self, counts: &mut Counts) {
        let (mut closed, mut open) = ([0; CloseReason::ALL.len()], [0; State::ALL.len()]);
        for listener in self.process.directory.listeners() {
            closed.iter_mut().zip(listener.closed()).for_each(|(sum, count)| *sum += count);
            open.iter_mut().zip(listener.open()).for_each(|(sum, count)| *sum += count);
        }
        let mut done = [0; Resumption::ALL.len()];
        for (_, host) in self.process.directory.hosts() {
            let kinds = host.outcomes().filter_map(|(outcome, count)| Some((outcome.kind?, count)));
            kinds.for_each(|(kind, count)| done[kind as usize] += count);
        }
        counts.set(Metric::Connections, &closed);
        counts.set(Metric::OpenConnections, &open);
        counts.set(Metric::Handshakes, &done);
        counts.set(Metric::ConnectionLimit, &[self.admission.limit() as u64]);
    }

    fn add_rows(&self, status: &mut status::Status) {
        let listeners = self.process.directory.listeners();
        let worker = |(index, pulse): (usize, &Arc<Pulse>)| {
            let mut row = status::WorkerRow {
                busy_us: micros(pulse.busy()),
                connections: 0,
                queue_length: 0,
                queue_limit: 0,
            };
            for block in listeners.iter().filter_map(|listener| listener.workers().get(index)) {
                row.connections += block.open().iter().sum::<u64>();
                row.queue_length += block.queue().length;
                row.queue_limit += block.queue().limit;
            }
            row
        };
        status.workers = self.process.pulses.iter().enumerate().map(worker).collect();
        let mut negotiated = BTreeMap::<Combination, u64>::new();
        for listener in &listeners {
            let queues = || listener.workers().iter().map(ListenerBlock::queue);
            status.listeners.push(status::ListenerRow {
                name: listener.name.clone(),
                open: listener.open().iter().sum(),
                closed: listener.closed().iter().sum(),
                queue_length: queues().map(|queue| queue.length).sum(),
                queue_limit: queues().map(|queue| queue.limit).sum(),
                syn_dropped: queues().map(|queue| queue.dropped).sum(),
            });
            listener
                .negotiated()
                .into_iter()
                .for_each(|(combination, count)| *negotiated.entry(combination).or_default() += count);
        }
        status.negotiated = negotiated.into_iter().map(negotiated_row).collect();
        for (_, host) in self.process.directory.hosts() {
            for (outcome, count) in host.outcomes().filter(|(outcome, _)| outcome.kind.is_none()) {
                *status.handshakes.failed.entry(outcome.result.name().to_owned()).or_default() += count;
            }
        }
    }

    fn reload(&self, only_check: bool, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        match self.reload.reload(only_check) {
            Some(outcome) => serde_json::to_writer(&mut *out, &outcome)?,
            None if self.process.is_superseded.load(Ordering::Relaxed) => write!(out, "{SUPERSEDED}")?,
            None => write!(out, "{{\"error\":\"the program is about to end\"}}")?,
        }
        writeln!(out)?;
        Ok(RequestOutcome::Known)
    }

    /// `upgrade`, and what it is asked for as JSON.
    fn upgrade(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        let asked = request.strip_prefix("upgrade ").map(serde_json::from_str::<succeed::Request>);
        let Some(Ok(succeed::Request { program, silence_s })) = asked else {
            return Ok(RequestOutcome::Unknown);
        };
        let outcome = self.reload.upgrade(program, Duration::from_secs(silence_s));
        let written = match &outcome {
            Some(outcome) => serde_json::to_writer(&mut *out, outcome).map_err(io::Error::from),
            None => write!(out, "{{\"error\":\"the program is about to end\"}}"),
        };
        let written = written.and_then(|()| writeln!(out));
        if let Some(succeed::Outcome::Done(_)) = outcome {
            // This process may end now.
            self.reload.upgrade_is_answered();
        }
        written.map(|()| RequestOutcome::Known)
    }

    /// `acme` and what it is asked for.
    fn acme(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        let ending = || json!({ "error": "the program is about to end, or an earlier one still orders" });
        let Some(handle) = self.acme.handle() else {
            if request == "acme status" {
                return Ok(RequestOutcome::Known);
            }
            writeln!(out, "{}", json!({ "error": "no certificate is ordered here", "kind": "name" }))?;
            return Ok(RequestOutcome::Known);
        };
        let sets = || handle.status().into_iter().map(|set| json!(set)).collect();
        let lines: Vec<Value> =
            match request.split_once(' ').map(|(_, verb)| verb.split_once(' ').unwrap_or((verb, ""))) {
                Some(("status", _)) => sets(),
                Some(("order", _)) => handle.order_now().map_or_else(|| vec![ending()], |_| sets()),
                Some(("dry-run", directory)) => {
                    let directory = Some(directory).filter(|url| !url.is_empty()).map(str::to_owned);
                    let tried = handle.dry_run(directory.or_else(|| acme::staging(&handle)));
                    tried.map_or_else(
                        || vec![ending()],
                        |tried| tried.into_iter().map(|tried| json!(tried)).collect(),
                    )
                }
                Some(("record", name)) => vec![match handle.record(name) {
                    None => ending(),
                    Some(Ok(record)) => json!(record),
                    Some(Err(RecordError::Name(why))) => json!({ "error": why, "kind": "name" }),
                    Some(Err(RecordError::Ca(why))) => json!({ "error": why }),
                }],
                _ => return Ok(RequestOutcome::Unknown),
            };
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(RequestOutcome::Known)
    }

    /// A line each second, until the client has gone, or the program drains: after an upgrade another process answers.
    fn watch_status(&self, out: &mut UnixStream) -> io::Result<()> {
        loop {
            let status = self.latest();
            // In one piece: where it is slow to go out, others may ask meanwhile.
            out.write_all(format!("{status}\n").as_bytes())?;
            if status["state"] == "draining" {
                return Ok(());
            }
            thread::sleep(EACH);
        }
    }

    /// A line for each message, until the client has gone. Without messages a line now and then: only a write that fails
    /// shows that the client has gone.
    fn watch(&self, out: &mut UnixStream) -> io::Result<()> {
        let Some(fleet) = self.sharing.as_ref().and_then(|sharing| sharing.fleet.as_ref()) else {
            return writeln!(out, "{{\"error\":\"this host sends no messages: it has no fleet.listen\"}}");
        };
        let messages = fleet.watch();
        loop {
            let line = match messages.recv_timeout(QUIET) {
                Ok(passed) => message_line(&passed),
                Err(RecvTimeoutError::Timeout) => json!({ "time": stamp(), "text": "no messages" }),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        }
    }
}

fn negotiated_row((combination, count): (Combination, u64)) -> status::NegotiatedRow {
    let Combination { suite, group, scheme } = combination;
    let version = if suite >> 8 == 0x13 { "TLSv1.3" } else { "TLSv1.2" };
    status::NegotiatedRow {
        version: version.to_owned(),
        suite: names::suite(suite).unwrap_or("unknown").to_owned(),
        group: names::group(group).map(str::to_owned),
        scheme: names::scheme(scheme).map(str::to_owned),
        count,
    }
}

/// Between two statuses for who watches.
const EACH: Duration = Duration::from_secs(1);

/// How old a status may be. A little less than that, so that who asks each second gets a new one each time.
const STATUS_AGE: Duration = Duration::from_millis(950);

/// For workers to ask the kernel: they come round within a millisecond or two, unless they are full.
const PATIENCE: Duration = Duration::from_millis(5);

/// A line for each server.
fn write_servers(out: &mut UnixStream, servers: Vec<ServerRow>) -> io::Result<RequestOutcome> {
    let mut text = Vec::new();
    for server in servers {
        serde_json::to_writer(&mut text, &server)?;
        text.push(b'\n');
    }
    out.write_all(&text)?;
    Ok(RequestOutcome::Known)
}

fn message_line(passed: &Passed) -> Value {
    json!({
        "time": stamp(),
        "direction": match passed.direction {
            Direction::Sent => "sent",
            Direction::Received => "received",
        },
        "peer": passed.peer,
        "kind": passed.kind,
        "sessions": passed.items,
        "bytes": passed.bytes,
        "refused": passed.refusal.map(Refusal::name),
        "text": passed.to_string(),
    })
}

fn stamp() -> String {
    let mut stamp = String::new();
    write_rfc3339(SystemTime::now(), &mut stamp);
    stamp
}

/// Time without a message after which a line says so.
const QUIET: Duration = Duration::from_secs(10);

fn keys(fleet: &PersistentKeys) -> Vec<status::Key> {
    let now = unix_now();
    let standings = fleet.keys.statuses(now).into_iter();
    let key = |standing: courser_session::KeyStatus| status::Key {
        fleet: standing.fleet.to_string(),
        epoch: standing.epoch,
        rolls_in_s: standing.rolls_at.0.saturating_sub(now.0),
        forward_secret: standing.forward_secret,
        clock: match standing.clock {
            ClockStatus::Agrees => "agrees",
            ClockStatus::Behind => "behind",
            ClockStatus::TooFarAhead => "too_far_ahead",
        }
        .to_owned(),
    };
    standings.map(key).collect()
}

/// Writes the counts to their places in the status.
fn show(status: &mut status::Status, counts: &Counts) {
    let one = |metric| counts.of(metric)[0];
    let below = |place| counts.below(place).collect();
    let any = |place| counts.below(place).filter(|(_, count)| *count > 0).collect();
    let step = |&step: &Step| Some((step.name().to_owned(), times(&counts.step(step))?));
    status.connections = status::Connections {
        closed: any("connections.closed"),
        shed: any("connections.shed"),
        open: below("connections.open"),
        limit: one(Metric::ConnectionLimit),
        bytes_in: counts.of(Metric::PlaintextBytes)[0],
        bytes_out: counts.of(Metric::PlaintextBytes)[1],
        steps: Step::ALL.iter().filter_map(step).collect(),
    };
    let reasons = ResumptionFailure::ALL.into_iter().zip(counts.of(Metric::ResumptionFailures));
    let not_resumed = reasons.filter(|(_, count)| **count > 0);
    status.handshakes = status::Handshakes {
        full: one(Metric::Handshakes),
        failed: BTreeMap::new(),
        resumed: below("handshakes.resumed"),
        remote_sessions: one(Metric::RemoteSessions),
        not_resumed: not_resumed.map(|(reason, count)| (reason.name().to_owned(), *count)).collect(),
        remote_lookups: below("handshakes.remote_lookups"),
        with_backends: below("handshakes.with_backends"),
    };
    status.backends = status::backends::Backends {
        states: below("backends.states"),
        connections: one(Metric::BackendConnections),
        queue_length: one(Metric::BackendQueue),
        failures: one(Metric::BackendFailures),
        retries: one(Metric::BackendRetries),
        ejections: one(Metric::BackendEjections),
        checks: below("backends.checks"),
        servers: Vec::new(),
    };
    let (lines, events) = counts.of(Metric::LogLinesLost).split_at(LossCause::ALL.len());
    (status.log_lines_lost, status.event_lines_lost) = (lines.iter().sum(), events.iter().sum());
    if let Some(cache) = &mut status.cache {
        *cache = status::Cache {
            sessions: one(Metric::CacheSessions),
            bytes: one(Metric::CacheBytes),
            capacity: one(Metric::CacheCapacity),
            evicted: one(Metric::CacheEvictions),
        };
    }
    if let Some(messages) = &mut status.messages {
        messages.sent = below("messages.sent");
        messages.received = below("messages.received");
        messages.pulls = below("messages.pulls");
        messages.transferred = one(Metric::FleetTransferred);
        for (refusal, &count) in Refusal::ALL.into_iter().zip(counts.of(Metric::FleetRefusals)) {
            if count > 0 {
                messages.refused.entry(refusal.name().to_owned()).or_default().count = count;
            }
        }
    }
    if let Some(store) = &mut status.store {
        store.breaker_open = one(Metric::StoreBreakersOpen) > 0;
        store.counts = below("store.counts");
    }
}

/// `None` where nothing was observed.
fn times(step: &Distribution<'_>) -> Option<status::StepTimes> {
    let percentile = |percent| step.percentile(percent).map(micros);
    let below_us = step.buckets().map(|(bound, count)| (micros(bound), count)).collect();
    Some(status::StepTimes {
        count: step.count(),
        p50_us: percentile(50)?,
        p99_us: percentile(99)?,
        below_us,
    })
}

fn count_sessions(counts: &mut Counts, stats: &Stats) {
    counts.set(Metric::CacheSessions, &[stats.entries as u64]);
    counts.set(Metric::CacheBytes, &[stats.bytes as u64]);
    counts.set(Metric::CacheCapacity, &[stats.capacity_bytes as u64]);
    counts.set(Metric::CacheEvictions, &[stats.evicted_probation + stats.evicted_protected]);
}

fn count_store(counts: &mut Counts, store: &StoreCounters) {
    use StoreCount as Of;
    let mut set = |metric, of: &[StoreCount]| {
        counts.set(metric, &of.iter().map(|&what| store.get(what)).collect::<Vec<_>>());
    };
    set(Metric::StoreLookups, &[Of::Gets, Of::Hits, Of::Misses, Of::Skipped]);
    set(Metric::StoreFailures, &[Of::Timeouts, Of::ConnectionsLost, Of::Errors, Of::ProtocolErrors]);
    set(Metric::StorePuts, &[Of::Puts, Of::Stored, Of::Dropped]);
    set(Metric::StoreDeletes, &[Of::Deletes, Of::Deleted, Of::DeletesLost]);
    set(Metric::StoreDeletesWaiting, &[Of::DeletesWaiting]);
    set(Metric::StoreConnections, &[Of::Connected]);
    set(Metric::StoreBreaker, &[Of::BreakerOpened, Of::BreakerClosed]);
    set(Metric::StoreBreakersOpen, &[Of::BreakerOpenNow]);
    counts.set(Metric::StoreBreakerOpen, &[1000 * store.get(Of::BreakerOpenMillis)]);
}

/// The part of the fleet's thread, without what is counted, which goes to `counts`.
pub(crate) fn messages(fleet: &FleetStatus, counts: &mut Counts) -> status::Messages {
    const { assert!(Refusal::ALL.len() == REFUSALS) };
    let member = &fleet.member;
    let (sent, received) = (&member.sent, &member.received);
    let UnsentCounts { send_buffer_full, unreachable, datagram_too_large, other } = fleet.unsent;
    counts.set(Metric::FleetMessagesSent, &[sent.messages]);
    counts.set(Metric::FleetBytesSent, &[sent.bytes]);
    counts.set(Metric::FleetSessionsSent, &[sent.pushed]);
    counts.set(Metric::FleetSessionsTooLarge, &[sent.session_too_large]);
    let dropped = sent.dropped + fleet.dropped;
    let unsent = [dropped, send_buffer_full, unreachable, datagram_too_large, other];
    counts.set(Metric::FleetMessagesUnsent, &unsent);
    counts.set(Metric::FleetMessagesReceived, &[received.accepted]);
    counts.set(Metric::FleetBytesReceived, &[received.bytes]);
    let ReceivedCounts { taken, duplicate, tombstoned, not_valid, too_large, .. } = *received;
    counts.set(Metric::FleetSessionsReceived, &[taken, duplicate, tombstoned, not_valid, too_large]);
    counts.set(Metric::FleetSessionsDeleted, &[received.deleted]);
    counts.set(Metric::FleetReceiveErrors, &[fleet.receive_errors]);
    counts.set(Metric::FleetRefusals, &Refusal::ALL.map(|refusal| member.refused.get(refusal)));
    let PullCounts { requested, sent, found, not_found, negative_cached, not_sent } = member.pulls;
    counts.set(Metric::FleetPulls, &[requested, sent, found, not_found, negative_cached, not_sent]);
    counts.set(Metric::FleetTransferred, &[member.transferred]);
    let refused = |refusal: Refusal| {
        let last_source = Some(member.refused.last_source(refusal)?.to_string());
        Some((refusal.name().to_owned(), status::Refused { count: 0, last_source }))
    };
    status::Messages {
        peers: member.peers.iter().map(peer).collect(),
        refused: Refusal::ALL.into_iter().filter_map(refused).collect(),
        state_transfer: member.state_transfer.name().to_owned(),
        ..Default::default()
    }
}

fn peer(peer: &PeerStatus) -> status::Peer {
    status::Peer {
        name: peer.label(),
        address: peer.address.to_string(),
        first_seen_s: peer.last_seen.0.saturating_sub(peer.first_seen.0) / 1000,
        last_seen_ms: peer.last_seen_ms,
        is_silent: peer.is_silent,
        epoch: peer.epoch,
        sessions: peer.entries,
        clock_ahead_ms: peer.clock_ahead_ms,
        is_clock_off: peer.is_clock_off,
        lag_ms: peer.lag_ms,
        lost: peer.lost,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use courser_telemetry::Counters;
    use courser_telemetry::metrics::{Kind, METRICS};

    /// Where each number of a JSON value is.
    fn numbers(value: &Value, place: &str, places: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(object) => {
                object.iter().for_each(|(key, value)| numbers(value, &format!("{place}/{key}"), places));
            }
            Value::Number(_) => drop(places.insert(place.to_owned(), value.clone())),
            _ => {}
        }
    }

    #[test]
    fn each_count_has_a_row_and_stands_where_the_table_says() {
        let worker = Counters::default();
        Step::ALL.iter().for_each(|&step| worker.observe(step, Duration::from_millis(1)));
        let mut counts = worker.read();
        for (row, metric) in METRICS.iter().enumerate().filter(|(_, metric)| metric.kind != Kind::Histogram) {
            let numbers = (1..=metric.series.len()).map(|series| (1000 * row + series) as u64 * 1000);
            counts.set(metric.metric, &numbers.collect::<Vec<_>>());
        }
        let mut status = status::Status {
            cache: Some(status::Cache::default()),
            messages: Some(status::Messages::default()),
            store: Some(status::Store::default()),
            ..Default::default()
        };
        show(&mut status, &counts);
        let status = serde_json::to_value(status).unwrap();
        let mut places = BTreeMap::new();
        numbers(&status, "", &mut places);
        for metric in METRICS.iter().filter(|metric| !metric.status.is_empty()) {
            for (series, value) in metric.series.iter().enumerate() {
                let value = match metric.metric {
                    Metric::ResumptionFailures => ResumptionFailure::ALL[series].name(),
                    Metric::FleetRefusals => Refusal::ALL[series].name(),
                    _ => value,
                };
                let place = format!("/{}", metric.place(series, value).replace('.', "/"));
                let is_snake_case =
                    |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"/_".contains(&b);
                assert!(place.bytes().all(is_snake_case), "{place}");
                if metric.kind == Kind::Histogram {
                    let parts = ["count", "p50_us", "p99_us"].map(|part| format!("{place}/{part}"));
                    assert!(parts.iter().all(|part| places.remove(part).is_some()), "{place} in {status:#}");
                } else {
                    let scale = if metric.unit == "seconds" { 1000 } else { 1 };
                    let number = counts.of(metric.metric)[series] / scale;
                    // Gone already where it stands for two metrics.
                    assert_eq!(places.remove(&place), Some(number.into()), "{place} in {status:#}");
                }
            }
        }
        places.retain(|place, _| !place.contains("/below_us/"));
        // Lost lines are sums over causes.
        let others = ["/pid", "/schema", "/up_s", "/log_lines_lost", "/event_lines_lost"];
        let others = BTreeSet::from(others.map(str::to_owned));
        assert_eq!(places.into_keys().collect::<BTreeSet<_>>(), others, "numbers without a row");
    }
}
