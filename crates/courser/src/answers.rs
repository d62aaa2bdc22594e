//! Answers to what comes over the control socket, from the parts of the running program.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime};

use courser_fleet::{Direction, Passed, PeerStatus, Refusal};
use courser_proxy::{Counters, Counts};
use courser_session::{Cache, ClockStatus, ResumptionFailure};
use courser_sharing::{FleetStatus, Sharing};
use courser_telemetry::time::write_rfc3339;
use courser_telemetry::{Losses, event};
use serde_json::json;

use crate::control::{ControlHandler, RequestOutcome};
use crate::fleet_keys::{PersistentKeys, unix_now};
use crate::status;

/// The parts that can tell how they are.
pub(crate) struct StatusSource {
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) cache: Option<Arc<Cache>>,
    pub(crate) fleet: Option<PersistentKeys>,
    /// One for each worker.
    pub(crate) counters: Vec<Arc<Counters>>,
    pub(crate) sharing: Option<Sharing>,
    /// What is lost of the connection log.
    pub(crate) log: Arc<Losses>,
}

impl ControlHandler for StatusSource {
    fn answer(&self, request: &str, out: &mut UnixStream) -> io::Result<RequestOutcome> {
        match request {
            "fleet status" => {
                serde_json::to_writer(&mut *out, &self.status())?;
                writeln!(out)?;
                Ok(RequestOutcome::Yes)
            }
            "fleet watch" => self.watch(out).map(|()| RequestOutcome::Yes),
            _ => Ok(RequestOutcome::Unknown),
        }
    }
}

impl StatusSource {
    fn status(&self) -> status::Status {
        status::Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: self.name.clone(),
            up_s: self.started.elapsed().as_secs(),
            keys: self.fleet.as_ref().map(keys).unwrap_or_default(),
            cache: self.cache.as_deref().map(cache),
            handshakes: self.handshakes(),
            log_lines_lost: self.log.lines(),
            event_lines_lost: event::losses().map_or(0, |losses| losses.lines()),
            messages: self.sharing.as_ref().and_then(|sharing| messages(&sharing.fleet.as_ref()?.status()?)),
            store: self.sharing.as_ref().and_then(store),
        }
    }

    fn handshakes(&self) -> status::Handshakes {
        let mut counts = Counts::default();
        self.counters.iter().for_each(|worker| counts.add(&worker.read()));
        let by = [
            ("session_id", counts.by_id + counts.by_remote_id),
            ("ticket", counts.by_ticket),
            ("psk", counts.by_psk),
        ];
        let misses = ResumptionFailure::ALL.map(|miss| (miss.name(), counts.missed(miss)));
        let asked = [
            ("started", counts.lookups_started),
            ("found_in_fleet", counts.found_in_fleet),
            ("found_in_store", counts.found_in_store),
            ("suppressed", counts.lookups_suppressed),
        ];
        status::Handshakes {
            full: counts.full,
            resumed: named(by),
            remote_sessions: counts.by_remote_id,
            not_resumed: named(misses.into_iter().filter(|(_, count)| *count > 0)),
            remote_lookups: named(asked),
        }
    }

    /// A line for each message, until the asker has gone. One now and then even where nothing passes: how else would
    /// it show that it has?
    fn watch(&self, out: &mut UnixStream) -> io::Result<()> {
        let Some(fleet) = self.sharing.as_ref().and_then(|sharing| sharing.fleet.as_ref()) else {
            return writeln!(out, "{{\"error\":\"this host sends no messages: it has no fleet.listen\"}}");
        };
        let messages = fleet.watch();
        loop {
            let line = match messages.recv_timeout(QUIET) {
                Ok(passed) => told(&passed),
                Err(RecvTimeoutError::Timeout) => json!({ "time": stamp(), "text": "nothing passes" }),
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            serde_json::to_writer(&mut *out, &line)?;
            writeln!(out)?;
        }
    }
}

fn told(passed: &Passed) -> serde_json::Value {
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

/// How long nothing may pass before that is said.
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

fn cache(cache: &Cache) -> status::Cache {
    let stats = cache.stats();
    status::Cache {
        sessions: stats.entries as u64,
        bytes: stats.bytes as u64,
        capacity: stats.capacity_bytes as u64,
        evicted: stats.evicted_probation + stats.evicted_protected,
    }
}

fn messages(fleet: &FleetStatus) -> Option<status::Messages> {
    let member = &fleet.member;
    let (sent, received, pulls, unsent) = (&member.sent, &member.received, &member.pulls, &fleet.unsent);
    let refused = Refusal::ALL.into_iter().filter(|refusal| member.refused.get(*refusal) > 0);
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
        refused: refused.map(|refusal| (refusal.name().to_owned(), refused_for(member, refusal))).collect(),
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

fn refused_for(member: &courser_fleet::Status, refusal: Refusal) -> status::Refused {
    let last_source = member.refused.last_source(refusal).map(|source| source.to_string());
    status::Refused { count: member.refused.get(refusal), last_source }
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
