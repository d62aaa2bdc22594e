//! Arguments of the verbs that compare terminators.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::Args;
use courser_lab::comparing::ComparisonOptions;
use courser_lab::cores::ByHand;
use courser_lab::run::SuiteOptions;
use courser_lab::share::ShareChoice;
use courser_lab::start::BenchOptions;

use crate::units::{Cpus, cpu_list, duration, server_share};

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunSuiteArgs {
    /// Suite by name (capacity, reuse-and-key-size, offload, handshake-flood, continuous, platforms, overheads,
    /// primitives, two-certificates, fleet), or path of a suite file
    #[arg(value_name = "SUITE")]
    pub(crate) suite: String,
    /// Targets: NAME as `courser-bench targets` lists them, NAME:stock for the package's settings, NAME=PROGRAM or
    /// NAME@LABEL=PROGRAM for a build of your own, a target file (mine.toml), LABEL=https://host:port for a server that
    /// runs already [default: those of the suite]
    #[arg(value_name = "TARGET")]
    pub(crate) operands: Vec<String>,
    /// The same, separated by commas
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    pub(crate) targets: Vec<String>,
    /// The same, one; may be repeated
    #[arg(long, value_name = "TARGET")]
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
    /// Leave out the control block of each cell: the same load by clients that do all the work and verify (engine real)
    /// [default: in the quick variant where it takes more than a tenth of the time]
    #[arg(long)]
    pub(crate) no_control: bool,
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
    /// Hold each target to this share of its cores by a control group, so that it is the limit: 0.5, or off
    /// [default: of `run` 0.5 where generator and origin have one core together, else off]
    #[arg(long, value_name = "SHARE", default_value = "auto", hide_default_value = true, value_parser = server_share)]
    pub(crate) server_share: ShareChoice,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Two targets (NAME, NAME=PROGRAM, NAME@LABEL=PROGRAM, a target file mine.toml, LABEL=https://host:port), or two
    /// records (FILE.json): before, after
    #[arg(value_name = "TARGET|FILE", required_unless_present = "baseline")]
    pub(crate) what: Vec<String>,
    /// Case: tls13-ecdsa, tls13-rsa, tls13-resumed, tls12-ecdsa, tls12-rsa, tls12-resumed, tls12-resumed-id,
    /// keep-alive, keep-alive-20k; or SUITE/CASE; several separated by commas
    #[arg(long, value_name = "CASE", default_value = "tls13-ecdsa", value_delimiter = ',')]
    pub(crate) case: Vec<String>,
    /// Maximum time of each comparison
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = duration)]
    pub(crate) time: Duration,
    /// Number of comparisons, one after the other
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) times: u32,
    /// Exit with code 8 when the second is worse by more than this, beyond what chance explains
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

    /// What the lab takes of these flags.
    pub(crate) fn options(&self) -> ComparisonOptions {
        ComparisonOptions {
            cases: self.case.clone(),
            time: self.time,
            times: self.times,
            limit: self.fail_above,
            record: self.record_path(),
            bench: self.options_of_a_comparison(),
        }
    }

    /// A comparison goes by processor time, which holds also where the generator is the limit.
    fn options_of_a_comparison(&self) -> BenchOptions {
        let options = self.bench.options();
        let share = if options.share == ShareChoice::Auto { ShareChoice::Off } else { options.share };
        BenchOptions { share, ..options }
    }
}

