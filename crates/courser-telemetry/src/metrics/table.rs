//! The table of metrics: each name that monitoring sees, once.

use crate::close::CloseReason;
use crate::connection::{BackendHandshake, Resumption};
use crate::named::named;

named! {
    /// How a metric's values behave, in the terms of Prometheus, and the name of that in the text exposition format.
    Kind {
        /// Only grows.
        Counter = "counter",
        /// Grows and falls.
        Gauge = "gauge",
        /// Observations by size.
        Histogram = "histogram",
        /// Always one; its labels say something.
        Info = "info",
    }
}

/// A row of the table.
#[derive(Debug)]
pub struct Definition {
    /// Which it is.
    pub metric: Metric,
    /// The published name.
    pub name: &'static str,
    /// How its values behave.
    pub kind: Kind,
    /// The base unit of its values; empty for plain counts.
    pub unit: &'static str,
    /// What it counts, in a sentence.
    pub help: &'static str,
    /// Where `courser fleet status --json` has its numbers: keys, with dots between them. The first is for the first
    /// number, and so on, the last for all that remain; `*` stands for the label's value. Empty: it is not there as a number.
    pub status: &'static [&'static str],
    /// Its labels, and what the value of each is.
    pub labels: &'static [(&'static str, &'static str)],
    /// The value of the last label for each number, or of all labels with slashes between. Empty texts for the only number of a
    /// metric without labels, and where the crate that knows the reasons names them. None: [`Counts`](super::Counts) has no
    /// numbers of it.
    pub series: &'static [&'static str],
}

impl Definition {
    /// Where `courser fleet status --json` has the number of a series whose label has this value.
    pub fn place(&self, series: usize, value: &str) -> String {
        self.status[series.min(self.status.len() - 1)].replace('*', value)
    }
}

