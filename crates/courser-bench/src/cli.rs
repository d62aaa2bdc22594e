//! The command line: verbs, their flags, their help.

mod around;
mod flags;
mod lab;
mod plan;
mod report;
mod spec;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use around::{DelayArgs, SystemCheckArgs};
pub(crate) use flags::{
    CloseArg, CommonArgs, EngineArg, OutputArgs, RequestArgs, ResumeArg, ReuseArgs, ReuseOnceArgs,
    ServerArgs, TlsArgs,
};
pub(crate) use lab::{CompareArgs, RunSuiteArgs};
pub(crate) use plan::PlanArgs;
pub(crate) use report::ReportArgs;
pub(crate) use target::{StartArgs, SuperviseArgs, TargetsArgs};

use crate::units::{Cpus, cpu_list, duration, size};
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
        after_help = "Examples:\n  courser-bench report capacity.json primitives.json -o report.html\n  courser-bench report record/*.json --index docs/report\n  courser-bench report a-a-*.json --pairs"
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
