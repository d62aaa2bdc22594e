//! Two targets in one case: blocks that take turns until a difference is known or the time is up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use courser_machine::allowed_cpus;
use courser_record::lab::{CellState, WindowResult};
use courser_record::{Finding, Severity};
use courser_stats::compare::{Arm, Comparison, Gate, GateVerdict, Plan, Verdict, order};

use crate::cores::CoreMap;
use crate::error::Error;
use crate::measure::Interrupt;
use crate::progress::{ComparisonProgress, Ended};
use crate::run;
use crate::start::{Bench, BenchOptions, PreparedTarget};
use crate::state::{About, State};
use crate::suite::{CaseSpec, Suite};

/// What a block takes beside its own length: warm-up, drain, reading.
const AROUND: Duration = Duration::from_millis(600);

/// Fewest ABBA sequences of a comparison that can find anything.
const FEWEST_SEQUENCES: u32 = 6;

/// The suite whose cases `compare` knows by their names alone.
const CASES: &str = "compare";

/// What is compared, and where the record goes.
pub struct ComparisonOptions {
    /// Cases of the suite `compare`, or SUITE/CASE, all of one suite.
    pub cases: Vec<String>,
    /// Maximum time of a comparison.
    pub time: Duration,
    /// Number of comparisons of each case.
    pub times: u32,
    /// By how much the second may be worse, as a share: whether it is by more is known before a comparison ends, if the time
    /// suffices. All comparisons together call one that is not beyond it so in at most 5 % of runs.
    pub limit: Option<f64>,
    /// File of the record.
    pub record: PathBuf,
    /// How the case is run.
    pub bench: BenchOptions,
}

/// Compares two targets as often as requested, and writes the record after every block.
///
/// # Errors
/// When what was asked for cannot be had, or the record cannot be written.
pub fn compare(
    args: &ComparisonOptions,
    names: [&str; 2],
    interrupt: &Interrupt,
    progress: &mut impl ComparisonProgress,
) -> Result<Compared, Error> {
    let suite = suite(args)?;
    let mut bench = Bench::new(&args.bench, &names, &suite.targets, interrupt.clone())?;
    let [a, b] = [0, 1].map(|index: usize| bench.chosen[index].name.clone());
    let about = About {
        suite: &suite,
        seed: args.bench.seed,
        quick: false,
        rtt: args.bench.rtt,
        notice: args.bench.notice,
    };
    let mut state = State::new(args.record.clone(), &about)?;
    bench.prepare_share(&suite.cases, &mut state)?;
    bench.describe(&mut state);
    let mut limits = Vec::new();
    let mut failed = false;
    for spec in &suite.cases {
        let map = CoreMap::new(&allowed_cpus(), spec.cores, bench.by_hand()).map_err(Error::input)?;
        let mut targets = bench.prepare(spec, &map, &mut state);
        let Ok([first, second]) = <&mut [PreparedTarget; 2]>::try_from(targets.as_mut_slice()) else {
            let why = state
                .lab
                .cells
                .iter()
                .find_map(|cell| cell.reason.as_ref().map(|why| format!("{}: {why}", cell.target)));
            state.finish(interrupt.came());
            return Err(Error::input(why.unwrap_or_else(|| "two targets are needed".into())));
        };
        let mut pair = PairRun { spec, bench: &bench, targets: [first, second], round: 0 };
        limits.extend(pair.all(args, [&a, &b], suite.cases.len(), &mut state, progress));
        failed |= pair.has_failed(&state);
        pair.done(&mut state);
        if failed || interrupt.came() {
            break;
        }
    }
    let limit =
        args.limit.map(|_| limits.iter().fold(LimitVerdict::Within, |worst, verdict| worst.max(*verdict)));
    state.finish(interrupt.came());
    let ended = if interrupt.came() {
        Ended::Cut
    } else if failed {
        Ended::Failed
    } else {
        Ended::Complete
    };
    Ok(Compared { state, ended, limit })
}

/// What comparisons came to.
pub struct Compared {
    /// The record.
    pub state: State,
    /// How far they came.
    pub ended: Ended,
    /// What is known of the limit, of the worst of them; none without a limit.
    pub limit: Option<LimitVerdict>,
}

