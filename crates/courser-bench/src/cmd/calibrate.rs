//! `calibrate`: what this generator can do on this machine, against a server of our own in another process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use courser_lab::files;
use courser_lab::findings::share;
use courser_lab::measure::{self, Interrupt, Runner};
use courser_load::spec::{Load, LoadSpec, Work};
use courser_load::tls_options::EngineChoice;
use courser_load::url::Url;
use courser_machine::usage::{Held, UsageSample};
use courser_record::Run;
use serde_json::{Value, json};

use crate::cli::CalibrateArgs;
use crate::deliver::print;
use crate::exit::{Ended, Failure};

/// Connections at a time in a closed loop: enough that the server always has one to work on.
const CLIENTS: u64 = 8;

/// Connections a second for the schedule error: a light load, so that the generator's core is idle between them.
const LIGHT: f64 = 500.0;

/// Idle connections that are held.
const HELD: u64 = 4000;

/// How long they may take to open, at least.
const OPENING: Duration = Duration::from_secs(6);

/// Warm-up and ramp of a figure.
const BEFORE: Duration = Duration::from_secs(2);

/// What is measured: its name, version, group, engine, connections per session.
const CASES: [(&str, &str, Option<&str>, EngineChoice, u32); 5] = [
    ("TLS 1.3 full, P-256, lean", "1.3", Some("P-256"), EngineChoice::Lean, 1),
    ("TLS 1.3 full, X25519, lean", "1.3", Some("X25519"), EngineChoice::Lean, 1),
    ("TLS 1.3 full, X25519, real", "1.3", Some("X25519"), EngineChoice::Real, 1),
    ("TLS 1.2 resumed by ticket, lean", "1.2", None, EngineChoice::Lean, 0),
    ("TLS 1.3 resumed, P-256, lean", "1.3", Some("P-256"), EngineChoice::Lean, 0),
];

pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<Ended, Failure> {
    let bench = Bench::start(args)?;
    let steps = CASES.len() + 2;
    let begin = |number: usize, name: &str| {
        let left = time_left(args.time, number, steps).as_secs();
        notice!("{number}/{steps}, about {left} s left: {name}");
    };
    // First, while the process holds nothing from other runs.
    begin(1, "memory");
    let memory = bench.memory()?;
    let mut rows = Vec::new();
    for (number, (name, version, group, engine, reuse)) in CASES.into_iter().enumerate() {
        begin(number + 2, name);
        let mut spec = bench.spec(Load::Closed(CLIENTS), Work::Handshake);
        spec.tls.versions = vec![version.to_owned()];
        spec.tls.groups = group.map(str::to_owned).into_iter().collect();
        (spec.tls.engine, spec.reuse) = (engine, reuse);
        rows.push(bench.handshakes(name, &spec)?);
    }
    begin(steps, "schedule");
    let schedule = bench.schedule()?;
    if args.json {
        print(&format!("{:#}\n", document(&rows, &schedule, &memory)));
    } else {
        print(&table(&bench, &rows, &schedule, memory.as_ref()));
    }
    Ok(if bench.interrupt.came() { Ended::Cut } else { Ended::Well })
}

/// About how long it takes from a step on.
fn time_left(time: Duration, number: usize, steps: usize) -> Duration {
    let each = time + BEFORE;
    let memory = if number == 1 { 2 * time.max(OPENING) } else { Duration::ZERO };
    memory + each * u32::try_from(steps - number.max(2) + 1).unwrap_or(u32::MAX)
}

/// The server, and where everybody runs.
struct Bench {
    child: Child,
    url: Url,
    time: Duration,
    /// CPUs of the generator and of the server, where there are two.
    cpus: Option<(usize, usize)>,
    interrupt: Interrupt,
}

/// Handshakes of one kind.
struct Row {
    name: String,
    /// Processor time of the generator's thread by handshake, microseconds.
    generator_us: f64,
    /// Processor time of the server by handshake, microseconds.
    server_us: f64,
    handshakes: u64,
    busy: f64,
}

impl Row {
    /// What a core that does nothing else could make.
    fn per_core(&self) -> f64 {
        1e6 / self.generator_us
    }
}

/// How late connections started under a light load.
struct Schedule {
    p50: Option<Duration>,
    p99: Option<Duration>,
    count: u64,
}

/// What the generator holds for idle connections.
struct Memory {
    connections: u64,
    bytes_each: f64,
}

