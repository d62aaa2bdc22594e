//! The command line: verbs, their flags, their help.

mod around;
mod lab;
mod plan;
mod report;
mod target;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use around::{RelayArgs, TuneArgs};
pub(crate) use lab::{BenchArgs, CompareArgs, RunSuiteArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use report::ReportArgs;
pub(crate) use target::{KeepArgs, StartArgs, TargetsArgs};

use crate::units::{cpu_list, duration, share, size};
use crate::url::Url;

/// Exit codes, for `--help`; `exit.rs` gives them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; where something was measured, the run is valid
  1  the system refused something (a file, a thread, a socket of our own)
  2  the command line is wrong, or names something that cannot be had
  3  measured, but the verdict is inconclusive: the generator was the limit, or what was asked for did not happen
  4  the target cannot be reached
  5  the target does not speak TLS, or there is nothing in common with it, or its certificate is refused
  6  cut short by Ctrl-C; what there is was printed and kept
  7  no rate satisfies the rule
  8  worse than --fail-above allows

Load goes where you send it. Send it to your own machines only.";

/// Loads any TLS endpoint with a correct load model, and says what the samples support.
#[derive(Debug, Parser)]
#[command(name = "courser-bench", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// What an endpoint negotiates: versions, suites, groups, certificates, resumption
    #[command(after_help = "Example:\n  courser-bench inspect example.org:443 127.0.0.1:8443")]
    Inspect(InspectArgs),
    /// Connect, handshake, close, as fast as it goes: handshakes per second at saturation
    #[command(after_help = "Example:\n  courser-bench handshake 127.0.0.1:8443 -c 200 --duration 10s")]
    Handshake(Box<HandshakeArgs>),
    /// Sessions that arrive at a rate (or, with -c, a closed loop), each with requests
    #[command(after_help = LOAD_EXAMPLES, override_usage = LOAD_USAGE)]
    Load(Box<LoadArgs>),
    /// A staircase of rates: where does it stop keeping up?
    #[command(
        after_help = "Example:\n  courser-bench ramp https://127.0.0.1:8443/ --from 100 --to 5000 --steps 20"
    )]
    Ramp(Box<RampArgs>),
    /// The highest rate that satisfies rules
    #[command(
        after_help = "Example:\n  courser-bench search https://127.0.0.1:8443/ --rule 'avg<100ms,loss<0.1%' --reuse 4"
    )]
    Search(Box<SearchArgs>),
    /// Hold connections open and silent: memory per connection
    #[command(after_help = "Example:\n  courser-bench idle 127.0.0.1:8443 -c 5000 --server-pid 1234")]
    Idle(Box<IdleArgs>),
    /// Both ends of TLS in one process, no network: what the protocol costs, full against resumed
    #[command(after_help = "Example:\n  courser-bench overheads --bytes 1,1k,10k,100k")]
    Overheads(OverheadsArgs),
    /// What the cryptographic library does on this machine: the physical limit
    #[command(after_help = "Example:\n  courser-bench primitives --json")]
    Primitives(PrimitivesArgs),
    /// A backend: objects of any size, delays, keep-alive, PROXY protocol
    #[command(
        after_help = "Example:\n  courser-bench origin --listen 127.0.0.1:8000\n  curl 'http://127.0.0.1:8000/?s=20k&d=5ms'"
    )]
    Origin(OriginArgs),
    /// Which terminators are installed here, and how to install the others
    #[command(after_help = "Example:\n  courser-bench targets --json")]
    Targets(TargetsArgs),
    /// Start a terminator on a free port, until standard input ends or Ctrl-C
    #[command(after_help = target::START_EXAMPLES)]
    Start(StartArgs),
    /// What ends targets when we end
    #[command(hide = true)]
    Keep(KeepArgs),
    /// What this generator can do on this machine
    #[command(after_help = "Example:\n  courser-bench calibrate")]
    Calibrate(CalibrateArgs),
    /// How many cores a load needs, and what other choices would change
    #[command(after_help = plan::PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// How this machine is tuned, beside what published experiments set; changes nothing
    #[command(after_help = "Example:\n  courser-bench tune --show")]
    Tune(TuneArgs),
    /// A round trip between generator and target: passes everything on half of it later
    #[command(
        after_help = "Example:\n  courser-bench relay --listen 127.0.0.1:9443 --to 127.0.0.1:8443 --rtt 40ms"
    )]
    Relay(RelayArgs),
    /// The server that `calibrate` starts
    #[command(hide = true)]
    Respond(RespondArgs),
    /// A published experiment, on the terminators of this machine side by side
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunSuiteArgs>),
    /// Records of suites as a page, Markdown, CSV, plots, or text
    #[command(after_help = "Example:\n  courser-bench report capacity.json primitives.json -o report.html")]
    Report(ReportArgs),
    /// Two terminators until the difference is known; or records of suites, before and after
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareArgs>),
    /// Merge the records of generators that ran together, exactly
    #[command(after_help = "Example:\n  courser-bench merge a.json b.json --record both.json")]
    Merge(MergeArgs),
    /// Print a record as its run printed it
    #[command(after_help = "Example:\n  courser-bench show run.json")]
    Show(ShowArgs),
}

