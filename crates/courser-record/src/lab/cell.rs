//! What came out for one case on one target.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::encode::{Packed, Summary};
use crate::run::Finding;
use crate::second::Second;
use crate::totals::Completions;

/// One case on one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// [`super::Case::id`].
    pub case: String,
    /// [`super::TargetNotes::name`].
    pub target: String,
    /// How far it came.
    pub state: CellState,
    /// Why it cannot, or what failed; null when it was measured.
    pub reason: Option<String>,
    /// The command that started the target.
    pub command: Vec<String>,
    /// Every configuration file that was written for it.
    pub files: Vec<File>,
    /// What a real exchange before the first block showed; null when there was none.
    pub verified: Option<Verified>,
    /// What each kind of client got, where a case tells clients apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientVerified>,
    /// What was measured, in the order of time.
    pub blocks: Vec<Block>,
    /// The same load once more, by clients of the engine `real`: it counts in no figure, and shows what is the lean client's
    /// doing. Its round is the one after the last; of a staircase it has one step. Null where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Block>,
    /// Where the server's processor time went; null when it was not sampled.
    pub profile: Option<Profile>,
    /// What a reader has to know.
    pub findings: Vec<Finding>,
    /// The share of its cores that the target was held to; null where it had all of them.
    #[serde(default)]
    pub server_share: Option<ServerShare>,
}

/// A share of its cores that a target was held to, so that it is the limit and not the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServerShare {
    /// Of each core: 0.5 is half of it.
    pub share: f64,
    /// Processor time that it may use in each period, on all of its cores.
    pub quota_us: u64,
    /// Length of a period: response times have waits of up to the rest of it in them.
    pub period_us: u64,
}

/// How far a cell came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Not begun, or not all of its blocks are done.
    #[default]
    Pending,
    /// All blocks were measured.
    Done,
    /// The target cannot do this: the reason says why.
    Cannot,
    /// It should have, and did not: it does not start, it died, it negotiates something else.
    Failed,
}

/// A file, whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct File {
    /// Its path within the suite's folder: `nginx/nginx.conf`.
    pub name: String,
    /// Its text. Private keys are never in it.
    pub text: String,
}

/// What one real exchange showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verified {
    /// Version, for instance `TLS 1.3`; `clear` without TLS.
    pub version: String,
    /// Cipher suite, IANA name.
    pub suite: String,
    /// Key exchange group; null without one.
    pub group: Option<String>,
    /// Scheme of the server's signature.
    pub scheme: Option<String>,
    /// The key of its certificate, for instance `RSA-2048`.
    pub key: Option<String>,
    /// The application protocol that was agreed on (ALPN); null where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
    /// How the second connection of a session was made: full, or resumed by what.
    pub again: Option<String>,
    /// Session tickets after a full handshake; null without TLS, and in records that do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tickets: Option<u32>,
    /// Bytes of the answer's body; null when nothing is asked.
    pub body_bytes: Option<u64>,
}

/// What a kind of client got in a real exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientVerified {
    /// The kind of client, as the labels of windows have it: `can verify RSA alone`.
    pub client: String,
    /// What the exchange showed; null when it failed.
    pub verified: Option<Verified>,
    /// Why it failed; null when it did not.
    pub reason: Option<String>,
}

/// One turn of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Block {
    /// Which round over all targets it belongs to, from 0: blocks of one round are close in time.
    pub round: u32,
    /// When it began.
    pub start_unix_us: u64,
    /// What was measured: one window, or one for each step of a staircase.
    pub windows: Vec<WindowResult>,
    /// What the machine did meanwhile.
    pub host_noise: HostNoise,
}

