//! A case as the command that anyone can type: what the lab runs is what `courser-bench load` runs with these arguments.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use courser_load::plan::{Model, Plan, Workload};

use super::cores::{self, CoreMap};
use crate::cli::{Cli, Command, CommonArgs};
use crate::exit::Failure;
use crate::setup::{self, Intent};
use crate::suite::{CaseSpec, Requests, Resume, Transport};
use courser_load::url::Url;

/// The name that clients ask for, and that certificates are for.
pub(crate) const SERVER_NAME: &str = "localhost";

/// A closed loop long enough to have stopped climbing; caches are warm and clients have their sessions.
const WARM_UP: Duration = Duration::from_millis(300);

/// How clients come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Load {
    /// So many at a time.
    Closed(u64),
    /// Sessions a second.
    Sessions(f64),
    /// Sessions a second, climbing.
    Staircase { from: f64, to: f64, steps: u32 },
}

/// Whom a command is for.
#[derive(Clone, Debug)]
pub(crate) struct TargetAddress {
    /// Where clients connect.
    pub(crate) address: Option<SocketAddr>,
    /// The other hosts of its fleet.
    pub(crate) others: Vec<SocketAddr>,
    /// The URL of one that is not ours to start.
    pub(crate) url: Option<String>,
    /// The root of its processes.
    pub(crate) pid: Option<u32>,
    /// The origin's.
    pub(crate) origin_pid: Option<u32>,
}

/// A command, and what it means.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) common: CommonArgs,
    pub(crate) reuse: u32,
}

/// The command of a case. `client`: further arguments, of a kind of client.
pub(crate) fn arguments(
    spec: &CaseSpec,
    whom: &TargetAddress,
    load: &Load,
    length: Duration,
    cores: &CoreMap,
    seed: u64,
    client: &[String],
) -> Vec<String> {
    let asks = spec.object.is_some();
    let mut words = Words(Vec::new());
    words.add(match (asks, load) {
        (_, Load::Staircase { .. }) => "ramp",
        (true, _) => "load",
        (false, _) => "handshake",
    });
    words.add(&url(spec, whom));
    match load {
        Load::Closed(clients) => words.flag("--connections", &clients),
        Load::Sessions(rate) => words.flag("--rate", &format!("{rate:.2}")),
        Load::Staircase { from, to, steps } => {
            words.flag("--from", &format!("{from:.2}"));
            words.flag("--to", &format!("{to:.2}"));
            words.flag("--steps", &steps);
        }
    }
    words.flag("--reuse", &spec.reuse);
    match spec.requests {
        _ if !asks => {}
        Requests::AsManyAsFit => words.add("--keepalive"),
        Requests::Exactly(count) => words.flag("--requests", &count),
    }
    if let Some(object) = spec.object {
        words.flag("--expect-length", &object);
    }
    tls(&mut words, spec);
    words.flag("--duration", &millis(length));
    words.flag("--warm-up", &if matches!(load, Load::Closed(_)) { millis(WARM_UP) } else { "500ms".into() });
    words.flag("--ramp-up", &if matches!(load, Load::Closed(_)) { "0".into() } else { "500ms".to_owned() });
    words.flag("--drain", &"2s");
    words.flag("--timeout", &"4s");
    words.flag("--cpus", &cores::list(&cores.generator));
    if !whom.others.is_empty() {
        let others: Vec<String> = whom.others.iter().map(ToString::to_string).collect();
        words.flag("--also", &others.join(","));
    }
    words.flag("--seed", &seed);
    words.flag("--in-flight", &6000);
    if let Some(pid) = whom.pid {
        words.flag("--server-pid", &pid);
        words.flag("--server-cpus", &cores::list(&cores.target));
    }
    if let Some(pid) = whom.origin_pid {
        words.flag("--origin-pid", &pid);
    }
    words.0.extend_from_slice(client);
    words.0
}

fn tls(words: &mut Words, spec: &CaseSpec) {
    let Transport::Tls(version) = &spec.transport else { return };
    words.flag("--tls", &version);
    words.flag("--sni", &SERVER_NAME);
    if let Some(suite) = &spec.suite {
        words.flag("--suites", &suite);
    }
    if let Some(group) = &spec.exchange {
        words.flag("--groups", &groups(group, &spec.keys));
    }
    if spec.engine != "lean" {
        words.flag("--engine", &spec.engine);
    }
    if spec.resume == Resume::Id {
        words.flag("--resume", &"id");
    }
}

