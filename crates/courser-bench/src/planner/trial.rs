//! Makes the runs of a design: one target for each key, at two utilisations, its processor time under
//! observation.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use courser_lab::cores::{ByHand, CoreMap};
use courser_lab::files;
use courser_lab::measure::Interrupt;
use courser_lab::scratch::Scratch;
use courser_lab::target::{self, Definition, KeyKind, Preset, Running, TargetSpec, Tls};
use courser_lab::to_record;
use courser_lab::{block, command};
use courser_load::spec::{Load, LoadSpec, RequestSpec, ServerSpec, Work};
use courser_machine::allowed_cpus;
use courser_record::times::RESPONSE_INTENDED;
use courser_record::{Run, ServerUsage};
use courser_stats::Histogram;
use fastrand::Rng;

use super::design::{Point, points};
use super::model::{FORMAT, Mix, Mixed, Model, Response, VERSION, float};
use crate::exit::Failure;

/// Connections at a time while a point's full load is looked for.
const CLIENTS: u64 = 16;
/// How long that takes, at most.
const FEELER: Duration = Duration::from_millis(700);
/// How long caches may warm up, and the load may climb, at most.
const WARM_UP: Duration = Duration::from_millis(300);
/// The part of the target's core that is then asked for at most.
const LOAD: f64 = 0.75;
/// Parts of that which are measured: an event costs more where few come together, and by how much is to be found.
const LEVELS: [f64; 2] = [0.4, 1.0];
/// Sessions of a run, at least.
const LEAST_SESSIONS: f64 = 2.0;
/// How many times as long a run is when nothing was served in the one before.
const LONGER: [u32; 3] = [1, 4, 16];
/// What a run takes beside its phases, about.
const AROUND: Duration = Duration::from_millis(250);
/// Of what the generator reached no more than this is offered: beyond it the schedule is late.
const OFFERED: f64 = 0.75;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// What is to be measured.
pub(crate) struct Trial<'a> {
    pub(crate) target: &'a Definition,
    pub(crate) keys: Vec<KeyKind>,
    pub(crate) seed: u64,
    /// Length of a run.
    pub(crate) time: Duration,
    /// How often each run is made: far apart, so that what the machine does for a while is not one run's alone.
    pub(crate) rounds: usize,
    pub(crate) quiet: bool,
}

/// Targets that run, and how they are reached.
struct RunningTargets {
    cores: CoreMap,
    origin_pid: u32,
    targets: Vec<(KeyKind, Running)>,
    interrupt: Interrupt,
    seed: u64,
}

