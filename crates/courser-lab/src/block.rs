//! One turn of a cell: the load, under the eyes of whoever reads processor times beside it.

use std::time::{Duration, Instant, SystemTime};

use courser_load::plan::{Plan, Workload};
use courser_load::spec::{Load, LoadSpec};
use courser_record::Run;
use courser_record::lab::{Block, HostNoise, Measure, WindowResult};

use super::command::{self, TargetAddress};
use super::cores::CoreMap;
use super::overload::{self, Reach, busy};
use super::window::window_result;
use crate::error::Error;
use crate::findings;
use crate::measure::{Interrupt, Runner};
use crate::suite::{self, CaseSpec, ClientKind, Requests};
use crate::to_record;

/// A staircase begins at this part of what a closed loop reached, and ends beyond it: a limit has to be exceeded to be
/// seen.
const STAIRCASE: [f64; 2] = [0.3, 1.4];

/// The step that stands for a staircase, where one has to: below the limit.
const ONE_STEP: f64 = 0.6;

/// How long the closed loop before a staircase lasts.
const FEELER: Duration = Duration::from_millis(1200);

/// The same where the clients that are served are held against it.
const CAPACITY: Duration = Duration::from_secs(3);

/// What a block needs to know.
pub(crate) struct BlockRun<'a> {
    pub(crate) spec: &'a CaseSpec,
    pub(crate) address: &'a TargetAddress,
    pub(crate) cores: &'a CoreMap,
    pub(crate) seed: u64,
    pub(crate) round: u32,
    pub(crate) interrupt: &'a Interrupt,
    /// What a closed loop reached, of an earlier block of this cell; where clients leave, each block finds it out anew.
    pub(crate) reached: Option<Reach>,
    /// The kinds of clients that the target serves, where the case tells them apart.
    pub(crate) clients: &'a [String],
}

/// What came of a turn.
pub(crate) struct BlockResult {
    pub(crate) block: Block,
    /// What a closed loop reached.
    pub(crate) reached: Option<Reach>,
    /// Whether Ctrl-C cut it short: then it does not count.
    pub(crate) cut: bool,
}

