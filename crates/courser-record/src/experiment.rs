//! What was asked. Two records are of the same experiment when this is the same, but for the generator's share.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Experiment {
    /// The command of `courser-bench`: load, handshake, ramp, search, idle.
    pub command: String,
    /// Whom.
    pub target: Target,
    /// What TLS offers; null in clear.
    pub tls: Option<TlsOffer>,
    /// How much, and when.
    pub load: LoadModel,
    /// How long.
    pub phases: Phases,
    /// On which sockets.
    pub sockets: Sockets,
    /// What is asked for on a connection; null when it is closed after the handshake.
    pub request: Option<Request>,
    /// The rules of a search, as they were given.
    #[serde(default)]
    pub rules: Vec<String>,
}

/// Who is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Target {
    /// As it was given: `https://host:port/path`, `host:port`.
    pub url: String,
    /// The addresses that it stood for, `ip:port` or the path of a unix socket.
    pub addresses: Vec<String>,
}

/// What a client offers in its handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TlsOffer {
    /// The client's TLS: lean, real, openssl.
    pub engine: String,
    /// Which certificates are verified.
    pub verification: Verification,
    /// Versions, for instance `TLS 1.3`.
    pub versions: Vec<String>,
    /// Cipher suites in order, by their IANA names; empty for the engine's own.
    pub suites: Vec<String>,
    /// Key exchange groups in order, the first with a key share; empty for the engine's own.
    pub groups: Vec<String>,
    /// Signature schemes in order; empty for the engine's own.
    pub schemes: Vec<String>,
    /// Application protocols in order.
    pub alpn: Vec<String>,
    /// How sessions are resumed.
    pub resumption: Resumption,
    /// Connections per TLS session: 1 never resumes, 0 always.
    pub reuse: u32,
    /// TLS 1.3 tickets that a client keeps at most.
    pub tickets_kept: u32,
    /// Whether requests are sent as early data where the session allows it.
    pub early_data: bool,
    /// The server names sent, in words: one name, a list, a distribution over so many names; null when none is sent.
    pub server_names: Option<String>,
    /// Whether a client certificate is presented.
    pub client_certificate: bool,
}

/// Which server certificates a client verifies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// None: neither chain, name nor signature.
    #[default]
    None,
    /// The signature of each handshake, but neither chain nor name.
    Signature,
    /// A sample of the signatures; neither chain nor name.
    SignatureSample,
    /// A sample in full, the others not at all.
    Sample,
    /// Chain, name and signature of each.
    Full,
}

/// How a client asks for its session again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resumption {
    /// Never.
    #[default]
    Never,
    /// By session ID (RFC 5246, section 7.3).
    SessionId,
    /// By session ticket (RFC 5077), or by pre-shared key (RFC 8446, section 2.2) in TLS 1.3.
    Ticket,
}

/// When connections are made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadModel {
    /// The model.
    pub kind: LoadKind,
    /// Arrivals a second of all generators together: sessions in the sessions model, connections in the others; where
    /// a staircase or a search starts. Null in a closed loop.
    pub rate: Option<f64>,
    /// Where a staircase or a search ends.
    pub rate_to: Option<f64>,
    /// Connections at a time, of all generators together: fixed in a closed loop, the most there may be elsewhere.
    pub connections: Option<u64>,
    /// Whether connections stay open for further requests.
    pub keepalive: bool,
    /// Requests on each connection; null when as many as fit.
    pub requests_per_connection: Option<u64>,
    /// How arrivals are spaced.
    pub arrivals: Arrivals,
    /// Seed of all randomness: the same one gives the same schedule.
    pub seed: u64,
    /// This generator's part of the schedule; null when it is the only one.
    pub share: Option<Share>,
    /// When generators start together, microseconds since 1970.
    pub start_at_unix_us: Option<u64>,
    /// After how long an abandoned handshake is given up; 0 is right after the `ClientHello`.
    pub abandon_after_us: Option<u64>,
}

/// Load models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// Sessions arrive at a rate; each makes its connections one after the other.
    #[default]
    Sessions,
    /// Connections start at times fixed in advance.
    ConstantRate,
    /// So many connections at a time, as fast as it goes.
    Closed,
    /// The offered rate climbs in steps.
    Staircase,
    /// Connect, handshake, close.
    Handshake,
    /// Handshakes that are left alone.
    Abandon,
}

impl fmt::Display for LoadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sessions => "sessions",
            Self::ConstantRate => "constant rate",
            Self::Closed => "closed loop",
            Self::Staircase => "staircase",
            Self::Handshake => "handshake only",
            Self::Abandon => "abandoned handshakes",
        })
    }
}

/// How arrivals are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Even,
    /// At random, independent of each other.
    Poisson,
}

/// Part `k` of `n` of a schedule, `k` counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Share {
    /// Which part, from 1.
    pub k: u32,
    /// Of how many.
    pub n: u32,
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.k, self.n)
    }
}

/// Phases of a run, one after the other. Only the steady one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Phases {
    /// At the full rate, so that caches fill.
    pub warm_up_us: u64,
    /// From nothing to the full rate.
    pub ramp_us: u64,
    /// What is measured.
    pub steady_us: u64,
    /// The longest wait at the end for what is still open.
    pub drain_us: u64,
}

/// How sockets are opened and closed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sockets {
    /// Local addresses, used in turn; empty for the system's choice.
    pub sources: Vec<String>,
    /// How a connection is ended.
    pub close: CloseMode,
    /// Whether `TCP_NODELAY` is set.
    pub nodelay: bool,
    /// Segments that each ClientHello was sent in; null for one, or eight over its time.
    #[serde(default)]
    pub hello_segments: Option<u32>,
    /// Over how long each ClientHello was sent in segments; null for at once.
    #[serde(default)]
    pub hello_over_us: Option<u64>,
    /// How long to wait for a TCP connection; null for the system's limit.
    pub connect_timeout_us: Option<u64>,
    /// How long a connection may take from its start to its end; null without limit.
    pub timeout_us: Option<u64>,
}

/// How a client ends a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CloseMode {
    /// A `close_notify` alert and FIN, then wait for the server's FIN.
    #[default]
    CloseNotify,
    /// FIN alone, then wait for the server's FIN.
    Fin,
    /// RST at once: no TIME_WAIT.
    Rst,
}

/// What is asked for on a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Request {
    /// HTTP method, or `echo` for bytes that have to come back.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Size of the request's body.
    pub body_bytes: u64,
    /// What the answer has to be.
    pub expected: Expected,
}

/// What an answer is held to. What is null is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Expected {
    /// HTTP status.
    pub status: Option<u16>,
    /// Size of the body.
    pub body_bytes: Option<u64>,
    /// SHA-256 of the body, hexadecimal.
    pub sha256: Option<String>,
}
