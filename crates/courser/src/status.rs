//! The status of a running program and of its fleet, as it is sent over the control socket and printed for people. May
//! not know where the figures come from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use courser_acme::SetStatus;
use serde::{Deserialize, Serialize};

use self::recent::{FailureRow, Finding, Recent, ShedRow};
use crate::succeed::OldProcess;
use crate::validity;

pub(crate) mod acme;
pub(crate) mod backends;
pub(crate) mod recent;

/// The form of today.
pub(crate) const SCHEMA: u32 = 1;

/// The answer to `fleet status`, and `/status.json`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Of this form: it changes with a key that goes or means something else, not with one that comes.
    #[serde(default)]
    pub(crate) schema: u32,
    pub(crate) version: String,
    /// This host's name in its fleet.
    pub(crate) name: String,
    pub(crate) up_s: u64,
    /// `ready`, `starting` or `draining`; else what is stuck.
    #[serde(default)]
    pub(crate) state: String,
    /// What is wrong, the worst first.
    #[serde(default)]
    pub(crate) findings: Vec<Finding>,
    /// None until somebody has asked before, within the last seconds.
    #[serde(default)]
    pub(crate) recent: Option<Recent>,
    #[serde(default)]
    pub(crate) pid: u32,
    /// Processes that this one has replaced, and that still have connections.
    #[serde(default)]
    pub(crate) old_processes: Vec<OldProcess>,
    /// Settings, certificates and pools of new connections; none before the first.
    #[serde(default)]
    pub(crate) generation: Option<Generation>,
    /// The secrets that are live, the sealing one first. Empty: keys of this process alone.
    pub(crate) keys: Vec<Key>,
    /// None where session IDs are off.
    pub(crate) cache: Option<Cache>,
    pub(crate) connections: Connections,
    pub(crate) handshakes: Handshakes,
    #[serde(default)]
    pub(crate) workers: Vec<WorkerRow>,
    /// By listener, with those of earlier generations.
    #[serde(default)]
    pub(crate) listeners: Vec<ListenerRow>,
    /// Connections that failed, by reason, the most frequent of late first.
    #[serde(default)]
    pub(crate) failures: Vec<FailureRow>,
    /// Connections that were refused under overload.
    #[serde(default)]
    pub(crate) shed: Vec<ShedRow>,
    /// What handshakes have agreed on.
    #[serde(default)]
    pub(crate) negotiated: Vec<NegotiatedRow>,
    pub(crate) backends: backends::Backends,
    /// Lines of the connection log that could not be written, since the start.
    pub(crate) log_lines_lost: u64,
    pub(crate) event_lines_lost: u64,
    /// None where hosts send no messages.
    pub(crate) messages: Option<Messages>,
    /// None without an external store.
    pub(crate) store: Option<Store>,
    /// Certificates that are ordered here.
    #[serde(default)]
    pub(crate) acme: Vec<SetStatus>,
}

/// The generation that serves new connections.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Generation {
    /// The one of the start is 1.
    pub(crate) number: u64,
    pub(crate) age_s: u64,
    /// Names and addresses.
    #[serde(default)]
    pub(crate) listeners: Vec<ServedListener>,
    /// How many there are.
    #[serde(default)]
    pub(crate) certificates: usize,
    /// Those that end first.
    #[serde(default)]
    pub(crate) ending: Vec<EndingCertificate>,
    /// Those with a staple, and those that demand one: what is sent ends first in front.
    #[serde(default)]
    pub(crate) staples: Vec<StapleRow>,
    /// Files of staples that are not sent.
    #[serde(default)]
    pub(crate) refused_staples: Vec<RefusedStaple>,
    pub(crate) last_reload: Option<LastReload>,
}

