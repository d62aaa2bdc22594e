//! The command line: verbs, their flags, their help.

mod around;
mod lab;
mod plan;
mod report;
mod spec;
mod target;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use around::{DelayArgs, SystemCheckArgs};
pub(crate) use lab::{CompareArgs, RunSuiteArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use report::ReportArgs;
pub(crate) use target::{StartArgs, SuperviseArgs, TargetsArgs};

use crate::units::{Cpus, cpu_list, duration, share, size};
use courser_load::url::Url;

/// Exit codes, for `--help`; `exit.rs` gives them.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; a measurement is valid
  1  the system refused a file, a thread or a socket
  2  the command line is wrong, or asks for something that is not available
  3  inconclusive: client-bound, or a target did not do what was requested; findings say why
  4  the target cannot be reached
  5  no TLS with the target: not spoken, no parameters in common, or its certificate is refused
  6  interrupted by Ctrl-C; results so far are printed and stored
  7  no rate satisfies the rule
  8  a regression exceeds --fail-above
  9  a threshold of --fail-if is crossed

Load only machines that you are allowed to load.";

/// Measure TLS servers: load any TLS endpoint, and judge only what the samples support
#[derive(Debug, Parser)]
#[command(name = "courser-bench", version, about, after_help = EXIT_CODES, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print what an endpoint negotiates: versions, suites, certificates, resumption
    #[command(after_help = "Example:\n  courser-bench inspect example.org:443 127.0.0.1:8443")]
    Inspect(InspectArgs),
    /// Measure handshakes per second at saturation: connect, handshake, close
    #[command(after_help = "Example:\n  courser-bench handshake 127.0.0.1:8443 -c 200 --duration 10s")]
    Handshake(Box<HandshakeArgs>),
    /// Load an endpoint with sessions at a rate, or in a closed loop
    #[command(after_help = LOAD_EXAMPLES, override_usage = LOAD_USAGE)]
    Load(Box<LoadArgs>),
    /// Load an endpoint with a staircase of rates, to see where it saturates
    #[command(
        after_help = "Example:\n  courser-bench ramp https://127.0.0.1:8443/ --from 100 --to 5000 --steps 20"
    )]
    Ramp(Box<RampArgs>),
    /// Search for the highest rate that satisfies rules
    #[command(
        after_help = "Example:\n  courser-bench search https://127.0.0.1:8443/ --rule 'avg<100ms,loss<0.1%' --reuse 4"
    )]
    Search(Box<SearchArgs>),
    /// Measure memory per idle connection
    #[command(after_help = "Example:\n  courser-bench idle 127.0.0.1:8443 -c 5000 --server-pid 1234")]
    Idle(Box<IdleArgs>),
    /// Measure the cost of full and resumed handshakes without a network
    #[command(after_help = "Example:\n  courser-bench overheads --bytes 1,1k,10k,100k")]
    Overheads(OverheadsArgs),
    /// Measure the operations of the cryptographic library: the lower bound of TLS
    #[command(after_help = "Example:\n  courser-bench primitives --json")]
    Primitives(PrimitivesArgs),
    /// Run an origin server: objects of any size, delays, keep-alive, PROXY protocol
    #[command(
        after_help = "Example:\n  courser-bench origin --listen 127.0.0.1:8000\n  curl 'http://127.0.0.1:8000/?s=20k&d=5ms'"
    )]
    Origin(OriginArgs),
    /// List terminators: those installed here, and how to install the others
    #[command(after_help = "Example:\n  courser-bench targets --json")]
    Targets(TargetsArgs),
    /// Start a terminator on a free port, until standard input ends or Ctrl-C
    #[command(after_help = target::START_EXAMPLES)]
    Start(StartArgs),
    /// Supervise targets, and end them when the parent ends
    #[command(hide = true)]
    Supervise(SuperviseArgs),
    /// Measure what this generator can do on this machine
    #[command(after_help = "Example:\n  courser-bench calibrate")]
    Calibrate(CalibrateArgs),
    /// Estimate how many cores a load needs, and what other choices would change
    #[command(after_help = plan::PLAN_EXAMPLES)]
    Plan(PlanArgs),
    /// Print system settings of this machine beside those of published experiments
    #[command(after_help = "Example:\n  courser-bench system-check")]
    SystemCheck(SystemCheckArgs),
    /// Forward connections with an added round-trip time
    #[command(
        after_help = "Example:\n  courser-bench delay --listen 127.0.0.1:9443 --to 127.0.0.1:8443 --rtt 40ms"
    )]
    Delay(DelayArgs),
    /// Run the server that `calibrate` measures against
    #[command(hide = true)]
    Respond(RespondArgs),
    /// Run a suite: a published experiment, on the terminators of this machine
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunSuiteArgs>),
    /// Format records of suites as a page, Markdown, CSV, plots or text
    #[command(
        after_help = "Examples:\n  courser-bench report capacity.json primitives.json -o report.html\n  courser-bench report record/*.json --index docs/report"
    )]
    Report(ReportArgs),
    /// Compare two terminators until they differ, or records of suites
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Box<CompareArgs>),
    /// Merge the records of generators that ran together
    #[command(after_help = "Example:\n  courser-bench merge a.json b.json --record both.json")]
    Merge(MergeArgs),
    /// Print a record as its run printed it
    #[command(after_help = "Example:\n  courser-bench show run.json")]
    Show(ShowArgs),
    /// Print the manual page (for `man -l -`)
    #[command(after_help = "Example:\n  courser-bench man > courser-bench.1")]
    Man,
    /// Print a shell completion script
    #[command(
        after_help = "Example:\n  courser-bench completions bash > /etc/bash_completion.d/courser-bench"
    )]
    Completions(CompletionsArgs),
}