impl BenchArgs {
    fn options(&self) -> BenchOptions {
        let cpus = |cpus: &Option<Cpus>| cpus.as_ref().map(|cpus| cpus.0.clone());
        BenchOptions {
            seed: self.seed,
            length: self.seconds,
            rtt: self.rtt,
            by_hand: ByHand {
                target: cpus(&self.target_cpus),
                generator: cpus(&self.cpus),
                origin: cpus(&self.origin_cpus),
            },
            share: self.server_share,
            notice: crate::exit::notice,
        }
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

    /// What the lab takes of these flags.
    pub(crate) fn options(&self) -> SuiteOptions {
        SuiteOptions {
            suite: self.suite.clone(),
            targets: self.operands.iter().chain(&self.targets).chain(&self.target).cloned().collect(),
            quick: self.quick,
            cases: self.cases.clone(),
            record: self.record_path(),
            resume: self.resume,
            rounds: self.rounds,
            profile: self.profile,
            control: !self.no_control,
            bench: self.bench.options(),
        }
    }

    /// Path of the page.
    pub(crate) fn page_path(&self, record: &std::path::Path) -> PathBuf {
        self.output.clone().unwrap_or_else(|| record.with_extension("html"))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::Parser;
    use courser_lab::command::{TargetAddress, line, spec};
    use courser_lab::cores::CoreMap;
    use courser_lab::suite::{self, Suite};
    use courser_load::spec::{Load, LoadSpec};
    use courser_record::lab::Measure;

    use crate::cli::{Cli, Command};

    /// Each case of each suite, with its load on a target at a fixed address.
    fn loads() -> Vec<(String, LoadSpec)> {
        let cores = CoreMap { target: vec![1], generator: vec![0], origin: vec![0] };
        let mut loads = Vec::new();
        for (name, quick) in suite::names().flat_map(|name| [(name, false), (name, true)]) {
            let suite = Suite::find(name, quick).unwrap();
            for case in suite.cases.iter().filter(|case| case.measure != Measure::InProcess) {
                let target = TargetAddress {
                    address: Some(([127, 0, 0, 1], 4433).into()),
                    others: (4434..).take(case.hosts - 1).map(|port| ([127, 0, 0, 1], port).into()).collect(),
                    url: None,
                    pid: Some(100),
                    origin_pid: Some(200),
                    roots: None,
                    origin: None,
                };
                let (load, length) = match case.measure {
                    Measure::Staircase => {
                        let load = Load::Staircase { from: 30.0, to: 140.0, steps: case.steps };
                        (load, case.length * case.steps)
                    }
                    Measure::Rate => (Load::Sessions(case.rate.unwrap_or(100.0)), case.length),
                    _ => (Load::Closed(case.clients), case.length),
                };
                let spec = spec(case, &target, load, length, &cores, 7);
                let variant = if quick { "quick" } else { "full" };
                let spec = spec.map_err(|why| why.to_string()).unwrap();
                loads.push((format!("{name} {variant} {}", case.id), spec));
            }
        }
        loads
    }

    #[test]
    fn the_commands_of_all_suites_are_as_stored() {
        let commands = loads().iter().fold(String::new(), |mut text, (name, spec)| {
            let _ = writeln!(text, "{name}: {}", line(spec));
            text
        });
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots/commands.txt");
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(path, &commands).unwrap();
        }
        let stored = std::fs::read_to_string(path).unwrap();
        let differing = commands.lines().zip(stored.lines()).find(|(now, then)| now != then);
        assert_eq!((differing, commands.lines().count()), (None, stored.lines().count()));
    }

    /// Each is listed with the command that makes it, and the program of today takes that.
    #[test]
    fn the_commands_of_all_records_are_listed_and_still_run() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
        let page = std::fs::read_to_string(folder.join("README.md")).unwrap();
        let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        for file in files.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let lab = courser_lab::record_file::read_lab(&file).map_err(|why| why.to_string()).unwrap();
            let command = lab.envelope.command_line.join(" ");
            assert!(page.contains(&format!("`{command}`")), "{}: {command}", file.display());
            match Cli::try_parse_from(&lab.envelope.command_line).unwrap().command {
                Command::Run(args) => {
                    // Commands with a path are typed at the repository's root.
                    let path = folder.parent().unwrap().join(&args.suite);
                    let name = if path.is_file() { path.display().to_string() } else { args.suite.clone() };
                    let suite = Suite::find(&name, args.quick).map_err(|why| why.to_string()).unwrap();
                    let is_there = |name: &String| suite.cases.iter().any(|case| case.id.contains(name));
                    assert!(args.cases.iter().all(is_there), "{command}");
                    let targets = courser_lab::selector::parse_all(&args.options().targets);
                    assert!(targets.is_ok(), "{command}");
                }
                Command::Compare(_) => {}
                other => panic!("{command}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_command_means_the_load_that_it_stands_for() {
        for (name, spec) in loads() {
            let words = std::iter::once("courser-bench".to_owned()).chain(spec.to_args());
            let read = match Cli::try_parse_from(words).unwrap().command {
                Command::Load(args) => args.spec(),
                Command::Handshake(args) => args.spec(),
                Command::Ramp(args) => args.spec(),
                other => panic!("{name}: {other:?}"),
            };
            assert_eq!(read, spec, "{name}");
        }
    }
}