/// Whether the second target is worse by more than was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitVerdict {
    /// It is not.
    Within,
    /// The blocks do not say.
    Unknown,
    /// It is.
    Exceeded,
}

/// The suite with the cases that are compared.
fn suite(args: &ComparisonOptions) -> Result<Suite, Error> {
    let words = args.cases.iter().map(|case| case.split_once('/').unwrap_or((CASES, case)));
    let words: Vec<(&str, &str)> = words.collect();
    let name = words.first().map_or(CASES, |(suite, _)| suite);
    if let Some((other, _)) = words.iter().find(|(suite, _)| *suite != name) {
        return Err(Error::input(format!("cases of one suite at a time, not of {name} and {other}")));
    }
    let mut suite = Suite::find(name, false)?;
    for (_, case) in &words {
        if !suite.cases.iter().any(|known| known.id == *case) {
            let known: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
            let known = known.join(", ");
            let why =
                format!("{name} has no case {case:?}; it has {known}; one of another suite is SUITE/CASE");
            return Err(Error::input(why));
        }
    }
    suite.cases.retain(|known| words.iter().any(|(_, case)| known.id == *case));
    for case in &mut suite.cases {
        case.length = args.bench.length.unwrap_or(case.length);
    }
    Ok(suite)
}

/// The two, while they run.
struct PairRun<'a, 'b> {
    spec: &'a CaseSpec,
    bench: &'a Bench<'b>,
    targets: [&'a mut PreparedTarget; 2],
    /// Blocks so far over two: the pairs of a quad are rounds of the record.
    round: u32,
}

impl PairRun<'_, '_> {
    /// All comparisons of a case, each with its finding; gives what is known of the limit in each.
    fn all(
        &mut self,
        args: &ComparisonOptions,
        names: [&String; 2],
        cases: usize,
        state: &mut State,
        progress: &mut impl ComparisonProgress,
    ) -> Vec<LimitVerdict> {
        let [a, b] = names;
        let sequences = sequences(args.time, self.spec.length);
        let limits = cases * usize::try_from(args.times).unwrap_or(usize::MAX);
        let gate = args.limit.map(|limit| Gate::new(limit, sequences, limits));
        let plan = Plan::new(sequences);
        let case = if cases > 1 { format!("{}: ", self.spec.id) } else { String::new() };
        let (mut different, mut verdicts) = (0, Vec::new());
        for number in 0..args.times {
            let seed = args.bench.seed.wrapping_add(u64::from(number));
            let mut comparison = Comparison::new(plan.clone());
            let mut gate = gate.clone();
            self.once(args.time, seed, &mut comparison, &mut gate, state, progress);
            let verdict = comparison.verdict();
            let mut text = format!("{case}{}", text(&verdict, names));
            if let Some((gate, limit)) = gate.zip(args.limit) {
                let (known, said) = limit_text(gate.verdict(), limit);
                verdicts.push(known);
                text = format!("{text}; {said}");
            }
            // A single verdict is printed in the end.
            if args.times > 1 {
                (args.bench.notice)(&format!("{} of {}: {text}", number + 1, args.times));
            }
            different += u32::from(matches!(verdict, Verdict::Different { .. }));
            state.lab.findings.push(Finding::new("comparison", Severity::Note, text, ""));
            if self.bench.interrupt().came() || self.has_failed(state) {
                break;
            }
        }
        if args.times > 1 {
            let text =
                format!("{case}of {} comparisons, {different} called {a} and {b} different", args.times);
            (args.bench.notice)(&text);
            state.lab.findings.push(Finding::new("comparisons", Severity::Note, text, ""));
        }
        verdicts
    }

