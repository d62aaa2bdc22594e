//! Arguments of the verbs that compare terminators.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;

use crate::cli::Cpus;
use crate::units::{cpu_list, duration};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunSuiteArgs {
    /// A suite by name (capacity, reuse-and-key-size, offload, handshake-flood, continuous, platforms, overheads,
    /// primitives, two-certificates, fleet), or a file of your own
    #[arg(value_name = "SUITE")]
    pub(crate) suite: String,
    /// Targets, instead of the suite's: names of `courser-bench targets`, each with :stock for its package's settings
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// A further target, or one that is not ours to start: NAME=https://host:port; may be repeated
    #[arg(long, value_name = "NAME[=URL]")]
    pub(crate) target: Vec<String>,
    /// The quick variant: fewer cases, shorter blocks; under ten minutes with five targets
    #[arg(long)]
    pub(crate) quick: bool,
    /// Only cases whose name contains this; may be repeated
    #[arg(long = "case", value_name = "TEXT")]
    pub(crate) cases: Vec<String>,
    /// Keep the record in this file (JSON), instead of SUITE-DATE.json; it is written after every block
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Go on with the record of a run that was cut
    #[arg(long, requires = "record")]
    pub(crate) resume: bool,
    /// The page, instead of one beside the record
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Blocks of each cell, instead of the suite's
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: Option<u32>,
    /// Sample where targets spend their time, in a further block of each cell (needs perf)
    #[arg(long)]
    pub(crate) profile: bool,
    #[command(flatten)]
    pub(crate) bench: BenchArgs,
    /// Print the record as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell nothing while it runs
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// What all that start terminators have in common.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Bench")]
pub(crate) struct BenchArgs {
    /// Order of targets, order of arrivals
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Length of a block (of a staircase: of a step), instead of the suite's
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) seconds: Option<Duration>,
    /// Put a round trip of this length between generator and targets, which loopback has not
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) rtt: Option<Duration>,
    /// CPUs of the targets; the last ones without
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) target_cpus: Option<Cpus>,
    /// CPUs of the generator
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// CPUs of the origin
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) origin_cpus: Option<Cpus>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Two targets by name, or two records (FILE.json), before and after
    #[arg(value_name = "TARGET|FILE", required_unless_present = "baseline")]
    pub(crate) what: Vec<String>,
    /// The case: tls13-ecdsa, tls13-rsa, tls13-resumed, tls12-ecdsa, tls12-rsa, tls12-resumed, tls12-resumed-id,
    /// keep-alive, keep-alive-20k; or SUITE/CASE
    #[arg(long, value_name = "CASE", default_value = "tls13-ecdsa")]
    pub(crate) case: String,
    /// Time of a comparison, if no difference is known before
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    pub(crate) time: Duration,
    /// How often the two are compared, one comparison after the other
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) times: u32,
    /// Exit with 8 when anything got worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = crate::units::percent)]
    pub(crate) fail_above: Option<f64>,
    /// The record that all others are compared with: what is lost against it, in percent
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Keep the record in this file (JSON), instead of compare-DATE.json
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) bench: BenchArgs,
    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell nothing while it runs
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl CompareArgs {
    /// Where the record is kept.
    pub(crate) fn record_path(&self) -> PathBuf {
        self.record.clone().unwrap_or_else(|| dated("compare"))
    }
}

/// A name with date and time in it.
fn dated(name: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("{name}-{}.json", now.replace([':', '-'], "").replace('T', "-")))
}

impl RunSuiteArgs {
    /// Where the record is kept.
    pub(crate) fn record_path(&self) -> PathBuf {
        let name = std::path::Path::new(&self.suite).file_stem().unwrap_or_default().to_string_lossy();
        self.record.clone().unwrap_or_else(|| dated(&name))
    }

    /// Where the page goes.
    pub(crate) fn page_path(&self, record: &std::path::Path) -> PathBuf {
        self.output.clone().unwrap_or_else(|| record.with_extension("html"))
    }
}