/// The generated one is wider than a page.
const LOAD_USAGE: &str =
    "courser-bench load [OPTIONS] <--rate <PER_SECOND>|--connection-rate <PER_SECOND>|-c <COUNT>> <URL>";

const LOAD_EXAMPLES: &str = "\
Examples:
  2000 new sessions a second, each 1 full handshake and 3 resumed connections (8000 connections/s):
    courser-bench load https://127.0.0.1:8443/ --rate 2000 --reuse 4 --duration 60s
  1000 connections at a time, kept alive for the whole run:
    courser-bench load https://127.0.0.1:8443/ -c 1000 --keepalive
  As HTTP/2 where the server agrees on it (ALPN), else as HTTP/1.1; h2 alone has to be agreed on:
    courser-bench load https://127.0.0.1:8443/ --rate 100 --requests 5 --alpn h2,http/1.1
  Generator and backend on one core, the terminator on the other:
    taskset -c 1 courser serve --listen 127.0.0.1:8443 --backend 127.0.0.1:8000 &
    courser-bench load https://127.0.0.1:8443/ -c 64 --cpus 0 --origin 127.0.0.1:8000
  For continuous integration: exit code 9 when responses are slow or lost, and a file for Prometheus' node exporter:
    courser-bench load https://127.0.0.1:8443/ --rate 100 --fail-if 'p99>50ms' --fail-if 'loss>0.1%' \\
      --prometheus-text /var/lib/node_exporter/courser.prom";

const COMPARE_EXAMPLES: &str = "\
Examples:
  Two targets, in alternating blocks:
    courser-bench compare courser haproxy --case tls13-ecdsa
    courser-bench compare courser=./old courser=./new
  For continuous integration: a Markdown table, and exit code 8 for a regression above 3 %:
    courser-bench compare before.json after.json --fail-above 3%
  Platforms, as the loss against a baseline in percent:
    courser-bench compare --baseline bare-metal.json kvm.json xen.json";