/// The group that is wanted, with the key share; after it those of the certificates' curves, without which an ECDSA
/// certificate cannot be chosen in TLS 1.2 (RFC 8422, section 5.1). The targets take the first alone.
fn groups(wanted: &str, keys: &[String]) -> String {
    let curves = keys.iter().map(String::as_str).filter(|key| key.starts_with("P-") && *key != wanted);
    std::iter::once(wanted).chain(curves).collect::<Vec<_>>().join(",")
}

fn url(spec: &CaseSpec, whom: &TargetAddress) -> String {
    let path = spec.object.map_or(String::new(), |size| format!("/?s={size}"));
    if let Some(url) = &whom.url {
        return format!("{}{path}", url.trim_end_matches('/'));
    }
    let scheme = if spec.transport == Transport::Clear { "http" } else { "https" };
    let address = whom.address.map(|address| address.to_string()).unwrap_or_default();
    format!("{scheme}://{address}{path}")
}

fn millis(time: Duration) -> String {
    format!("{}ms", time.as_millis())
}

/// Words of a command line.
struct Words(Vec<String>);

impl Words {
    fn add(&mut self, word: &str) {
        self.0.push(word.to_owned());
    }

    fn flag(&mut self, name: &str, value: &dyn Display) {
        self.0.extend([name.to_owned(), value.to_string()]);
    }
}

/// Reads a command as the program reads it from a shell.
pub(crate) fn prepare(arguments: &[String]) -> Result<Prepared, Failure> {
    let words = std::iter::once("courser-bench".to_owned()).chain(arguments.iter().cloned());
    let cli = Cli::try_parse_from(words)
        .map_err(|why| Failure::System(format!("a command of ours is wrong: {why}")))?;
    let (url, intent, common): (Url, Intent, CommonArgs) = match cli.command {
        Command::Load(args) => {
            let exchange = setup::exchange(&args.url, &args.request)?;
            let model = match (args.rate, args.connections) {
                (Some(rate), _) => Model::Sessions(setup::steady(rate, &args.common.run)),
                (None, clients) => Model::Closed(clients.unwrap_or(1)),
            };
            (args.url, Intent { model, reuse: args.reuse.reuse, exchange }, args.common)
        }
        Command::Handshake(args) => {
            let intent = Intent {
                model: Model::Closed(args.connections),
                reuse: args.reuse.reuse,
                exchange: Workload::Handshake,
            };
            (args.url, intent, args.common)
        }
        Command::Ramp(args) => {
            let exchange = setup::exchange(&args.url, &args.request)?;
            let offered = setup::staircase(args.from, args.to, args.steps, &args.common.run);
            (
                args.url,
                Intent { model: Model::Sessions(offered), reuse: args.reuse.reuse, exchange },
                args.common,
            )
        }
        _ => return Err(Failure::System("a command of ours is none that loads".into())),
    };
    let reuse = intent.reuse;
    let plan = setup::plan(&url, intent, &common)?;
    Ok(Prepared { plan, common, reuse })
}

/// The command as one would type it.
pub(crate) fn line(arguments: &[String]) -> String {
    let quoted = arguments
        .iter()
        .map(|word| if word.contains(['?', '&', ' ']) { format!("'{word}'") } else { word.clone() });
    format!("courser-bench {}", quoted.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use courser_record::lab::Measure;

    use super::*;
    use crate::suite::{self, Suite};

    #[test]
    fn golden() {
        let cores = CoreMap { target: vec![1], generator: vec![0], origin: vec![0] };
        let mut text = String::new();
        for name in suite::names() {
            for quick in [false, true] {
                for spec in Suite::find(name, quick).map_err(|why| why.told().to_owned()).unwrap().cases {
                    if spec.measure == Measure::InProcess {
                        continue;
                    }
                    let whom = TargetAddress {
                        address: Some(([127, 0, 0, 1], 4433).into()),
                        others: (1..spec.hosts)
                            .map(|host| ([127, 0, 0, 1], 4433 + host as u16).into())
                            .collect(),
                        url: None,
                        pid: Some(100),
                        origin_pid: Some(200),
                    };
                    let load = match spec.measure {
                        Measure::Staircase => Load::Staircase { from: 30.0, to: 140.0, steps: spec.steps },
                        Measure::Rate => Load::Sessions(spec.rate.unwrap_or(100.0)),
                        _ => Load::Closed(spec.clients),
                    };
                    let length = if spec.measure == Measure::Staircase {
                        spec.length * spec.steps
                    } else {
                        spec.length
                    };
                    let arguments = arguments(&spec, &whom, &load, length, &cores, 7, &[]);
                    let variant = if quick { "quick" } else { "full" };
                    let _ = writeln!(text, "{name} {variant} {}: {}", spec.id, line(&arguments));
                }
            }
        }
        std::fs::write("/tmp/lab-golden.txt", text).unwrap();
    }
}
