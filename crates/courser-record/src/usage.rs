//! What a run cost: the server, the generators, the wire. Sums, so that records of several generators add up exactly.

use courser_stats::number::float;
use serde::{Deserialize, Serialize};

use crate::second::add;

/// What the server spent over the steady window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerUsage {
    /// Its processes at the start of the window.
    pub pids: Vec<u32>,
    /// The cgroup that was read; null when processes were.
    pub cgroup: Option<String>,
    /// Processor time in user mode.
    pub user_us: u64,
    /// Processor time in the kernel.
    pub system_us: u64,
    /// Connections that this served: those that ended in the window as they should, from all generators.
    pub connections: u64,
    /// `user_us` by connection; null without connections.
    pub user_us_per_connection: Option<f64>,
    /// `system_us` by connection; null without connections.
    pub system_us_per_connection: Option<f64>,
    /// Share of the time that the cores it may use were idle; null when unknown.
    pub idle: Option<f64>,
    /// Its threads, the busiest first.
    pub threads: Vec<ServerThread>,
    /// Proportional set size at the end of the window; null when it may not be read.
    pub memory_bytes: Option<u64>,
    /// How far the times of its readings were off the window's ends, together.
    pub alignment_error_us: u64,
    /// Memory for idle connections, of a run that measures it.
    pub idle_memory: Option<IdleMemory>,
    /// The limit that its control group held it to; null without one, and in records that do not have it.
    #[serde(default)]
    pub cpu_limit: Option<CpuLimit>,
}

/// A limit on processor time, and how often a server met it over the steady window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuLimit {
    /// Processor time that it may use in each period.
    pub quota_us: u64,
    /// Length of a period.
    pub period_us: u64,
    /// Periods in which it had something to do.
    pub periods: u64,
    /// Those of them in which it used its quota up, and waited for the next.
    pub throttled_periods: u64,
    /// How long it waited.
    pub throttled_us: u64,
}

impl ServerUsage {
    /// Says how many connections the times were spent on, and what that makes for each.
    pub fn divide(&mut self, connections: u64) {
        self.connections = connections;
        self.user_us_per_connection = ratio(self.user_us, connections);
        self.system_us_per_connection = ratio(self.system_us, connections);
    }
}

/// A thread of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerThread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Processor time in user mode.
    pub user_us: u64,
    /// Processor time in the kernel.
    pub system_us: u64,
}

/// What idle connections hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleMemory {
    /// How many were open.
    pub connections: u64,
    /// The server's memory before them.
    pub before_bytes: u64,
    /// And with them.
    pub with_bytes: u64,
}

impl IdleMemory {
    /// Bytes for each; `None` without connections.
    pub fn bytes_per_connection(&self) -> Option<f64> {
        ratio(self.with_bytes.saturating_sub(self.before_bytes), self.connections)
    }
}

/// What one generator spent over the steady window, and whether it kept up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GeneratorUsage {
    /// The label of its source in a merged record; null when there is only one.
    #[serde(default)]
    pub source: Option<String>,
    /// Its threads that made load.
    pub threads: Vec<GeneratorThread>,
    /// Cores that it and an origin of ours could use.
    pub cores: Vec<CoreUsage>,
    /// Processor time of the whole process, user mode and kernel.
    pub cpu_us: u64,
    /// Handshakes that this was spent on.
    pub handshakes: u64,
    /// Most connections open at a time.
    pub max_in_flight: u64,
}

impl GeneratorUsage {
    /// Its own processor time for each handshake, all that goes with one included; `None` without handshakes.
    pub fn cpu_us_per_handshake(&self) -> Option<f64> {
        ratio(self.cpu_us, self.handshakes)
    }
}

/// A thread that made load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GeneratorThread {
    /// The core it was pinned to; null when it was free.
    pub cpu: Option<u32>,
    /// Share of the window that it ran; null when unknown.
    pub busy: Option<f64>,
    /// How long it was ready to run and did not.
    pub run_queue_wait_us: u64,
    /// How late it started connections, 99th percentile; null without the samples.
    pub schedule_lag_p99_us: Option<f64>,
}

/// How busy a core was, with whatever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreUsage {
    /// Its number.
    pub cpu: u32,
    /// Share of the window that it was not idle; null when unknown.
    pub busy: Option<f64>,
    /// Share of the window that the hypervisor gave to others; null when unknown.
    pub steal: Option<f64>,
}

/// What went over the wire, in and out as the client sees it. Sums over the connections that were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WireCost {
    /// Of full handshakes.
    pub full: HandshakeBytes,
    /// Of resumed ones.
    pub resumed: HandshakeBytes,
    /// Of requests and their answers.
    pub requests: RequestBytes,
}

impl WireCost {
    /// Adds what another thread or generator saw.
    pub fn add(&mut self, more: &Self) {
        self.full.add(&more.full);
        self.resumed.add(&more.resumed);
        self.requests.add(&more.requests);
    }
}

/// What handshakes put on the wire, in TLS records without the headers of TCP and IP; and the segments of their whole
/// connections, from connect to close, requests included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HandshakeBytes {
    /// How many handshakes.
    pub handshakes: u64,
    /// Bytes from the client.
    pub out_bytes: u64,
    /// Bytes from the server.
    pub in_bytes: u64,
    /// TCP segments from the client, of whole connections.
    pub out_segments: u64,
    /// TCP segments from the server, of whole connections.
    pub in_segments: u64,
}

impl HandshakeBytes {
    fn add(&mut self, more: &Self) {
        add(&mut self.handshakes, more.handshakes);
        add(&mut self.out_bytes, more.out_bytes);
        add(&mut self.in_bytes, more.in_bytes);
        add(&mut self.out_segments, more.out_segments);
        add(&mut self.in_segments, more.in_segments);
    }
}

/// What requests and their answers put on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RequestBytes {
    /// How many requests.
    pub requests: u64,
    /// What the client had to say.
    pub out_payload_bytes: u64,
    /// What the server had to say.
    pub in_payload_bytes: u64,
    /// What it took from the client in TLS records.
    pub out_wire_bytes: u64,
    /// What it took from the server in TLS records.
    pub in_wire_bytes: u64,
}

impl RequestBytes {
    fn add(&mut self, more: &Self) {
        add(&mut self.requests, more.requests);
        add(&mut self.out_payload_bytes, more.out_payload_bytes);
        add(&mut self.in_payload_bytes, more.in_payload_bytes);
        add(&mut self.out_wire_bytes, more.out_wire_bytes);
        add(&mut self.in_wire_bytes, more.in_wire_bytes);
    }
}

/// A sum over a count; `None` of nothing.
pub fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| float(sum) / float(count))
}