/// A certificate with a staple, or one that demands it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StapleRow {
    /// The certificate's first name.
    pub(crate) name: String,
    pub(crate) key: String,
    /// `sent`, `expired`, `not_yet` or `missing`.
    pub(crate) state: String,
    /// Until it ends; negative where it has.
    pub(crate) left_s: i64,
    pub(crate) lifetime_s: i64,
    /// Whether clients that know of it refuse the certificate without one.
    pub(crate) is_demanded: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RefusedStaple {
    pub(crate) file: String,
    pub(crate) why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServedListener {
    pub(crate) name: String,
    /// As configured.
    pub(crate) listen: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndingCertificate {
    /// Its first name.
    pub(crate) name: String,
    pub(crate) key: String,
    /// Negative where it has ended.
    pub(crate) days_left: i64,
    #[serde(default)]
    pub(crate) lifetime_s: i64,
}

/// The last attempt to replace it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LastReload {
    pub(crate) age_s: u64,
    /// Why it failed.
    pub(crate) refused: Option<String>,
    /// What takes effect only at the next start.
    pub(crate) needs_restart: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) fleet: String,
    pub(crate) epoch: u64,
    pub(crate) rolls_in_s: u64,
    pub(crate) forward_secret: bool,
    /// `agrees`, `behind` or `too_far_ahead`.
    pub(crate) clock: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cache {
    pub(crate) sessions: u64,
    pub(crate) bytes: u64,
    pub(crate) capacity: u64,
    pub(crate) evicted: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Connections {
    /// How many, by close reason; reasons without any are left out.
    pub(crate) closed: BTreeMap<String, u64>,
    /// What was not served in overload, by stage and reason; those without any are left out.
    #[serde(default)]
    pub(crate) shed: BTreeMap<String, u64>,
    /// How many are open, by the step that they are in.
    #[serde(default)]
    pub(crate) open: BTreeMap<String, u64>,
    /// How many may be.
    #[serde(default)]
    pub(crate) limit: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// How long the steps took that were completed, by `hello`, `handshake` and `connect`.
    pub(crate) steps: BTreeMap<String, StepTimes>,
}

/// A worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WorkerRow {
    /// Time in which it has not waited for events.
    pub(crate) busy_us: u64,
    pub(crate) connections: u64,
    /// Connections that wait for it to accept them, and how many may.
    pub(crate) queue_length: u64,
    pub(crate) queue_limit: u64,
}

/// A listener.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ListenerRow {
    pub(crate) name: String,
    pub(crate) open: u64,
    /// Since the start, as the rest.
    pub(crate) closed: u64,
    pub(crate) queue_length: u64,
    pub(crate) queue_limit: u64,
    /// Connection requests that the kernel has dropped.
    pub(crate) syn_dropped: u64,
}

/// What some handshakes of all listeners have agreed on.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NegotiatedRow {
    pub(crate) version: String,
    pub(crate) suite: String,
    /// None for a resumption in TLS 1.2.
    pub(crate) group: Option<String>,
    /// None for a resumption.
    pub(crate) scheme: Option<String>,
    pub(crate) count: u64,
}