    /// Takes blocks until what is asked is known, or the time is up.
    fn once(
        &mut self,
        time: Duration,
        seed: u64,
        comparison: &mut Comparison,
        gate: &mut Option<Gate>,
        state: &mut State,
        progress: &mut impl ComparisonProgress,
    ) {
        let began = Instant::now();
        progress.begin(time);
        for (block, target) in order(seed).enumerate() {
            let known = gate.as_ref().map_or_else(|| comparison.is_finished(), Gate::is_finished);
            let over = began.elapsed() >= time && block % 4 == 0;
            if known || over || self.bench.interrupt().came() || self.has_failed(state) {
                break;
            }
            let index = usize::from(target == Arm::B);
            progress.at(began.elapsed(), &self.targets[index].name);
            let value = self.block(index, state);
            comparison.push(target, value);
            if let Some(gate) = gate {
                gate.push(target, value);
            }
            self.round += u32::from(block % 2 == 1);
        }
        progress.end();
    }

    /// Processor time per transaction, of one that is not ours transactions a second; NaN where neither is known.
    fn block(&mut self, index: usize, state: &mut State) -> f64 {
        let targets = &mut *self.targets[index];
        let name = targets.name.clone();
        let before = state.cell(&self.spec.id, &name).blocks.len();
        run::block(self.spec, targets, self.bench, state, self.round);
        let cell = state.cell(&self.spec.id, &name);
        let window = cell.blocks.get(before).and_then(|block| block.windows.first());
        window.and_then(value).unwrap_or(f64::NAN)
    }

    fn has_failed(&self, state: &State) -> bool {
        state.lab.cells.iter().any(|cell| cell.state == CellState::Failed)
    }

    fn done(&self, state: &mut State) {
        for cell in &mut state.lab.cells {
            if cell.state == CellState::Pending && !cell.blocks.is_empty() {
                cell.state = CellState::Done;
            }
        }
    }
}

fn value(window: &WindowResult) -> Option<f64> {
    let cost = window.user_us.zip(window.system_us).map(|(user, system)| (user + system) as f64);
    let served = window.served().transactions;
    match cost {
        Some(cost) if served > 0 => Some(cost / served as f64),
        Some(_) => None,
        // Of one whose processes are elsewhere, time for each: less is better here too.
        None if window.inconclusive.is_none() && served > 0 => Some(window.window_us as f64 / served as f64),
        None => None,
    }
}

/// As many sequences as there is time for.
fn sequences(time: Duration, block: Duration) -> usize {
    let sequence = (block + AROUND) * 4;
    #[expect(clippy::cast_possible_truncation, reason = "a small number, and not negative")]
    let fit = (time.as_secs_f64() / sequence.as_secs_f64()) as u32;
    usize::try_from(fit.max(FEWEST_SEQUENCES)).unwrap_or(Plan::MOST).min(Plan::MOST)
}

/// A verdict in words.
fn text(verdict: &Verdict, [a, b]: [&String; 2]) -> String {
    match verdict {
        Verdict::Different { ratio, interval, min_detectable } => format!(
            "{b} takes {ratio:.3} ({:.3} to {:.3}) times the time of {a} per transaction; the minimum detectable \
             difference was {:.1} %",
            interval.low,
            interval.high,
            min_detectable * 100.0
        ),
        Verdict::NoDifferenceSeen { interval, min_detectable } => format!(
            "no difference seen between {a} and {b} ({:.3} to {:.3} times); the minimum detectable one was {:.1} %",
            interval.low,
            interval.high,
            min_detectable * 100.0
        ),
        Verdict::TooFew { sequences, needed } => {
            format!("no verdict yet: {sequences} sequences of four blocks, and {needed} are needed (--time)")
        }
    }
}

/// What is known of a limit, and in words.
fn limit_text(verdict: GateVerdict, limit: f64) -> (LimitVerdict, String) {
    let percent = |share: f64| format!("{} %", (share * 1000.0).round() / 10.0);
    let limit = percent(limit);
    match verdict {
        GateVerdict::Beyond => (LimitVerdict::Exceeded, format!("worse by more than {limit}")),
        GateVerdict::Within => (LimitVerdict::Within, format!("not worse by more than {limit}")),
        GateVerdict::Unknown { detectable } => {
            let least = detectable.map(|least| format!(": that takes {} at this noise", percent(least)));
            let text = format!("not shown to be worse by more than {limit}{}", least.unwrap_or_default());
            (LimitVerdict::Unknown, text)
        }
    }
}