impl Drop for Bench {
    fn drop(&mut self) {
        // It ends with its standard input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Bench {
    fn start(args: &CalibrateArgs) -> Result<Self, Failure> {
        let cpus = courser_machine::allowed_cpus();
        let cpus = (cpus.len() > 1).then(|| (cpus[0], cpus[1]));
        let program = std::env::current_exe().map_err(|why| Failure::system("finding this program", why))?;
        let mut command = Command::new(program);
        command.arg("respond").stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some((_, server)) = cpus {
            command.args(["--cpu", &server.to_string()]);
        }
        let mut child = command.spawn().map_err(|why| Failure::system("starting the server", why))?;
        let mut address = String::new();
        let output = child.stdout.take().ok_or_else(|| Failure::System("the server has no output".into()))?;
        BufReader::new(output).read_line(&mut address).map_err(|why| Failure::system("the server", why))?;
        let url = address.trim().parse().map_err(Failure::System)?;
        Ok(Self { child, url, time: args.time, cpus, interrupt: crate::exit::interrupt()? })
    }

    /// A load on the server for the time of a figure.
    fn spec(&self, load: Load, work: Work) -> LoadSpec {
        let mut spec = LoadSpec::new(self.url.clone(), load, work);
        spec.phases.steady = self.time;
        spec.cpus = self.cpus.map(|(generator, _)| generator).into_iter().collect();
        spec.server.pid = Some(self.child.id());
        spec
    }

    fn run(&self, name: &str, spec: &LoadSpec) -> Result<(measure::Outcome, Vec<Run>), Failure> {
        let plan = spec.plan(files::READ)?;
        let mut runner = Runner::new(spec, self.interrupt.clone(), ())?;
        let (outcome, runs) = runner.run(name, &plan)?;
        Ok((outcome, runs))
    }

    fn handshakes(&self, name: &str, spec: &LoadSpec) -> Result<Row, Failure> {
        let (outcome, mut runs) = self.run(name, spec)?;
        let run = runs.pop().ok_or_else(|| Failure::System("nothing was measured".into()))?;
        let window = Duration::from_micros(run.totals.window_us);
        let handshakes = run.totals.handshakes();
        let busy = run.generators[0].threads.first().and_then(|thread| thread.busy).unwrap_or(0.0);
        let [before, after] =
            outcome.windows[0].samples.as_ref().ok_or_else(|| Failure::System("cut".into()))?;
        let server = before.server.as_ref().zip(after.server.as_ref());
        let server = server.map(|(first, last)| last.since(first)).map(|usage| usage.user + usage.system);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / share(handshakes, 1).max(1.0);
        Ok(Row {
            name: name.to_owned(),
            generator_us: each(window.mul_f64(busy)),
            server_us: server.map_or(f64::NAN, each),
            handshakes,
            busy,
        })
    }

    fn schedule(&self) -> Result<Schedule, Failure> {
        let (outcome, _) = self.run("schedule", &self.spec(Load::Connections(LIGHT), Work::Handshake))?;
        let lag = &outcome.windows[0].tally.lag;
        let at = |fraction| lag.quantile(fraction).filter(|_| lag.supports(fraction));
        Ok(Schedule { p50: at(0.5), p99: at(0.99), count: lag.count() })
    }

    /// The difference between many and few: what the process holds for itself is in both.
    fn memory(&self) -> Result<Option<Memory>, Failure> {
        let (few, many) = (self.held(HELD / 10)?, self.held(HELD)?);
        Ok(few.zip(many).map(|((few, less), (many, more))| {
            let connections = many.saturating_sub(few);
            Memory { connections, bytes_each: share(more.saturating_sub(less), connections) }
        }))
    }

    /// How many connections were held, and the generator's memory with them.
    fn held(&self, clients: u64) -> Result<Option<(u64, u64)>, Failure> {
        let mut spec = self.spec(Load::Closed(clients), Work::Hold(Duration::ZERO));
        spec.phases.steady = self.time.max(OPENING);
        (spec.phases.warm_up, spec.phases.ramp) = Default::default();
        let (outcome, _) = self.run("memory", &spec)?;
        let counted = &outcome.windows[0];
        let connections = counted.tally.succeeded.saturating_sub(counted.tally.failed());
        let reading = counted.samples.as_ref().map(|[_, after]| after);
        // The server is a child of ours: what is read of us has it in it.
        let bytes = reading.and_then(|reading| {
            let held = |sample: &Option<UsageSample>| sample.as_ref()?.held.map(Held::bytes);
            Some(held(&reading.own)?.saturating_sub(held(&reading.server)?))
        });
        Ok(bytes.filter(|_| connections > 0).map(|bytes| (connections, bytes)))
    }
}

fn table(bench: &Bench, rows: &[Row], schedule: &Schedule, memory: Option<&Memory>) -> String {
    let map = bench.cpus.map_or_else(
        || "generator and server share one CPU: these figures are of both".to_owned(),
        |(generator, server)| format!("generator on CPU {generator}, server on CPU {server}"),
    );
    let mut text = format!("{map}; network included\n\n");
    text += &format!(
        "{:<34} {:>12} {:>12} {:>12} {:>11}\n",
        "handshakes", "generator us", "per core/s", "server us", "count"
    );
    for row in rows {
        let (us, per_core) = (row.generator_us, row.per_core());
        text += &format!(
            "{:<34} {us:>12.1} {per_core:>12.0} {:>12.1} {:>11}\n",
            row.name, row.server_us, row.handshakes
        );
    }
    let time = |time: Option<Duration>| {
        time.map_or("-".into(), |time| format!("{:.0} us", time.as_secs_f64() * 1e6))
    };
    let (p50, p99) = (time(schedule.p50), time(schedule.p99));
    text += &format!("\nschedule error at {LIGHT:.0}/s: p50 {p50}, p99 {p99} of {} starts\n", schedule.count);
    if let Some(memory) = memory {
        let (each, connections) = (memory.bytes_each / 1024.0, memory.connections);
        text += &format!("memory per idle client connection: {each:.1} KiB of {connections}\n");
    }
    text
}

fn document(rows: &[Row], schedule: &Schedule, memory: &Option<Memory>) -> Value {
    let us = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e6);
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "name": row.name, "generator_us": row.generator_us, "per_core_per_second": row.per_core(),
                "server_us": row.server_us, "handshakes": row.handshakes, "generator_busy": row.busy,
            })
        })
        .collect();
    json!({
        "format": "courser-calibration", "version": 1, "handshakes": rows,
        "schedule_error": {"rate": LIGHT, "p50_us": us(schedule.p50), "p99_us": us(schedule.p99), "count": schedule.count},
        "idle_memory": memory.as_ref().map(|memory| json!({"connections": memory.connections, "bytes_each": memory.bytes_each})),
    })
}