/// Of one step, with an eighth of tolerance upwards.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct StepTimes {
    pub(crate) count: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    /// How many took less than so many microseconds, and no less than the next smaller number; numbers without any are left
    /// out.
    #[serde(default)]
    pub(crate) below_us: BTreeMap<u64, u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Handshakes {
    pub(crate) full: u64,
    /// By `session_id`, `ticket`, `psk`.
    pub(crate) resumed: BTreeMap<String, u64>,
    /// Of those resumed by session ID, how many had a session that another host made.
    pub(crate) remote_sessions: u64,
    /// Those that have failed, by [`courser_telemetry::HandshakeResult`]; results without any are left out.
    #[serde(default)]
    pub(crate) failed: BTreeMap<String, u64>,
    /// Full handshakes of clients that offered a session, by [`courser_session::ResumptionFailure`].
    pub(crate) not_resumed: BTreeMap<String, u64>,
    /// Look-ups of session IDs that are not in this host's cache.
    pub(crate) remote_lookups: BTreeMap<String, u64>,
    /// TLS with backends: `full`, `resumed`, `failed`.
    #[serde(default)]
    pub(crate) with_backends: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(crate) peers: Vec<Peer>,
    pub(crate) sent: BTreeMap<String, u64>,
    pub(crate) received: BTreeMap<String, u64>,
    /// Datagrams by reason; reasons without any are left out.
    pub(crate) refused: BTreeMap<String, Refused>,
    pub(crate) pulls: BTreeMap<String, u64>,
    pub(crate) state_transfer: String,
    pub(crate) transferred: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Refused {
    pub(crate) count: u64,
    pub(crate) last_source: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: String,
    /// Seconds between its first message and its last.
    pub(crate) first_seen_s: u64,
    pub(crate) last_seen_ms: u64,
    pub(crate) is_silent: bool,
    pub(crate) epoch: u64,
    pub(crate) sessions: u64,
    pub(crate) clock_ahead_ms: i64,
    pub(crate) is_clock_off: bool,
    pub(crate) lag_ms: u64,
    pub(crate) lost: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Store {
    /// Without a password.
    pub(crate) url: String,
    /// Whether the breaker of a worker is open, so that this worker sends the store nothing.
    pub(crate) breaker_open: bool,
    pub(crate) counts: BTreeMap<String, u64>,
}

/// Refusals that every fleet has: multicast gives a host its own messages back, and a host that starts is challenged.
const ORDINARY: [&str; 2] = ["own_echo", "unverified_peer"];

#[derive(Deserialize)]
struct ErrorAnswer {
    error: String,
}

/// The answer to `fleet status` as a table, for people.
pub(crate) fn table(line: &str) -> Result<String, String> {
    let status: Status = read(line)?;
    let mut text = format!("{}, courser {}, up {}\n", status.name, status.version, span(status.up_s));
    for finding in &status.findings {
        row(&mut text, finding.level.name(), &format!("{} {}", finding.what, finding.remedy));
    }
    row(&mut text, "process", &format!("{}, serves", status.pid));
    for OldProcess { pid, version, connections, up_s, ends_in_s } in &status.old_processes {
        let (up, left) = (span(*up_s), span(*ends_in_s));
        let drains = format!(
            "{pid}, courser {version}, up {up}, drains: connections: {connections}, at most {left} left"
        );
        row(&mut text, "old process", &drains);
    }
    if let Some(found) = &status.generation {
        generation(&mut text, found);
    }
    if !status.acme.is_empty() {
        row(&mut text, "acme", &acme::summary(&status.acme, validity::now()));
    }
    keys(&mut text, &status.keys);
    if let Some(cache) = &status.cache {
        let (used, capacity) = (mib(cache.bytes), mib(cache.capacity));
        row(
            &mut text,
            "cache",
            &format!("{} sessions, {used} of {capacity} MiB, {} evicted", cache.sessions, cache.evicted),
        );
    }
    connections(&mut text, &status.connections);
    handshakes(&mut text, &status.handshakes);
    row(&mut text, "backends", &status.backends.summary());
    let (log, events) = (status.log_lines_lost, status.event_lines_lost);
    row(&mut text, "logs", &format!("{log} lines of connections and {events} of events lost"));
    match &status.messages {
        Some(found) => messages(&mut text, found),
        None => row(&mut text, "messages", "none (`--fleet-listen` shares sessions by ID with other hosts)"),
    }
    if let Some(store) = &status.store {
        let state = match (store.breaker_open, store.counts.get("connected")) {
            (true, _) => "not used after failures (its breaker is open)",
            (false, None | Some(0)) => "not connected yet",
            _ => "in use",
        };
        row(&mut text, "store", &format!("{}, {state}; {}", store.url, counts(&store.counts)));
    }
    Ok(text)
}

/// A line of `status watch`.
#[cfg(feature = "top")]
pub(crate) fn read_status(line: &str) -> Result<Status, String> {
    read(line)
}

/// A line of `fleet watch`, for people.
pub(crate) fn message_line(line: &str) -> Result<String, String> {
    let seen: BTreeMap<String, serde_json::Value> = read(line)?;
    let field = |name: &str| {
        seen.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let text = field("text").ok_or("it is of another version")?;
    Ok(format!("{} {text}\n", field("time").unwrap_or_default()))
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, String> {
    if let Ok(answer) = serde_json::from_str::<ErrorAnswer>(line) {
        return Err(answer.error);
    }
    serde_json::from_str(line).map_err(|error| format!("it is of another version ({error})"))
}

fn generation(text: &mut String, found: &Generation) {
    row(text, "generation", &format!("{}, serves for {}", found.number, span(found.age_s)));
    if let Some(LastReload { age_s, refused: Some(why), .. }) = &found.last_reload {
        let why = why.lines().next().unwrap_or_default();
        row(text, "last reload", &format!("REFUSED {} ago: {why}", span(*age_s)));
    }
    for waiting in found.last_reload.iter().flat_map(|last| &last.needs_restart) {
        row(text, "takes upgrade", waiting);
    }
    for listener in &found.listeners {
        row(text, "listener", &format!("{}: {}", listener.name, listener.listen.join(", ")));
    }
    for EndingCertificate { name, key, days_left, .. } in &found.ending {
        let ends = if *days_left < 0 { "HAS EXPIRED".to_owned() } else { format!("{days_left} days left") };
        row(text, "certificate", &format!("{name} ({key}): {ends}"));
    }
    for StapleRow { name, key, state, left_s, is_demanded, .. } in &found.staples {
        let state = match state.as_str() {
            "sent" => format!("sent, {} h left", left_s / 3600),
            state => state.replace('_', " ").to_uppercase(),
        };
        let demanded = if *is_demanded { " (must-staple)" } else { "" };
        row(text, "staple", &format!("{name} ({key}): {state}{demanded}"));
    }
    for RefusedStaple { file, why } in &found.refused_staples {
        row(text, "staple", &format!("{file}: NOT SENT: {why}"));
    }
    let more = found.certificates.saturating_sub(found.ending.len());
    if more > 0 {
        row(text, "certificates", &format!("{more} more, which end later"));
    }
}

fn row(text: &mut String, label: &str, value: &str) {
    let _ = writeln!(text, "  {label:<16}{value}");
}

fn keys(text: &mut String, keys: &[Key]) {
    if keys.is_empty() {
        row(text, "keys", "of this process alone (`--fleet-key` shares tickets)");
    }
    for (index, key) in keys.iter().enumerate() {
        let (fleet, epoch, next) = (&key.fleet, key.epoch, span(key.rolls_in_s));
        let mode = if key.forward_secret { ", forward-secret" } else { "" };
        let role = if index == 0 { "seals" } else { "opens only" };
        let clock = match key.clock.as_str() {
            "agrees" => "",
            "behind" => "; THE CLOCK IS BEHIND ITS KEYS",
            _ => "; THE CLOCK IS TOO FAR AHEAD OF ITS KEYS",
        };
        row(text, "key", &format!("fleet {fleet}, {role}, epoch {epoch}, the next in {next}{mode}{clock}"));
    }
}

fn connections(text: &mut String, connections: &Connections) {
    let (bytes_in, bytes_out) = (connections.bytes_in, connections.bytes_out);
    row(
        text,
        "connections",
        &format!("{}; {bytes_in} bytes in, {bytes_out} out", counts(&connections.closed)),
    );
    if !connections.shed.is_empty() {
        row(text, "shed", &counts(&connections.shed));
    }
    let step = |(name, step): (&String, &StepTimes)| format!("{name} {} / {} us", step.p50_us, step.p99_us);
    let steps: Vec<_> = connections.steps.iter().map(step).collect();
    row(text, "p50 / p99", &if steps.is_empty() { "none".to_owned() } else { steps.join(", ") });
}

fn handshakes(text: &mut String, handshakes: &Handshakes) {
    let resumed: u64 = handshakes.resumed.values().sum();
    let mut by = counts(&handshakes.resumed);
    if handshakes.remote_sessions > 0 {
        let _ = write!(by, "; of those by session ID {} made on other hosts", handshakes.remote_sessions);
    }
    row(text, "handshakes", &format!("{} full, {resumed} resumed ({by})", handshakes.full));
    if !handshakes.not_resumed.is_empty() {
        row(text, "not resumed", &counts(&handshakes.not_resumed));
    }
    row(text, "remote lookups", &counts(&handshakes.remote_lookups));
    if handshakes.with_backends.values().sum::<u64>() > 0 {
        row(text, "to backends", &counts(&handshakes.with_backends));
    }
}

fn messages(text: &mut String, messages: &Messages) {
    row(text, "sent", &counts(&messages.sent));
    row(text, "received", &counts(&messages.received));
    row(text, "pulls", &counts(&messages.pulls));
    row(text, "state transfer", &format!("{}, {} sessions", messages.state_transfer, messages.transferred));
    for (reason, refused) in
        messages.refused.iter().filter(|(reason, _)| !ORDINARY.contains(&reason.as_str()))
    {
        let from = refused.last_source.as_ref().map(|source| format!(" (last from {source})"));
        row(text, "refused", &format!("{reason} {}{}", refused.count, from.unwrap_or_default()));
    }
    peers(text, &messages.peers);
}

fn peers(text: &mut String, peers: &[Peer]) {
    if peers.is_empty() {
        row(text, "peers", "none");
        return;
    }
    let heading = ["peer", "address", "first seen", "last seen", "epoch", "sessions", "clock", "lag", "lost"];
    let mut rows = vec![heading.map(str::to_owned)];
    rows.extend(peers.iter().map(|peer| {
        [
            peer.name.clone(),
            peer.address.clone(),
            span(peer.first_seen_s),
            format!("{} ago{}", millis(peer.last_seen_ms), if peer.is_silent { ", SILENT" } else { "" }),
            peer.epoch.to_string(),
            peer.sessions.to_string(),
            clock(peer),
            millis(peer.lag_ms),
            peer.lost.to_string(),
        ]
    }));
    let widths: Vec<usize> = (0..heading.len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn clock(peer: &Peer) -> String {
    let sign = if peer.clock_ahead_ms < 0 { '-' } else { '+' };
    let wrong = if peer.is_clock_off { ", WRONG" } else { "" };
    format!("{sign}{}{wrong}", millis(peer.clock_ahead_ms.unsigned_abs()))
}

fn counts(counts: &BTreeMap<String, u64>) -> String {
    let some = counts.iter().filter(|(_, count)| **count > 0);
    let texts: Vec<_> = some.map(|(name, count)| format!("{name} {count}")).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// Seconds in the two largest units.
pub(crate) fn span(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// Milliseconds; from ten seconds on as [`span`].
pub(crate) fn millis(millis: u64) -> String {
    if millis < 10_000 { format!("{millis} ms") } else { span(millis / 1000) }
}

fn mib(bytes: u64) -> String {
    let tenths = bytes / (1024 * 1024 / 10);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::recent::FindingLevel;
    use super::*;

    #[test]
    fn a_status_is_read_back_and_printed_as_a_table() {
        let peer = Peer {
            name: "edge-2".into(),
            address: "10.0.0.2:8888".into(),
            first_seen_s: 7_260,
            last_seen_ms: 400,
            is_silent: false,
            epoch: 17,
            sessions: 42,
            clock_ahead_ms: -3_600_000,
            is_clock_off: true,
            lag_ms: 2,
            lost: 1,
        };
        let refused = BTreeMap::from([(
            "replayed".to_owned(),
            Refused { count: 3, last_source: Some("10.0.0.9:8888".into()) },
        )]);
        let status = Status {
            schema: SCHEMA,
            version: "0.1.0".into(),
            name: "edge-1".into(),
            up_s: 93_600,
            findings: vec![Finding {
                level: FindingLevel::Problem,
                cause: "backend".into(),
                what: "No server of pool shop is up.".into(),
                remedy: "Start one.".into(),
            }],
            pid: 4711,
            old_processes: vec![OldProcess {
                pid: 4242,
                version: "0.1.0".to_owned(),
                connections: 12,
                up_s: 86_400,
                ends_in_s: 25,
            }],
            keys: vec![Key {
                fleet: "0011223344556677".into(),
                epoch: 17,
                rolls_in_s: 125,
                forward_secret: true,
                clock: "agrees".into(),
            }],
            cache: Some(Cache { sessions: 9, bytes: 3 << 20, capacity: 64 << 20, evicted: 0 }),
            connections: Connections {
                open: BTreeMap::new(),
                limit: 100,
                closed: BTreeMap::from([("done".to_owned(), 11)]),
                shed: BTreeMap::from([("syn/dropped".to_owned(), 21)]),
                bytes_in: 12,
                bytes_out: 13,
                steps: BTreeMap::from([(
                    "hello".to_owned(),
                    StepTimes { count: 11, p50_us: 14, p99_us: 15, below_us: BTreeMap::from([(15, 11)]) },
                )]),
            },
            handshakes: Handshakes {
                failed: BTreeMap::new(),
                full: 10,
                resumed: BTreeMap::from([("ticket".to_owned(), 5), ("session_id".to_owned(), 4)]),
                remote_sessions: 3,
                not_resumed: BTreeMap::from([("expired".to_owned(), 2)]),
                remote_lookups: BTreeMap::new(),
                with_backends: BTreeMap::from([("resumed".to_owned(), 6)]),
            },
            backends: backends::Backends {
                states: BTreeMap::from([("up".to_owned(), 2), ("down".to_owned(), 1)]),
                ..Default::default()
            },
            log_lines_lost: 7,
            event_lines_lost: 1,
            messages: Some(Messages { peers: vec![peer], refused, ..Messages::default() }),
            ..Status::default()
        };
        let text = table(&serde_json::to_string(&status).unwrap()).unwrap();
        for part in [
            "edge-1, courser 0.1.0, up 1 d 2 h",
            "problem         No server of pool shop is up. Start one.",
            "fleet 0011223344556677, seals, epoch 17, the next in 2 min 5 s, forward-secret",
            "9 sessions, 3.0 of 64.0 MiB",
            "done 11; 12 bytes in, 13 out",
            "shed            syn/dropped 21",
            "hello 14 / 15 us",
            "10 full, 9 resumed (session_id 4, ticket 5; of those by session ID 3 made on other hosts)",
            "expired 2",
            "to backends     resumed 6",
            "backends        down 1, up 2; 0 connections, 0 waiting",
            "logs            7 lines of connections and 1 of events lost",
            "replayed 3 (last from 10.0.0.9:8888)",
            "2 h 1 min",
            "-1 h 0 min, WRONG",
        ] {
            assert!(text.contains(part), "no {part:?} in:\n{text}");
        }
    }

    #[test]
    fn an_error_in_place_of_an_answer_is_an_error() {
        assert_eq!(table("{\"error\":\"no\"}").unwrap_err(), "no");
        assert!(table("{}").unwrap_err().contains("another version"));
        assert!(message_line("garbage").unwrap_err().contains("another version"));
    }
}