/// The one that is made of the flags is wider than a page.
const LOAD_USAGE: &str =
    "courser-bench load [OPTIONS] <--rate <PER_SECOND>|--connection-rate <PER_SECOND>|-c <COUNT>> <URL>";

const LOAD_EXAMPLES: &str = "\
Examples:
  2000 new sessions a second, each 1 full handshake and 3 resumed connections (8000 connections/s):
    courser-bench load https://127.0.0.1:8443/ --rate 2000 --reuse 4 --duration 60s
  1000 connections at a time that stay open, as many requests as it takes:
    courser-bench load https://127.0.0.1:8443/ -c 1000 --keepalive";

const COMPARE_EXAMPLES: &str = "\
Examples:
  Interleaved blocks, until the difference is known or the time is up:
    courser-bench compare courser haproxy --case tls13-ecdsa
  For continuous integration: a Markdown table, and exit code 8 when anything got worse by more than 3 %:
    courser-bench compare before.json after.json --fail-above 3%
  Platforms, as the loss against the first in percent:
    courser-bench compare --baseline bare-metal.json kvm.json xen.json";

const RUN_EXAMPLES: &str = "\
Examples:
  Under ten minutes; ends with a record and a page:
    courser-bench run capacity --quick
  One that is already running somewhere, next to a local one:
    courser-bench run handshake-flood --targets courser --target external=https://10.0.0.9";

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Endpoints: host:port, or https://host
    #[arg(required = true, value_name = "ENDPOINT")]
    pub(crate) endpoints: Vec<Url>,
    /// Server name to ask for, instead of the host
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// How long an endpoint may keep silent
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `handshake`.
#[derive(Debug, Args)]
pub(crate) struct HandshakeArgs {
    /// Endpoint: host:port, or https://host
    #[arg(value_name = "ENDPOINT")]
    pub(crate) url: Url,
    /// Connections at a time
    #[arg(short, long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: u64,
    /// New connections a second on a schedule (open loop), instead of a closed loop
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "connections", value_parser = crate::units::rate)]
    pub(crate) rate: Option<f64>,
    /// Go away this long after the ClientHello, as an attacker does
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) abandon: Option<Duration>,
    #[command(flatten)]
    pub(crate) reuse: ReuseOnceArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("model").required(true).args(["rate", "connection_rate", "connections"])))]
pub(crate) struct LoadArgs {
    /// What to load: https://host:port/path, http://… for the direct path, tls:// or tcp://host:port for --echo
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// New sessions a second; each makes --reuse connections, one after the other
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) rate: Option<f64>,
    /// New connections a second, from clients that have been there before as --reuse says
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) connection_rate: Option<f64>,
    /// Connections at a time, as fast as it goes (closed loop: for saturation only)
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: Option<u64>,
    #[command(flatten)]
    pub(crate) reuse: ReuseArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `ramp`.
#[derive(Debug, Args)]
pub(crate) struct RampArgs {
    /// What to load
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// First rate: new sessions a second
    #[arg(long, value_name = "PER_SECOND", default_value = "100", value_parser = crate::units::rate)]
    pub(crate) from: f64,
    /// Last rate
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) to: f64,
    /// Steps of the staircase, spread over the whole duration
    #[arg(long, value_name = "COUNT", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) steps: u32,
    #[command(flatten)]
    pub(crate) reuse: ReuseArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `search`.
