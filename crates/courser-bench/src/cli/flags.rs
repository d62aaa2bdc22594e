//! Groups of flags that several verbs share.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::units::{Cpus, cpu_list, duration, share, size};

/// How often a TLS session is used.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReuseArgs {
    /// Connections per TLS session: 1 never resumes; 0 always does, after one full handshake per client
    #[arg(long, value_name = "COUNT", default_value_t = 4, help_heading = "TLS")]
    pub(crate) reuse: u32,
}

/// As [`ReuseArgs`], with another default. One struct cannot have both: clap keeps a default in a static, and those of
/// a generic function are shared by all its types.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReuseOnceArgs {
    /// Connections per TLS session: 1 never resumes; 0 always does, after one full handshake per client
    #[arg(long, value_name = "COUNT", default_value_t = 1, help_heading = "TLS")]
    pub(crate) reuse: u32,
}

/// Requests on a connection.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Send requests on each connection until the run ends
    #[arg(long, conflicts_with = "requests")]
    pub(crate) keepalive: bool,
    /// Requests per connection
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests: u32,
    /// Rest so long between an answer and the next request of its connection (HTTP/1.1)
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    pub(crate) pause: Duration,
    /// Send POST requests with a body of this size
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) post: Option<usize>,
    /// Add a header field, `Name: value`; may be repeated
    #[arg(long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Expect this status [default: any 2xx]
    #[arg(long, value_name = "STATUS")]
    pub(crate) expect_status: Option<u16>,
    /// Expect this length of every response body
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) expect_length: Option<usize>,
    /// Expect this SHA-256 of every response body, in hex; `first` for that of the first response
    #[arg(long, value_name = "HASH")]
    pub(crate) expect_sha256: Option<String>,
    /// Serve the origin behind the target at these addresses, in the generator's own event loop
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) origin: Vec<SocketAddr>,
    /// Instead of HTTP, send this many bytes and expect them back
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["keepalive", "post", "headers"])]
    pub(crate) echo: Option<usize>,
}

/// What all loads have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArgs {
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    #[command(flatten)]
    pub(crate) sockets: SocketArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is offered.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct TlsArgs {
    /// TLS client engine; `lean` verifies a sample of the signatures and keeps no secret: one core can load several
    #[arg(long, value_enum, default_value_t = EngineArg::Lean)]
    pub(crate) engine: EngineArg,
    /// TLS versions: 1.3, 1.2 (openssl: 1.1, 1.0)
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) tls: Vec<String>,
    /// Cipher suites, in order of preference
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub(crate) suites: Vec<String>,
    /// Key exchange groups, in order of preference; the first gets the key share
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Signature schemes, in order of preference
    #[arg(long, value_name = "SCHEMES", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// Application protocols (ALPN); where the server chooses h2, requests are HTTP/2
    #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',')]
    pub(crate) alpn: Vec<String>,
    /// How sessions are resumed
    #[arg(long, value_enum, default_value_t = ResumeArg::Ticket)]
    pub(crate) resume: ResumeArg,
    /// TLS 1.3 tickets stored per client
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub(crate) tickets: usize,
    /// Send the first request as early data where the session permits it (TLS 1.3)
    #[arg(long)]
    pub(crate) early_data: bool,
    /// Server names (SNI), round robin [default: the host of the URL]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) sni: Vec<String>,
    /// File of server names, one per line
    #[arg(long, value_name = "FILE", conflicts_with = "sni")]
    pub(crate) sni_file: Option<PathBuf>,
    /// Choose server names by Zipf's law with this exponent; the first is the most frequent
    #[arg(long, value_name = "EXPONENT")]
    pub(crate) zipf: Option<f64>,
    /// File of trusted certificates (PEM): `real` and `openssl` verify every connection, `lean` a sample
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// File of the client's certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// File of the client's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

/// Engines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// The least work that the protocol permits; not confidential
    Lean,
    /// All the work of a real client
    Real,
    /// The system's OpenSSL: an independent implementation, and old versions
    Openssl,
}

/// Ways of resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResumeArg {
    /// Session tickets; a pre-shared key in TLS 1.3
    Ticket,
    /// Session IDs, TLS 1.2 only
    Id,
}

/// When and where.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Run")]
pub(crate) struct RunArgs {
    /// Steady state: the part that is measured
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Warm-up before it, at a tenth of the rate
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) warm_up: Duration,
    /// Ramp between the two, up to the rate
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) ramp_up: Duration,
    /// Time for the last connections after it
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
    /// Threads of the generator [default: one per CPU in --cpus, or one]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// CPUs to pin threads to, one each: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Draw arrivals from a Poisson process instead of even spacing
    #[arg(long)]
    pub(crate) poisson: bool,
    /// Seed of all random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Share of the schedule of this generator: 2/5 is the second of five
    #[arg(long, value_name = "K/N", value_parser = share)]
    pub(crate) share: Option<(u64, u64)>,
    /// Start time: RFC 3339, or +30s for the next multiple of 30 seconds
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment)]
    pub(crate) start_at: Option<std::time::SystemTime>,
    /// Maximum of open connections
    #[arg(long, value_name = "COUNT", default_value_t = 15_000)]
    pub(crate) in_flight: usize,
}

/// Sockets of the clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub(crate) struct SocketArgs {
    /// More addresses of the service; each connection of a client goes to the next one
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) also: Vec<SocketAddr>,
    /// Source addresses, round robin
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,
    /// How connections are closed
    #[arg(long, value_enum, default_value_t = CloseArg::CloseNotify)]
    pub(crate) close: CloseArg,
    /// Leave Nagle's algorithm on
    #[arg(long)]
    pub(crate) nagle: bool,
    /// Send each ClientHello in so many segments [default: 1; 8 with --hello-over]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    pub(crate) hello_segments: u32,
    /// Send each ClientHello in segments over this time, as slow clients do
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    pub(crate) hello_over: Duration,
    /// Connect timeout
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// Timeout of a handshake or a request
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

/// Ends of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloseArg {
    /// close_notify and FIN
    CloseNotify,
    /// FIN alone
    Fin,
    /// RST: no TIME_WAIT and no close_notify
    Rst,
}

/// Whose processor time is accounted.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server accounting")]
pub(crate) struct ServerArgs {
    /// Process of the server on this machine; its children are included
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Control group of the server on this machine
    #[arg(long, value_name = "PATH", conflicts_with = "server_pid")]
    pub(crate) server_cgroup: Option<PathBuf>,
    /// CPUs of the server, to report their idle share
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) server_cpus: Option<Cpus>,
    /// Process of the origin server behind it, to detect when it is the limit
    #[arg(long, value_name = "PID")]
    pub(crate) origin_pid: Option<u32>,
}

/// Output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Write the record to this file (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write figures in Prometheus' text format to this file, for the textfile collector of its node exporter
    #[arg(long, value_name = "FILE")]
    pub(crate) prometheus_text: Option<PathBuf>,
    /// Print the record as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of JSON per second to standard output
    #[arg(long, conflicts_with = "json")]
    pub(crate) ndjson: bool,
    /// Suppress progress output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
