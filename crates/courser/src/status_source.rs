//! The status of the running program, from its parts, for the control socket.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, SystemTime};

use courser_fleet::{Direction, Passed, PeerStatus, Refusal};
use courser_session::{Cache, ClockStatus, ResumptionFailure};
use courser_sharing::{FleetStatus, Sharing};
use courser_telemetry::metrics::{ByteDirection, Distribution, Metric, RemoteLookup, Step};
use courser_telemetry::time::{micros, write_rfc3339};
use courser_telemetry::{CloseReason, Counts, Losses, Resumption, event};
use serde_json::json;

use crate::control::{ControlHandler, RequestOutcome};
use crate::fleet_keys::{PersistentKeys, unix_now};
use crate::process::Process;
use crate::service::Running;
use crate::status;

/// Where the status of the running program comes from.
pub(crate) struct StatusSource {
    pub(crate) process: Arc<Process>,
    pub(crate) sharing: Option<Sharing>,
    pub(crate) services: Running,
    /// Lost lines of the connection log.
    pub(crate) log: Arc<Losses>,
}

impl ControlHandler for Arc<StatusSource> {
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        match request {
            "fleet status" => {
                serde_json::to_writer(&mut *out, &self.status())?;
                writeln!(out)?;
                Ok(RequestOutcome::Known)
            }
            "fleet watch" => self.watch(out).map(|()| RequestOutcome::Known),
            _ => Ok(RequestOutcome::Unknown),
        }
    }
}

impl StatusSource {
    fn status(&self) -> status::Status {
        let mut counts = Counts::default();
        self.process.counters.iter().for_each(|worker| counts.add(&worker.read()));
        let mut status = status::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.process.name.clone(),
            up_s: self.process.started.elapsed().as_secs(),
            keys: self.process.fleet.as_ref().map(keys).unwrap_or_default(),
            cache: self.process.sessions.cache.as_deref().map(cache),
            connections: connections(&counts),
            handshakes: handshakes(&counts),
            log_lines_lost: self.log.lines(),
            event_lines_lost: event::losses().map_or(0, |losses| losses.lines()),
            messages: None,
            store: self.sharing.as_ref().and_then(store),
        };
        self.services.status(&mut status);
        status
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

fn message_line(passed: &Passed) -> serde_json::Value {
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

fn named(counts: impl IntoIterator<Item = (&'static str, u64)>) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

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

fn connections(counts: &Counts) -> status::Connections {
    let [bytes_in, bytes_out] =
        [ByteDirection::In, ByteDirection::Out].map(|way| counts.of(Metric::PlaintextBytes)[way as usize]);
    let reasons = CloseReason::ALL.iter().map(|reason| reason.name());
    let closed = reasons.zip(counts.of(Metric::Connections).iter().copied());
    status::Connections {
        closed: named(closed.filter(|(_, count)| *count > 0)),
        bytes_in,
        bytes_out,
        steps: Step::ALL
            .iter()
            .filter_map(|&step| Some((step.name().to_owned(), times(&counts.step(step))?)))
            .collect(),
    }
}

/// `None` where nothing was observed.
fn times(step: &Distribution<'_>) -> Option<status::StepTimes> {
    let percentile = |percent| step.percentile(percent).map(micros);
    Some(status::StepTimes { count: step.count(), p50_us: percentile(50)?, p99_us: percentile(99)? })
}

fn handshakes(counts: &Counts) -> status::Handshakes {
    let of = |metric: Metric| counts.of(metric).iter().copied();
    let kinds = Resumption::ALL.iter().map(|kind| kind.name()).zip(of(Metric::Handshakes));
    let reasons =
        ResumptionFailure::ALL.iter().map(|reason| reason.name()).zip(of(Metric::ResumptionFailures));
    let lookups = RemoteLookup::ALL.iter().map(|event| event.name()).zip(of(Metric::RemoteLookups));
    status::Handshakes {
        full: counts.of(Metric::Handshakes)[Resumption::Full as usize],
        resumed: named(kinds.skip(1)),
        remote_sessions: of(Metric::RemoteSessions).sum(),
        not_resumed: named(reasons.filter(|(_, count)| *count > 0)),
        remote_lookups: named(lookups),
    }
}

fn cache(cache: &Cache) -> status::Cache {
    let stats = cache.stats();
    status::Cache {
        sessions: stats.entries as u64,
        bytes: stats.bytes as u64,
        capacity: stats.capacity_bytes as u64,
        evicted: stats.evicted_probation + stats.evicted_protected,
    }
}

pub(crate) fn messages(fleet: &FleetStatus) -> Option<status::Messages> {
    let member = &fleet.member;
    let (sent, received, pulls, unsent) = (&member.sent, &member.received, &member.pulls, &fleet.unsent);
    let refused = |refusal: Refusal| {
        let last_source = member.refused.last_source(refusal).map(|source| source.to_string());
        let count = member.refused.get(refusal);
        (count > 0).then(|| (refusal.name().to_owned(), status::Refused { count, last_source }))
    };
    Some(status::Messages {
        peers: member.peers.iter().map(peer).collect(),
        sent: named([
            ("messages", sent.messages),
            ("bytes", sent.bytes),
            ("sessions", sent.pushed),
            ("session_too_large", sent.session_too_large),
            ("dropped", sent.dropped + fleet.dropped),
            ("send_buffer_full", unsent.send_buffer_full),
            ("unreachable", unsent.unreachable),
            ("datagram_too_large", unsent.datagram_too_large),
            ("failed", unsent.other),
        ]),
        received: named([
            ("messages", received.accepted),
            ("bytes", received.bytes),
            ("sessions", received.taken),
            ("duplicate", received.duplicate),
            ("tombstoned", received.tombstoned),
            ("not_valid", received.not_valid),
            ("too_large", received.too_large),
            ("deleted", received.deleted),
            ("errors", fleet.receive_errors),
        ]),
        refused: Refusal::ALL.into_iter().filter_map(refused).collect(),
        pulls: named([
            ("requested", pulls.requested),
            ("sent", pulls.sent),
            ("found", pulls.found),
            ("not_found", pulls.not_found),
            ("negative_cached", pulls.negative_cached),
            ("not_sent", pulls.not_sent),
        ]),
        state_transfer: member.state_transfer.name().to_owned(),
        transferred: member.transferred,
    })
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

fn store(sharing: &Sharing) -> Option<status::Store> {
    let store = sharing.store.as_ref()?;
    let counts = store.counters.counts();
    Some(status::Store {
        url: store.endpoint.url().to_string(),
        breaker_open: counts.get("breaker_open_now") > 0,
        counts: named(counts.values()),
    })
}