#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to load
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// What a rate has to satisfy: avg<100ms, p99<…, max<…, loss<0.1%, rate>95%, joined by commas; may be repeated
    #[arg(long = "rule", value_name = "RULE", required = true)]
    pub(crate) rules: Vec<String>,
    /// Lowest rate to try: new sessions a second
    #[arg(long, value_name = "PER_SECOND", default_value = "50", value_parser = crate::units::rate)]
    pub(crate) from: f64,
    /// Highest rate to try
    #[arg(long, value_name = "PER_SECOND", default_value = "100k", value_parser = crate::units::rate)]
    pub(crate) to: f64,
    /// Time of all trials together
    #[arg(long, value_name = "TIME", default_value = "290s", value_parser = duration)]
    pub(crate) budget: Duration,
    #[command(flatten)]
    pub(crate) reuse: ReuseArgs,
    #[command(flatten)]
    pub(crate) request: RequestArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `idle`.
#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Endpoint: host:port, or https://host/path to make one request first on each connection
    #[arg(value_name = "ENDPOINT")]
    pub(crate) url: Url,
    /// Connections to hold
    #[arg(short, long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: u64,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `overheads`.
#[derive(Debug, Args)]
pub(crate) struct OverheadsArgs {
    /// Bytes echoed per connection
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1,1024,10240,102400", value_parser = size)]
    pub(crate) bytes: Vec<usize>,
    /// Connections per figure
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) number: u32,
    /// Suites by name; the usual ones of TLS 1.2 and 1.3 without
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub(crate) suites: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `primitives`.
#[derive(Debug, Args)]
pub(crate) struct PrimitivesArgs {
    /// Time per figure
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = duration)]
    pub(crate) time: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `origin`.
#[derive(Debug, Args)]
pub(crate) struct OriginArgs {
    /// Addresses to listen on; may be repeated
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: Vec<String>,
    /// Threads; one per core without
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// CPUs to stay on: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// PROXY protocol before the request
    #[arg(long, value_enum, default_value_t = ProxyMode::Accepted)]
    pub(crate) proxy: ProxyMode,
    /// Send back the bytes that come, whatever they are
    #[arg(long)]
    pub(crate) echo: bool,
}

/// Whether connections begin with a PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// Those that have one are believed
    Accepted,
    /// Those that have none are refused
    Required,
    /// It is no header but a bad request
    Off,
}

/// Arguments of `calibrate`.
#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Time per figure
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = duration)]
    pub(crate) time: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `respond`.
#[derive(Debug, Args)]
pub(crate) struct RespondArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// CPU to stay on
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Records of the generators
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Keep the merged record in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print the merged record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A record
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// How often a TLS session is used.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReuseArgs {
    /// Connections per TLS session: 1 never resumes, 0 always does (one full handshake per client, ever)
    #[arg(long, value_name = "COUNT", default_value_t = 4, help_heading = "TLS")]
    pub(crate) reuse: u32,
}

/// As [`ReuseArgs`], with another default. One struct cannot have both: clap keeps a default in a static, and those of
/// a generic function are shared by all its types.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReuseOnceArgs {
    /// Connections per TLS session: 1 never resumes, 0 always does (one full handshake per client, ever)
    #[arg(long, value_name = "COUNT", default_value_t = 1, help_heading = "TLS")]
    pub(crate) reuse: u32,
}