impl Trial<'_> {
    /// Makes all runs, a few seconds each. None when Ctrl-C came: some of the costs are no model.
    ///
    /// # Errors
    /// When a target does not start or cannot be measured.
    pub(crate) fn measure(&self) -> Result<Option<Model>, Failure> {
        let interrupt = crate::exit::interrupt()?;
        let cores = CoreMap::new(&allowed_cpus(), 1, &ByHand::default()).map_err(Failure::System)?;
        // Dropped last: what runs writes there.
        let scratch = Scratch::new()?;
        let folder = |name: &str| scratch.path().join(name);
        let (backends, origin) =
            target::origin(1, &cores.origin, &folder("origin")).map_err(Failure::System)?;
        let start = |key: &KeyKind| {
            let spec = self.spec(*key, &cores, &backends, folder(&key.to_string()), &folder("keys"))?;
            let running = target::start(self.target, &spec);
            Ok((*key, running.map_err(|why| Failure::System(why.to_string()))?))
        };
        let targets = self.keys.iter().map(start).collect::<Result<Vec<_>, Failure>>()?;
        let mut targets =
            RunningTargets { cores, origin_pid: origin.pid, targets, interrupt, seed: self.seed };
        let points = points(&self.keys, self.seed);
        let mut rates: Vec<Option<f64>> = vec![None; points.len()];
        let mut order: Vec<(usize, f64)> =
            LEVELS.iter().flat_map(|level| (0..points.len()).map(|index| (index, *level))).collect();
        let mut rng = Rng::with_seed(self.seed);
        let mut runs = Vec::new();
        for _ in 0..self.rounds {
            // The utilisations too: one after the other, they would differ by what the machine does meanwhile.
            rng.shuffle(&mut order);
            for (index, level) in &order {
                let number = runs.len() + 1;
                let all = order.len() * self.rounds;
                let feelers = rates.iter().filter(|rate| rate.is_none()).count();
                let left = self.length(all - runs.len(), feelers).as_secs().max(1);
                self.print(&format!("{number} of {all}, about {left} s left: {}", points[*index]));
                match targets.run(&points[*index], *level, self.time, &mut rates[*index])? {
                    Some(run) => runs.push(run),
                    None => return Ok(None),
                }
            }
        }
        Ok(Some(self.model(&targets, runs)))
    }

    /// How long so many runs take, about, and so many closed loops before them.
    fn length(&self, runs: usize, feelers: usize) -> Duration {
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let warm_up = WARM_UP.min(self.time);
        (self.time + 2 * warm_up + AROUND) * count(runs)
            + (FEELER.min(self.time) + warm_up + AROUND) * count(feelers)
    }

    fn print(&self, line: &str) {
        if !self.quiet {
            notice!("{line}");
        }
    }

    fn spec(
        &self,
        key: KeyKind,
        cores: &CoreMap,
        backends: &[SocketAddr],
        folder: PathBuf,
        keys: &Path,
    ) -> Result<TargetSpec, Failure> {
        let certificate = target::certificate(key, keys).map_err(Failure::System)?;
        Ok(TargetSpec {
            tls: Some(Tls {
                versions: vec!["1.2".into(), "1.3".into()],
                suites: Vec::new(),
                groups: vec!["X25519".into()],
                alpn: Vec::new(),
                certificates: vec![certificate],
                tickets: true,
                session_cache: None,
            }),
            preset: Preset::Tuned,
            workers: 1,
            cpus: cores.target.clone(),
            backends: backends.to_vec(),
            backend_tls: false,
            http: true,
            keep_alive: false,
            backlog: BACKLOG,
            fleet: None,
            folder,
        })
    }

    fn model(&self, targets: &RunningTargets, runs: Vec<Mixed>) -> Model {
        let version = targets.targets.first().map_or("", |(_, running)| &running.version);
        Model {
            format: FORMAT.into(),
            version: VERSION,
            tool: to_record::tool(),
            created: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            machine: to_record::machine(),
            target: format!("{} {version}", self.target.name).trim().to_owned(),
            seed: self.seed,
            cores_note: targets.cores.note(),
            runs,
        }
    }
}

impl RunningTargets {
    /// A short closed loop says what a connection costs, the first time; then a part (`level`) of the rate that follows.
    fn run(
        &mut self,
        point: &Point,
        level: f64,
        time: Duration,
        known: &mut Option<f64>,
    ) -> Result<Option<Mixed>, Failure> {
        let warm_up = WARM_UP.min(time);
        if known.is_none() {
            let mut closed = self.spec(point, Load::Closed(CLIENTS), FEELER.min(time))?;
            (closed.phases.warm_up, closed.phases.ramp) = (warm_up, Duration::ZERO);
            let Some(full) = self.load(&closed)? else { return Ok(None) };
            *known = Some(rate(&full, point));
        }
        let asked = level * known.unwrap_or(1.0);
        for times in LONGER {
            let time = time * times;
            let rate = asked.max(LEAST_SESSIONS / time.as_secs_f64().max(0.001));
            let mut open = self.spec(point, Load::Sessions(rate), time)?;
            (open.phases.warm_up, open.phases.ramp) = (warm_up, warm_up);
            let Some(run) = self.load(&open)? else { return Ok(None) };
            let server = run.server.as_ref().ok_or_else(unobserved)?;
            if server.user_us + server.system_us > 0 && run.totals.connections_served() > 0 {
                return Ok(Some(mixed(point, &run, server)));
            }
        }
        Err(Failure::System(format!("{point}: nothing came of it; give it a longer --time")))
    }

    fn load(&mut self, spec: &LoadSpec) -> Result<Option<Run>, Failure> {
        let plan = spec.plan(files::READ)?;
        let measured = block::measure_runs(spec, &plan, "", &self.interrupt);
        // A target that died says more than the connections that it cut.
        let ended = self.targets.iter_mut().find_map(|(_, running)| running.ended());
        if let Some(why) = ended {
            return Err(Failure::System(format!("the target ended before its load did: {why}")));
        }
        let (runs, cut) = measured?;
        if cut {
            return Ok(None);
        }
        runs.into_iter().next().map(Some).ok_or_else(|| Failure::System("a run without a window".into()))
    }