macro_rules! metrics {
    ($(
        $(#[doc = $help:literal])*
        $metric:ident = $name:literal, $kind:ident, $unit:literal, $status:expr,
            [$($label:literal: $values:literal),*] $(of $series:expr)?;
    )*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Metric { $($(#[doc = $help])* $metric,)* }

        /// Every metric, in the order of [`Metric`].
        pub const METRICS: &[Definition] = &[$(Definition {
            metric: Metric::$metric,
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            help: concat!($($help),*).trim_ascii(),
            status: &$status,
            labels: &[$(($label, $values)),*],
            series: { const ALL: &[&[&str]] = &[$($series,)? &[""]]; ALL[0] },
        },)*];
    };
}

/// For labels whose values nobody knows beforehand.
const ELSEWHERE: &[&str] = &[];

metrics! {
    /// The program. Its value is 1.
    BuildInfo = "courser_build_info", Info, "", [], ["version": "version of the program"] of ELSEWHERE;
    /// When the process started.
    StartTime = "courser_start_timestamp_seconds", Gauge, "seconds", [], [] of ELSEWHERE;
    /// The generation of settings that serves new connections; the one of the start is 1.
    ConfigGeneration = "courser_config_generation", Gauge, "", [], [] of ELSEWHERE;
    /// Whether the last reload was successful, or there was none: 1 or 0.
    ConfigReloadSuccess = "courser_config_last_reload_success", Gauge, "", [], [] of ELSEWHERE;
    /// When the last reload was tried, or the start.
    ConfigReloadTime = "courser_config_last_reload_timestamp_seconds", Gauge, "seconds", [], [] of ELSEWHERE;
    /// Connections that have ended.
    Connections = "courser_connections_total", Counter, "", ["connections.closed.*"],
        ["listener": "`listener` of the log", "cause": "`cause` of the log", "reason": "`close_reason` of the log"] of CloseReason::NAMES;
    /// Connections that are open.
    OpenConnections = "courser_open_connections", Gauge, "", ["connections.open.*"],
        ["listener": "`listener` of the log", "state": "the step that it is in: `hello`, `handshake`, `connect` or `relay`"]
        of State::NAMES;
    /// How many connections may be open; further clients wait.
    ConnectionLimit = "courser_connection_limit", Gauge, "", ["connections.limit"], [];
    /// Connections that wait to be accepted.
    AcceptQueueLength = "courser_accept_queue_length", Gauge, "", [],
        ["listener": "`listener` of the log", "worker": "counted from 0; of a socket that workers share, the first"] of ELSEWHERE;
    /// How many may.
    AcceptQueueLimit = "courser_accept_queue_limit", Gauge, "", [], ["listener": "as above", "worker": "as above"] of ELSEWHERE;
    /// Connection requests (SYN) that the kernel has dropped at a listening socket, for example since its queue was full.
    SynDropped = "courser_syn_dropped_total", Counter, "", [], ["listener": "as above", "worker": "as above"] of ELSEWHERE;
    /// What was not served in overload, and clients that had gone before their handshake began.
    Shed = "courser_shed_total", Counter, "", ["connections.shed.*"],
        ["stage": "`syn`, `source`, `hello` or `line`",
            "reason": "`dropped`: SYNs, by filters and full queues, those sent again included; `over_share`: its network takes more than its share; `late`: had waited too long before it was read; `gone`: the client had closed; `deadline`: had waited in the line for five times `target_wait`, or as long as twelve handshakes take"]
        of Shed::NAMES;
    /// Time in which a worker has not waited for events. At one second per second it is full.
    WorkerBusy = "courser_worker_busy_seconds_total", Counter, "seconds", [], ["worker": "counted from 0"] of ELSEWHERE;
    /// Connections that a worker has.
    WorkerConnections = "courser_worker_connections", Gauge, "", [], ["worker": "counted from 0"] of ELSEWHERE;
    /// Plaintext that was relayed.
    PlaintextBytes = "courser_plaintext_bytes_total", Counter, "bytes", ["connections.bytes_in", "connections.bytes_out"],
        ["direction": "`in`: from clients, `out`: to clients"] of ByteDirection::NAMES;
    /// Handshakes that are done or have failed. Where no handshake was begun (a probe, plain HTTP, a relay) none is counted.
    Handshakes = "courser_handshakes_total", Counter, "", ["handshakes.full", "handshakes.resumed.*"],
        ["listener": "`listener` of the log", "host": "`host` of the log; `unknown` where it failed before; `other` beyond a thousand",
            "kind": "`session` of the log; `none` where it failed", "version": "`version` of the log; `none` where it failed",
            "result": "`SUCCESS`, or why it failed, in the words of gRPC's proposal A118"] of Resumption::NAMES;
    /// Handshakes that are done, by what they have agreed on: what breaks if it is switched off.
    Negotiated = "courser_handshakes_negotiated_total", Counter, "", [],
        ["listener": "`listener` of the log", "version": "`version` of the log", "suite": "`suite` of the log",
            "group": "`group` of the log, or `none`", "scheme": "`scheme` of the log, or `none` where a session was resumed"]
        of ELSEWHERE;
    /// Processor time of handshakes.
    HandshakeCpu = "courser_handshake_cpu_seconds_total", Counter, "seconds", [],
        ["kind": "`session` of the log; `none` where it failed", "key": "kind of the certificate's key"] of HANDSHAKE_CPU;
    /// Of the handshakes resumed by session ID, those whose session another host made.
    RemoteSessions = "courser_remote_sessions_total", Counter, "", ["handshakes.remote_sessions"], [];
    /// TLS handshakes with backends.
    BackendHandshakes = "courser_backend_handshakes_total", Counter, "", ["handshakes.with_backends.*"],
        ["result": "`full`, `resumed` or `failed`"] of BackendHandshake::NAMES;
    /// Sessions that clients offered and that were not resumed.
    ResumptionFailures = "courser_resumption_failures_total", Counter, "", ["handshakes.not_resumed.*"],
        ["reason": "`not_resumed` of the log"] of &[""; RESUMPTION_FAILURES];
    /// Look-ups, at the other hosts and in the session store, of sessions that this host has not.
    RemoteLookups = "courser_remote_lookups_total", Counter, "", ["handshakes.remote_lookups.*"],
        ["event": "`started`; `found_in_fleet` and `found_in_store` of these; `suppressed`, as the client's address had caused too many or too many are in flight"]
        of RemoteLookup::NAMES;
    /// How long the steps of connections took that completed them.
    StepDuration = "courser_step_duration_seconds", Histogram, "seconds", ["connections.steps.*"],
        ["step": "`queue`: in the kernel's accept queue, of one connection in 16; `hello`, `handshake` and `connect`, which are `hello_us`, `handshake_us` and `connect_us` of the log; `first_byte`: from the connected backend to its first byte"]
        of Step::NAMES;
    /// Servers of pools, by what new connections they get.
    Backends = "courser_backends", Gauge, "", ["backends.states.*"],
        ["state": "`up`; `starting`, with less than their share, since they are back; `ejected`, for failures; `down`, by their checks; `draining`, by the operator, their agent or the resolver"]
        of &["up", "starting", "ejected", "down", "draining"];
    /// Whether a server of a pool gets new connections: 1 or 0.
    ServerUp = "courser_backend_server_up", Gauge, "", [], ["pool": "name of the pool", "server": "as `courser backend list` shows it"]
        of ELSEWHERE;
    /// Connections that a server has.
    ServerOpenConnections = "courser_backend_server_open_connections", Gauge, "", [], ["pool": "as above", "server": "as above"]
        of ELSEWHERE;
    /// Connections that a server was given. A server that its name loses takes its numbers with it.
    ServerConnections = "courser_backend_server_connections_total", Counter, "", [], ["pool": "as above", "server": "as above"]
        of ELSEWHERE;
    /// Connections that a server has failed.
    ServerFailures = "courser_backend_server_failures_total", Counter, "", [], ["pool": "as above", "server": "as above"]
        of ELSEWHERE;
    /// Ejections of a server.
    ServerEjections = "courser_backend_server_ejections_total", Counter, "", [], ["pool": "as above", "server": "as above"]
        of ELSEWHERE;
    /// When a certificate ends: of those for one name with one kind of key the first.
    CertificateNotAfter = "courser_certificate_not_after_timestamp_seconds", Gauge, "seconds", [],
        ["host": "its first name", "key": "its key, for example `EC256`"] of ELSEWHERE;
    /// From the beginning of its validity to the end.
    CertificateLifetime = "courser_certificate_lifetime_seconds", Gauge, "seconds", [], ["host": "as above", "key": "as above"]
        of ELSEWHERE;
    /// Until when the staple of a certificate counts; certificates without one are left out.
    StapleNotAfter = "courser_certificate_staple_not_after_timestamp_seconds", Gauge, "seconds", [],
        ["host": "as above", "key": "as above"] of ELSEWHERE;
    /// Connections that servers of pools have, those that are being made included.
    BackendConnections = "courser_backend_connections", Gauge, "", ["backends.connections"], [];
    /// Connections that wait for a server with room.
    BackendQueue = "courser_backend_queue_length", Gauge, "", ["backends.queue_length"], [];
    /// Connections that servers have failed: refused, not answered, or reset before the first byte.
    BackendFailures = "courser_backend_failures_total", Counter, "", ["backends.failures"], [];
    /// Further attempts, `retries` of the log.
    BackendRetries = "courser_backend_retries_total", Counter, "", ["backends.retries"], [];
    /// Ejections of servers.
    BackendEjections = "courser_backend_ejections_total", Counter, "", ["backends.ejections"], [];
    /// Active checks of servers.
    BackendChecks = "courser_backend_checks_total", Counter, "", ["backends.checks.*"],
        ["result": "`passed` or `failed`"] of &["passed", "failed"];
    /// Log lines that were not written. `log_lines_lost` and `event_lines_lost` of the status have the sums of the streams.
    LogLinesLost = "courser_log_lines_lost_total", Counter, "", [],
        ["stream": "`connections` or `events`", "cause": "`queue_full`: their reader was too slow; `write_error`: the system refused them, and standard error says why"]
        of &["connections/queue_full", "connections/write_error", "events/queue_full", "events/write_error"];
    /// Sessions in the cache.
    CacheSessions = "courser_cache_sessions", Gauge, "", ["cache.sessions"], [];
    /// What the sessions in the cache and its tables take.
    CacheBytes = "courser_cache_bytes", Gauge, "bytes", ["cache.bytes"], [];
    /// What they may take.
    CacheCapacity = "courser_cache_capacity_bytes", Gauge, "bytes", ["cache.capacity"], [];
    /// Sessions that made room for others in the cache.
    CacheEvictions = "courser_cache_evictions_total", Counter, "", ["cache.evicted"], [];
    /// Other hosts of the fleet that were seen.
    FleetPeers = "courser_fleet_peers", Gauge, "", [], ["state": "`alive` or `silent`"] of ELSEWHERE;
    /// Messages sent to other hosts; one to all counts once.
    FleetMessagesSent = "courser_fleet_messages_sent_total", Counter, "", ["messages.sent.messages"], [];
    /// What the messages to other hosts took.
    FleetBytesSent = "courser_fleet_sent_bytes_total", Counter, "bytes", ["messages.sent.bytes"], [];
    /// Sessions pushed to other hosts.
    FleetSessionsSent = "courser_fleet_sessions_sent_total", Counter, "", ["messages.sent.sessions"], [];
    /// Sessions that fit into no datagram, and were not pushed to other hosts.
    FleetSessionsTooLarge = "courser_fleet_sessions_too_large_total", Counter, "", ["messages.sent.session_too_large"], [];
    /// Messages that were not sent to other hosts.
    FleetMessagesUnsent = "courser_fleet_messages_unsent_total", Counter, "", ["messages.sent.*"],
        ["reason": "`dropped`: more than the fleet's thread could send; `send_buffer_full`: the system's buffer was full; `unreachable`, `datagram_too_large`, `failed`: the system refused"]
        of &["dropped", "send_buffer_full", "unreachable", "datagram_too_large", "failed"];
    /// Messages of other hosts that were accepted.
    FleetMessagesReceived = "courser_fleet_messages_received_total", Counter, "", ["messages.received.messages"], [];
    /// What came from other hosts, with what was refused.
    FleetBytesReceived = "courser_fleet_received_bytes_total", Counter, "bytes", ["messages.received.bytes"], [];
    /// Sessions that came from other hosts.
    FleetSessionsReceived = "courser_fleet_sessions_received_total", Counter, "", ["messages.received.sessions", "messages.received.*"],
        ["result": "`taken` into the cache; `duplicate`; `tombstoned`: deleted before; `not_valid`: expired, or not yet valid; `too_large` for the cache"]
        of &["taken", "duplicate", "tombstoned", "not_valid", "too_large"];
    /// Sessions that other hosts deleted.
    FleetSessionsDeleted = "courser_fleet_sessions_deleted_total", Counter, "", ["messages.received.deleted"], [];
    /// Errors of the system when receiving.
    FleetReceiveErrors = "courser_fleet_receive_errors_total", Counter, "", ["messages.received.errors"], [];
    /// Datagrams that were refused: they have no effect.
    FleetRefusals = "courser_fleet_refusals_total", Counter, "", ["messages.refused.*.count"],
        ["reason": "see [fleet](fleet.md)"] of &[""; REFUSALS];
    /// Sessions asked of the other hosts.
    FleetPulls = "courser_fleet_pulls_total", Counter, "", ["messages.pulls.*"],
        ["event": "sessions `requested` by connections; requests `sent` to peers; `found`; `not_found`: no peer had it, or none answered; `negative_cached`: no peer had it a moment ago; `not_sent`: there is no peer, or too many pulls are open"]
        of &["requested", "sent", "found", "not_found", "negative_cached", "not_sent"];
    /// Sessions that came by state transfer.
    FleetTransferred = "courser_fleet_sessions_transferred_total", Counter, "", ["messages.transferred"], [];
    /// Questions to the session store.
    StoreLookups = "courser_store_lookups_total", Counter, "", ["store.counts.*"],
        ["event": "`gets`: asked; `hits`, `misses`: answered with a session or with none; `skipped`: not asked, as the breaker is open or there is no connection"]
        of &["gets", "hits", "misses", "skipped"];
    /// Questions and commands that the session store did not answer as it should.
    StoreFailures = "courser_store_failures_total", Counter, "", ["store.counts.*"],
        ["reason": "`timeouts`: not in time; `connections_lost`; `errors`: with an error; `protocol_errors`: with bytes that are no valid answer"]
        of &["timeouts", "connections_lost", "errors", "protocol_errors"];
    /// Sessions for the session store.
    StorePuts = "courser_store_puts_total", Counter, "", ["store.counts.*"],
        ["event": "`puts`: given; `stored`: acknowledged by the store; `dropped`: left out, as there were too many, or they were too large, or the breaker is open"]
        of &["puts", "stored", "dropped"];
    /// Deletions for the session store.
    StoreDeletes = "courser_store_deletes_total", Counter, "", ["store.counts.*"],
        ["event": "`deletes`: given; `deleted`: acknowledged by the store; `deletes_lost`: not to be done, as more than 4,096 of a worker waited or the store refused"]
        of &["deletes", "deleted", "deletes_lost"];
    /// Deletions that wait until the session store is there.
    StoreDeletesWaiting = "courser_store_deletes_waiting", Gauge, "", ["store.counts.deletes_waiting"], [];
    /// Connections made to the session store.
    StoreConnections = "courser_store_connections_total", Counter, "", ["store.counts.connected"], [];
    /// How often the breaker of a worker has opened and closed.
    StoreBreaker = "courser_store_breaker_changes_total", Counter, "", ["store.counts.*"],
        ["event": "`breaker_opened` or `breaker_closed`"] of &["breaker_opened", "breaker_closed"];
    /// Workers whose breaker is open.
    StoreBreakersOpen = "courser_store_breakers_open", Gauge, "", ["store.counts.breaker_open_now"], [];
    /// For how long the breakers of all workers were open together.
    StoreBreakerOpen = "courser_store_breaker_open_seconds_total", Counter, "seconds", ["store.counts.breaker_open_ms"], [];
}

/// Reasons for which a session is not resumed. They have their names where sessions are.
pub const RESUMPTION_FAILURES: usize = 15;

/// Reasons for which a datagram of another host is refused. They have their names where messages are.
pub const REFUSALS: usize = 21;

/// Versions of handshakes that are counted: code point and name.
pub const VERSIONS: [(u16, &str); 2] = [(0x0303, "TLSv1.2"), (0x0304, "TLSv1.3")];

/// Kinds of handshakes by kinds of keys.
const HANDSHAKE_CPU: &[&str] = &[
    "full/EC256",
    "full/EC384",
    "full/EC521",
    "full/ED25519",
    "full/RSA",
    "session_id/EC256",
    "session_id/EC384",
    "session_id/EC521",
    "session_id/ED25519",
    "session_id/RSA",
    "ticket/EC256",
    "ticket/EC384",
    "ticket/EC521",
    "ticket/ED25519",
    "ticket/RSA",
    "psk/EC256",
    "psk/EC384",
    "psk/EC521",
    "psk/ED25519",
    "psk/RSA",
    "none/EC256",
    "none/EC384",
    "none/EC521",
    "none/ED25519",
    "none/RSA",
];

/// The number of [`Metric::HandshakeCpu`] for a kind of handshake, `None` for one that has failed, and the kind of the key, in
/// the order of the table.
pub const fn cpu_series(kind: Option<Resumption>, key: usize) -> usize {
    let kind = match kind {
        Some(kind) => kind as usize,
        None => Resumption::ALL.len(),
    };
    kind * 5 + key
}

named! {
    /// What was not served, by the stage and the reason of `courser_shed_total`.
    Shed {
        /// A SYN, by a filter or a full queue.
        Syn = "syn/dropped",
        /// A client of a source that takes more than its share.
        Source = "source/over_share",
        /// A client that had waited too long before its ClientHello was read.
        Late = "hello/late",
        /// A client that had closed before its handshake began.
        Gone = "hello/gone",
        /// A client that had waited too long in the line.
        Deadline = "line/deadline",
    }
}

impl Shed {
    /// For the log.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Syn => "overload: its SYN was dropped",
            Self::Source => "overload: its network takes more than its share",
            Self::Late => "overload: it had waited too long before it was read",
            Self::Gone => "the client had closed",
            Self::Deadline => "overload: it has waited too long for its handshake",
        }
    }
}

named! {
    /// Which way bytes go.
    ByteDirection {
        /// From clients.
        In = "in",
        /// To clients.
        Out = "out",
    }
}

named! {
    /// What became of the look-up of a session that this host has not.
    RemoteLookup {
        /// Other hosts, or a store, were asked.
        Started = "started",
        /// Another host had it.
        FoundInFleet = "found_in_fleet",
        /// The store had it.
        FoundInStore = "found_in_store",
        /// Not started: the client's address has used up its budget, or too many are under way.
        Suppressed = "suppressed",
    }
}

named! {
    /// The step that a connection is in.
    State {
        /// Its ClientHello is not complete.
        Hello = "hello",
        /// From there to the end of the handshake.
        Handshake = "handshake",
        /// It has no backend yet.
        Connect = "connect",
        /// It has one.
        Relay = "relay",
    }
}

named! {
    /// A step of a connection's path whose time is counted.
    Step {
        /// In the kernel's queue, before it is accepted.
        Queue = "queue",
        /// From accept to the complete ClientHello.
        Hello = "hello",
        /// From there to the end of the handshake.
        Handshake = "handshake",
        /// From there to the connected backend.
        Connect = "connect",
        /// From there to its first byte.
        FirstByte = "first_byte",
    }
}