/// What is asked of the server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestArgs {
    /// Keep connections open for as many requests as fit
    #[arg(long, conflicts_with = "requests")]
    pub(crate) keepalive: bool,
    /// Requests per connection
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests: u32,
    /// Send a body of so many bytes (POST)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) post: Option<usize>,
    /// A further header field, `Name: value`; may be repeated
    #[arg(long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Status that counts as success; any 2xx without
    #[arg(long, value_name = "STATUS")]
    pub(crate) expect_status: Option<u16>,
    /// Length that every answer must have
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) expect_length: Option<usize>,
    /// Hash that every answer must have: SHA-256 in hex, or `first` for that of the first answer
    #[arg(long, value_name = "HASH")]
    pub(crate) expect_sha256: Option<String>,
    /// Instead of HTTP, send so many bytes that the server sends back
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
    /// Who does the client's work: `lean` verifies nothing and has no secrets, so that one core can load several
    #[arg(long, value_enum, default_value_t = EngineArg::Lean)]
    pub(crate) engine: EngineArg,
    /// Versions: 1.3, 1.2 (openssl: 1.1, 1.0)
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) tls: Vec<String>,
    /// Cipher suites, in this order
    #[arg(long, value_name = "SUITES", value_delimiter = ',')]
    pub(crate) suites: Vec<String>,
    /// Key exchange groups, in this order; the first gets the key share
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub(crate) groups: Vec<String>,
    /// Signature schemes, in this order
    #[arg(long, value_name = "SCHEMES", value_delimiter = ',')]
    pub(crate) schemes: Vec<String>,
    /// Application protocols
    #[arg(long, value_name = "PROTOCOLS", value_delimiter = ',')]
    pub(crate) alpn: Vec<String>,
    /// By what sessions are resumed
    #[arg(long, value_enum, default_value_t = ResumeArg::Ticket)]
    pub(crate) resume: ResumeArg,
    /// TLS 1.3 tickets that a client keeps
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub(crate) tickets: usize,
    /// Send the first request as early data where the session allows it (TLS 1.3)
    #[arg(long)]
    pub(crate) early_data: bool,
    /// Server names, in turn; the host of the URL without
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) sni: Vec<String>,
    /// File with server names, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "sni")]
    pub(crate) sni_file: Option<PathBuf>,
    /// Pick names by Zipf's law with this exponent, the first the most popular
    #[arg(long, value_name = "EXPONENT")]
    pub(crate) zipf: Option<f64>,
    /// Certificates to trust (PEM): `real` and `openssl` verify every connection, `lean` a sample
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The client's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The client's key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

/// Engines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// As little work as the protocol allows; not confidential
    Lean,
    /// All the work of a real client
    Real,
    /// The system's OpenSSL: an independent judge, and old versions
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
    /// The steady phase: what counts
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Before it, at a tenth of the rate
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) warm_up: Duration,
    /// Between the two, climbing
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) ramp_up: Duration,
    /// How long the last connections may take after it
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) drain: Duration,
    /// Threads of the generator; one per CPU in --cpus, or one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// CPUs that threads stay on, one each: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Arrivals at random (a Poisson process) instead of evenly
    #[arg(long)]
    pub(crate) poisson: bool,
    /// Where randomness comes from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// This generator's part of the schedule: 2/5 is the second of five
    #[arg(long, value_name = "K/N", value_parser = share)]
    pub(crate) share: Option<(u64, u64)>,
    /// Start at this time: RFC 3339, or 30s from now rounded to a multiple of itself (+30s)
    #[arg(long, value_name = "TIME", value_parser = crate::units::moment)]
    pub(crate) start_at: Option<std::time::SystemTime>,
    /// Connections open at a time, at most
    #[arg(long, value_name = "COUNT", default_value_t = 15_000)]
    pub(crate) in_flight: usize,
}

/// A list of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// Sockets of the clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Sockets")]
pub(crate) struct SocketArgs {
    /// Further addresses of the same service: each connection of a client goes to the next one
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) also: Vec<SocketAddr>,
    /// Source addresses, in turn
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pub(crate) source: Vec<IpAddr>,
    /// How connections end
    #[arg(long, value_enum, default_value_t = CloseArg::CloseNotify)]
    pub(crate) close: CloseArg,
    /// Leave Nagle's algorithm on, as naive clients do
    #[arg(long)]
    pub(crate) nagle: bool,
    /// How long a connect may take
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) connect_timeout: Duration,
    /// How long a handshake, or a request, may take
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
    /// RST: no wait for stray segments, and no goodbye
    Rst,
}

/// Whose processor time is accounted.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server accounting")]
pub(crate) struct ServerArgs {
    /// Process of the server on this machine; its children count too
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Control group of the server on this machine
    #[arg(long, value_name = "PATH", conflicts_with = "server_pid")]
    pub(crate) server_cgroup: Option<PathBuf>,
    /// CPUs of the server: their idle share is told
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) server_cpus: Option<Cpus>,
    /// Process of the origin behind it: judged like the generator
    #[arg(long, value_name = "PID")]
    pub(crate) origin_pid: Option<u32>,
}

/// What is printed and kept.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Keep the record in this file (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print the record as JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line of JSON for each second on standard output
    #[arg(long, conflicts_with = "json")]
    pub(crate) ndjson: bool,
    /// No line a second
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