    fn spec(&self, point: &Point, load: Load, time: Duration) -> Result<LoadSpec, Failure> {
        let found = self.targets.iter().find(|(key, _)| *key == point.key);
        let (_, running) = found.ok_or_else(|| Failure::System(format!("no target for {}", point.key)))?;
        let url = format!("https://{}/?s={}", running.address, point.object);
        let requests = RequestSpec {
            count: point.requests,
            expect_length: Some(point.object),
            ..RequestSpec::default()
        };
        let mut spec = LoadSpec::new(url.parse().map_err(Failure::System)?, load, Work::Requests(requests));
        spec.reuse = point.reuse;
        spec.tls.versions = vec![point.tls.flag().to_owned()];
        spec.tls.server_names = vec![command::SERVER_NAME.to_owned()];
        spec.tls.groups = vec!["X25519".into(), "P-256".into()];
        spec.phases.steady = time;
        command::limit(&mut spec);
        spec.cpus.clone_from(&self.cores.generator);
        spec.seed = self.seed;
        spec.server = ServerSpec {
            pid: Some(running.pid),
            cgroup: None,
            cpus: Some(self.cores.target.clone()),
            origin_pid: Some(self.origin_pid),
        };
        Ok(spec)
    }
}

fn mixed(point: &Point, run: &Run, server: &ServerUsage) -> Mixed {
    Mixed {
        asked: point.to_string(),
        unseen: point.unseen,
        mix: Mix::of(point.key, point.tls, point.object, &run.totals),
        window_us: run.totals.window_us,
        user_us: server.user_us,
        system_us: server.system_us,
        failed: run.totals.connections.failed,
        response: run.totals.times.get(RESPONSE_INTENDED).and_then(response),
    }
}

fn response(times: &Histogram) -> Option<Response> {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let p99 = times.quantile(0.99).filter(|_| times.supports(0.99));
    Some(Response { count: times.count(), mean_us: us(times.mean()?), p99_us: p99.map(us) })
}

/// Sessions a second that take [`LOAD`] of the target's core, as far as the generator can make them.
fn rate(full: &Run, point: &Point) -> f64 {
    let connections = float(full.totals.connections_served().max(1));
    let reached = connections * 1e6 / float(full.totals.window_us.max(1));
    let spent = full.server.as_ref().map(|server| float(server.user_us + server.system_us) / connections);
    let possible = spent.filter(|us| *us > 0.0).map_or(reached, |us| 1e6 / us);
    ((LOAD * possible).min(OFFERED * reached) / f64::from(point.reuse)).max(1.0)
}

fn unobserved() -> Failure {
    Failure::System("the target's processor time cannot be read: a plan needs /proc of its processes".into())
}

#[cfg(test)]
mod tests {
    use courser_record::{Completions, RunTimes, Totals, Verdict};

    use super::super::model::Version;
    use super::*;

    /// A server that served 90 a second in half of its core's time, and the rest of 800 after the window.
    #[test]
    fn the_rate_of_a_point_follows_from_what_was_completed_in_the_window() {
        let completed = Completions { transactions: 180, connections: 180, full: 90, resumed: 90 };
        let mut totals = Totals { window_us: 2_000_000, completed: Some(completed), ..Totals::default() };
        (totals.connections.attempted, totals.connections.succeeded) = (800, 800);
        let run = Run {
            label: String::new(),
            offered_rate: None,
            window: RunTimes::default(),
            totals,
            seconds: Vec::new(),
            server: Some(ServerUsage { user_us: 600_000, system_us: 400_000, ..ServerUsage::default() }),
            generators: Vec::new(),
            wire: None,
            findings: Vec::new(),
            verdict: Verdict::valid(),
        };
        let (key, tls) = (KeyKind::P256, Version::Tls13);
        let point = Point { key, tls, reuse: 2, requests: 1, object: 1024, unseen: false };
        // 180 a second would take the core, three quarters of the 90 that were reached may be offered.
        assert!((rate(&run, &point) - 0.75 * 90.0 / 2.0).abs() < 1e-9);
    }
}