impl BlockRun<'_> {
    /// Measures a block.
    ///
    /// # Errors
    /// When the load cannot be made at all.
    pub(crate) fn take(&self) -> Result<BlockResult, Error> {
        let speed = speed(self.cores.target.first().copied());
        let start_unix_us = to_record::unix_us(SystemTime::now());
        let (seen, reached) = match self.spec.measure {
            Measure::Clients => (self.clients()?, None),
            Measure::Staircase => self.staircase()?,
            Measure::Rate if self.spec.capacity.is_some() => self.part_of_capacity()?,
            _ => (self.load(command::load(self.spec), &ClientKind::default())?, None),
        };
        let host_noise = HostNoise { steal: seen.steal, switches: None, speed };
        let block = Block { round: self.round, start_unix_us, windows: seen.windows, host_noise };
        Ok(BlockResult { block, reached, cut: seen.cut })
    }

    /// The same, of a staircase one step.
    ///
    /// # Errors
    /// When the load cannot be made at all.
    pub(crate) fn take_one_step(&self) -> Result<BlockResult, Error> {
        if self.spec.measure != Measure::Staircase {
            return self.take();
        }
        let step = CaseSpec { measure: Measure::Rate, capacity: Some(ONE_STEP), ..self.spec.clone() };
        BlockRun { spec: &step, ..*self }.take()
    }

    /// Whether its load depends on what a closed loop reaches.
    pub(crate) fn needs_reach(&self) -> bool {
        self.spec.measure == Measure::Staircase || self.spec.capacity.is_some()
    }

    /// What a closed loop reaches, sessions a second, unless an earlier block has found it.
    pub(crate) fn reach(&self) -> Result<Reach, Error> {
        if let Some(reached) = self.reached {
            return Ok(reached);
        }
        // Its clients stay; beside a crowd of strangers the capacity is of full handshakes, since those are what it wants.
        let reuse = if self.spec.beside.is_some() { 1 } else { self.spec.reuse };
        let spec = CaseSpec { patience: None, reuse, ..self.spec.clone() };
        let feeler = BlockRun { spec: &spec, ..*self };
        let length = if self.spec.patience.is_some() { CAPACITY } else { FEELER };
        let feeler = feeler.run(Load::Closed(spec.clients), length, &ClientKind::default())?;
        let served: u64 = feeler.windows.iter().map(|window| window.served().connections).sum();
        let rate = served as f64 / length.as_secs_f64();
        let cost = feeler.windows.first().and_then(|window| Some(busy(window)? / served.max(1) as f64));
        Ok(Reach { rate: (rate / f64::from(reuse.max(1))).max(5.0), cost })
    }

    /// A constant rate that is a part of that.
    fn part_of_capacity(&self) -> Result<(Seen, Option<Reach>), Error> {
        let reached = self.reach()?;
        let load = Load::Sessions(reached.rate * self.spec.capacity.unwrap_or(1.0));
        let crowd = self.spec.beside.map(|crowd| self.gather(crowd, load, reached.rate)).transpose()?;
        let seen = self.load(load, &ClientKind::default());
        if let Some(crowd) = crowd {
            crowd.stopper().stop();
            crowd.finish().map_err(|why| Error::system("the crowd", why))?;
        }
        let mut seen = seen?;
        if self.spec.patience.is_some() {
            let add = |window: &mut WindowResult| {
                window.figures.extend(overload::figures(self.spec, window, reached));
            };
            seen.windows.iter_mut().for_each(add);
        }
        Ok((seen, Some(reached)))
    }

    /// Has strangers come beside the load, from when it is steady on: its clients have been there before.
    fn gather(
        &self,
        crowd: suite::Crowd,
        load: Load,
        reached: f64,
    ) -> Result<courser_load::run::Run<()>, Error> {
        let of = command::spec(self.spec, self.address, load, self.spec.length, self.cores, self.seed)?;
        let begins = SystemTime::now() + of.phases.warm_up + of.phases.ramp;
        let spec = command::crowd(crowd, &of, reached, self.spec.length);
        let plan = Plan { origin: None, ..self.address.plan(&spec)? };
        courser_load::run::Run::start(plan, Some(begins), || ())
            .map_err(|why| Error::system("starting a thread", why))
    }

    /// Steps below and above that.
    fn staircase(&self) -> Result<(Seen, Option<Reach>), Error> {
        let reached = self.reach()?;
        let load = Load::Staircase {
            from: reached.rate * STAIRCASE[0],
            to: reached.rate * STAIRCASE[1],
            steps: self.spec.steps,
        };
        let seen = self.run(load, self.spec.length * self.spec.steps, &ClientKind::default())?;
        Ok((seen, Some(reached)))
    }

    /// A window for each kind of client.
    fn clients(&self) -> Result<Seen, Error> {
        let mut all = Seen::default();
        for kind in suite::clients().iter().filter(|kind| self.clients.iter().any(|name| name == kind.name)) {
            let seen = self.load(Load::Closed(self.spec.clients), kind)?;
            all.windows.extend(seen.windows);
            all.cut |= seen.cut;
            all.steal = [all.steal, seen.steal].into_iter().flatten().reduce(f64::max);
        }
        Ok(all)
    }

    fn load(&self, load: Load, clients: &ClientKind) -> Result<Seen, Error> {
        self.run(load, self.spec.length, clients)
    }

    fn run(&self, load: Load, length: Duration, clients: &ClientKind) -> Result<Seen, Error> {
        let mut spec = command::spec(self.spec, self.address, load, length, self.cores, self.seed)?;
        clients.apply(&mut spec);
        let plan = self.address.plan(&spec)?;
        let (runs, cut) = measure_runs(&spec, &plan, clients.name, self.interrupt)?;
        let per_arrival = per_arrival(&plan, self.spec);
        let steal = runs.iter().flat_map(|run| run.generators.iter().flat_map(|generator| &generator.cores));
        let steal = steal.filter_map(|core| core.steal).reduce(f64::max);
        let several = runs.len() > 1;
        let name = |run: &Run| if several { run.label.clone() } else { clients.name.to_owned() };
        let window = |run: &Run| {
            let mut window = window_result(&name(run), run, per_arrival);
            // That nobody was served in time is a result where clients leave.
            if self.spec.patience.is_some() && !findings::is_spoilt(run) {
                window.inconclusive = None;
            }
            window
        };
        let windows = runs.iter().map(window).collect();
        Ok(Seen { windows, cut, steal })
    }
}

/// What loads showed.
#[derive(Default)]
struct Seen {
    windows: Vec<WindowResult>,
    cut: bool,
    steal: Option<f64>,
}

/// Transactions that a session of the schedule makes.
fn per_arrival(plan: &Plan, spec: &CaseSpec) -> f64 {
    let requests = match (&plan.exchange, spec.requests) {
        (Workload::Http { .. }, Requests::Exactly(count)) => count,
        _ => 1,
    };
    f64::from(spec.reuse.max(1)) * f64::from(requests)
}

/// Runs a plan, and judges each of its windows. Whether Ctrl-C cut it short.
pub fn measure_runs(
    spec: &LoadSpec,
    plan: &Plan,
    label: &str,
    interrupt: &Interrupt,
) -> Result<(Vec<Run>, bool), Error> {
    let mut runner = Runner::new(spec, interrupt.clone(), ())?;
    let (outcome, runs) = runner.run(label, plan)?;
    Ok((runs, outcome.cut))
}

/// How fast a processor is just now: rounds of a fixed computation per microsecond, the best of a few.
fn speed(cpu: Option<usize>) -> Option<f64> {
    const ROUNDS: u32 = 200_000;

    let cpu = cpu?;
    let once = move || {
        courser_machine::pin(cpu).ok()?;
        let fastest = (0..5).map(|_| {
            let started = Instant::now();
            let mut state = 1_u64;
            for _ in 0..ROUNDS {
                // Xorshift (Marsaglia, 2003): dependent steps that nothing can skip.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
            }
            std::hint::black_box(state);
            started.elapsed()
        });
        fastest.min()
    };
    let fastest = std::thread::spawn(once).join().ok()??;
    Some(f64::from(ROUNDS) / (fastest.as_secs_f64() * 1e6))
}
