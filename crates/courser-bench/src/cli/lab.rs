//! Arguments of the verbs that compare terminators.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::cli::Cpus;
use crate::units::{cpu_list, duration};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunSuiteArgs {
    /// Suite by name (capacity, reuse-and-key-size, offload, handshake-flood, continuous, platforms, overheads,
    /// primitives, two-certificates, fleet), or path of a suite file
    #[arg(value_name = "SUITE")]
    pub(crate) suite: String,
    /// Targets by name, as `courser-bench targets` lists them; NAME:stock for the package's settings
    /// [default: those of the suite]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// Add a target, or a server that runs already: NAME=https://host:port; may be repeated
    #[arg(long, value_name = "NAME[=URL]")]
    pub(crate) target: Vec<String>,
    /// Run the quick variant: fewer cases, shorter blocks; under ten minutes with five targets
    #[arg(long)]
    pub(crate) quick: bool,
    /// Run only cases whose name contains this text; may be repeated
    #[arg(long = "case", value_name = "TEXT")]
    pub(crate) cases: Vec<String>,
    /// Write the record to this file (JSON) after every block [default: SUITE-DATE.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Continue the record of an interrupted run
    #[arg(long, requires = "record")]
    pub(crate) resume: bool,
    /// Write the page to this file [default: beside the record]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Blocks of each cell [default: set by the suite]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Profile targets in an additional block of each cell (needs perf)
    #[arg(long)]
    pub(crate) profile: bool,
    #[command(flatten)]
    pub(crate) bench: BenchArgs,
    /// Print the record as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of all commands that start terminators to measure them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Bench")]
pub(crate) struct BenchArgs {
    /// Seed of all random choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Length of a block, or of a step of a staircase [default: set by the suite]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) seconds: Option<Duration>,
    /// Add this round-trip time between generator and targets
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Duration>,
    /// CPUs of the targets [default: the last ones]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) target_cpus: Option<Cpus>,
    /// CPUs of the generator [default: those left over]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// CPUs of the origin server [default: the first one]
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) origin_cpus: Option<Cpus>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Two targets by name, or two records (FILE.json): before, after
    #[arg(value_name = "TARGET|FILE", required_unless_present = "baseline")]
    pub(crate) what: Vec<String>,
    /// Case: tls13-ecdsa, tls13-rsa, tls13-resumed, tls12-ecdsa, tls12-rsa, tls12-resumed, tls12-resumed-id,
    /// keep-alive, keep-alive-20k; or SUITE/CASE
    #[arg(long, value_name = "CASE", default_value = "tls13-ecdsa")]
    pub(crate) case: String,
    /// Maximum time of a comparison
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    pub(crate) time: Duration,
    /// Number of comparisons, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) times: u32,
    /// Exit with code 8 for a regression above this limit
    #[arg(long, value_name = "PERCENT", value_parser = crate::units::percent)]
    pub(crate) fail_above: Option<f64>,
    /// Record to compare all others with, as the loss in percent
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the record to this file (JSON) [default: compare-DATE.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bench: BenchArgs,
    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl CompareArgs {
    /// Path of the record.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.record.clone().unwrap_or_else(|| dated("compare"))
    }
}

/// A file name with date and time.
fn dated(name: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("{name}-{}.json", now.replace([':', '-'], "").replace('T', "-")))
}

impl RunSuiteArgs {
    /// Path of the record.
    pub(crate) fn record_path(&self) -> PathBuf {
        let name = std::path::Path::new(&self.suite).file_stem().unwrap_or_default().to_string_lossy();
        self.record.clone().unwrap_or_else(|| dated(&name))
    }

    /// Path of the page.
    pub(crate) fn page_path(&self, record: &std::path::Path) -> PathBuf {
        self.output.clone().unwrap_or_else(|| record.with_extension("html"))
    }
}