const RUN_EXAMPLES: &str = "\
Examples:
  The quick variant, under ten minutes; writes a record and a page:
    courser-bench run capacity --quick
  Two builds of one program, another program by its path, and a target file:
    courser-bench run capacity --quick courser=./old courser=./new nginx=/opt/nginx/sbin/nginx mine.toml
  Without the control block of each target, where time is short:
    courser-bench run handshake-flood --no-control
  A server that already runs elsewhere, beside a local target:
    courser-bench run handshake-flood courser external=https://10.0.0.9";

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Endpoints: host:port, or https://host
    #[arg(required = true, value_name = "ENDPOINT")]
    pub(crate) endpoints: Vec<Url>,
    /// Server name (SNI) [default: the host]
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// Timeout of each answer
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
    /// Concurrent connections
    #[arg(short, long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: u64,
    /// New connections per second on a schedule (open loop), instead of a closed loop
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "connections", value_parser = crate::units::rate)]
    pub(crate) rate: Option<f64>,
    /// Close the connection this long after the ClientHello, as in a handshake flood
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
    /// URL: https://host:port/path, http://… for plain HTTP, tls:// or tcp://host:port for --echo
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// New sessions per second; each makes --reuse connections, one after the other
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) rate: Option<f64>,
    /// New connections per second, resumed as often as --reuse sets
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) connection_rate: Option<f64>,
    /// Concurrent connections of a closed loop (measures saturation only)
    #[arg(short, long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: Option<u64>,
    /// Fail with exit code 9 when this is seen: avg>100ms, p99>…, max>…, loss>0.1%, rate<95% or rate<1000/s,
    /// handshakes<500/s; may be repeated
    #[arg(long, value_name = "THRESHOLD")]
    pub(crate) fail_if: Vec<String>,
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
    /// URL, as for `load`
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// First rate: new sessions per second
    #[arg(long, value_name = "PER_SECOND", default_value = "100", value_parser = crate::units::rate)]
    pub(crate) from: f64,
    /// Last rate
    #[arg(long, value_name = "PER_SECOND", value_parser = crate::units::rate)]
    pub(crate) to: f64,
    /// Steps of the staircase; they share the duration equally
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
    /// URL, as for `load`
    #[arg(value_name = "URL")]
    pub(crate) url: Url,
    /// Conditions on a rate, separated by commas: avg<100ms, p99<…, max<…, loss<0.1%, rate>95%; may be repeated
    #[arg(long = "rule", value_name = "RULE", required = true)]
    pub(crate) rules: Vec<String>,
    /// Lowest rate to try: new sessions per second
    #[arg(long, value_name = "PER_SECOND", default_value = "50", value_parser = crate::units::rate)]
    pub(crate) from: f64,
    /// Highest rate to try
    #[arg(long, value_name = "PER_SECOND", default_value = "100k", value_parser = crate::units::rate)]
    pub(crate) to: f64,
    /// Total time of all trials
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
    /// Endpoint: host:port, or https://host/path for one request at the start of each connection
    #[arg(value_name = "ENDPOINT")]
    pub(crate) url: Url,
    /// Idle connections
    #[arg(short, long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) connections: u64,
    /// Connections opened per second for the first figure; all at once for the second one
    #[arg(long, value_name = "PER_SECOND", default_value = "200", value_parser = crate::units::rate)]
    pub(crate) open_rate: f64,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// Arguments of `overheads`.
#[derive(Debug, Args)]
pub(crate) struct OverheadsArgs {
    /// Bytes echoed per connection, one row for each size
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1,1024,10240,102400", value_parser = size)]
    pub(crate) bytes: Vec<usize>,
    /// Connections per figure
    #[arg(long, value_name = "COUNT", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) number: u32,
    /// Cipher suites by name [default: common ones of TLS 1.2 and 1.3]
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
    /// Threads [default: one per core]
    #[arg(long, value_name = "COUNT")]
    pub(crate) threads: Option<usize>,
    /// CPUs to pin threads to: 1 or 2-3
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// PROXY protocol header before the request
    #[arg(long, value_enum, default_value_t = ProxyMode::Accepted)]
    pub(crate) proxy: ProxyMode,
    /// Echo bytes instead of HTTP
    #[arg(long)]
    pub(crate) echo: bool,
}

/// What is done with a PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyMode {
    /// Accept connections with and without a header
    Accepted,
    /// Close connections without a header
    Required,
    /// Treat a header as a bad request
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
    /// CPU to pin the thread to
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<usize>,
}

/// Arguments of `merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Records of the generators
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Write the merged record to this file (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Print the merged record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Record
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    pub(crate) shell: clap_complete::Shell,
}

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
    /// Send each ClientHello in eight pieces over this time, as slow clients do
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