/// A window of constant conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowResult {
    /// What tells it from its neighbours: the kind of client, a step; empty when it is the only one.
    pub label: String,
    /// Its length.
    pub window_us: u64,
    /// Transactions a second on offer (requests, or handshakes where nothing is asked); null in a closed loop.
    pub offered_tps: Option<f64>,
    /// Transactions begun.
    pub attempted: u64,
    /// Transactions that ended as they should.
    pub succeeded: u64,
    /// Transactions that did not.
    pub failed: u64,
    /// Connections that ended as they should.
    pub connections: u64,
    /// What was served within the window, whenever it was to start: what rates and processor time are counted by. Null in
    /// records that do not have it.
    #[serde(default)]
    pub completed: Option<Completions>,
    /// Full handshakes.
    pub full: u64,
    /// Resumed handshakes.
    pub resumed: u64,
    /// Handshakes in which the client offered a session; null in records that do not have it.
    #[serde(default)]
    pub offered: Option<u64>,
    /// Failed connections by class.
    pub failures: BTreeMap<String, u64>,
    /// Response times: from the intended start in an open loop, from the actual one in a closed loop.
    pub response: Packed,
    /// Full handshakes, from the start of the TCP connect to the client's end of it.
    pub full_handshake: Summary,
    /// Resumed handshakes.
    pub resumed_handshake: Summary,
    /// Processor time of the target in user mode, over the window; null when it was not watched.
    pub user_us: Option<u64>,
    /// The same in the kernel.
    pub system_us: Option<u64>,
    /// Memory of the target at the end (proportional set size); null when it may not be read.
    pub memory_bytes: Option<u64>,
    /// Share of the window that the target's cores were idle; null when unknown.
    pub target_idle: Option<f64>,
    /// How long the target waited for the next period of its limit on processor time; null without a limit.
    #[serde(default)]
    pub throttled_us: Option<u64>,
    /// The busiest of the cores that generator and origin used; null when unknown.
    pub generator_busy: Option<f64>,
    /// How late connections were started, 99th percentile; null in a closed loop or without the samples.
    pub lag_p99_us: Option<f64>,
    /// Why the rate says nothing about the target: the generator was the limit, something else was offered; null when
    /// it does. The processor time per connection holds all the same.
    pub inconclusive: Option<String>,
    /// What a reader has to know.
    pub findings: Vec<Finding>,
    /// The seconds of the window. Those of records before version 3 have `attempted`, `succeeded`, `failed` and the mean
    /// response time alone, and 0 for the other counts.
    pub seconds: Vec<Second<Summary>>,
    /// Results without a network, by name: `value` in `unit`.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

impl WindowResult {
    /// What was served within the window; in records without completions, what was to start in it and succeeded.
    pub fn served(&self) -> Completions {
        self.completed.unwrap_or(Completions {
            transactions: self.succeeded,
            connections: self.connections,
            full: self.full,
            resumed: self.resumed,
        })
    }
}

/// A result without a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its name: the column of a table.
    pub name: String,
    /// What it is counted in: `MB/s`, `operations/s`, `s per 1000 connections`.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Lower end of its 95 % interval; null when it has none.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval; null when it has none.
    pub high: Option<f64>,
}

/// What the machine did during a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HostNoise {
    /// Share of the processors' time that the hypervisor gave to others, the worst core; null when unknown.
    pub steal: Option<f64>,
    /// Context switches of the target; null when unknown.
    pub switches: Option<u64>,
    /// Speed of the target's core just before the block: rounds of a fixed computation per microsecond.
    pub speed: Option<f64>,
}

/// Where processor time went, by sampling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Profile {
    /// Samples.
    pub samples: u64,
    /// Samples a second that were asked for.
    pub hertz: u32,
    /// By class: crypto, TLS, kernel, proxy, memory, other.
    pub classes: BTreeMap<String, u64>,
    /// Of the kernel's samples those within a system call, by its name without `sys_`; the others are interrupts, and the
    /// way in and out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub system_calls: BTreeMap<String, u64>,
    /// The most frequent symbols, the first the most.
    pub symbols: Vec<Symbol>,
    /// Stacks and their counts, one a line, frames joined by `;` from the outermost: what flame graphs are drawn from.
    pub folded: String,
}

/// A symbol of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// The file it is in.
    pub object: String,
    /// Its class.
    pub class: String,
    /// Samples.
    pub count: u64,
}
