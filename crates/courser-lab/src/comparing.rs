//! Two targets in one case: blocks that take turns until a difference is known or the time is up.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use courser_machine::allowed_cpus;
use courser_record::lab::{CellState, WindowResult};
use courser_record::{Finding, Severity};
use courser_stats::compare::{Arm, Comparison, Plan, Verdict, order};

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
    /// A case of the suite `compare`, or SUITE/CASE.
    pub case: String,
    /// Maximum time of a comparison.
    pub time: Duration,
    /// Number of comparisons.
    pub times: u32,
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
) -> Result<(State, Ended), Error> {
    let suite = suite(args)?;
    let [a, b] = names.map(str::to_owned);
    let b = if a == b { format!("{b}@again") } else { b };
    let mut bench = Bench::new(&args.bench, &[a.clone(), b.clone()], &suite.targets, interrupt.clone())?;
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
    let spec = &suite.cases[0];
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
    let mut different = 0;
    for number in 0..args.times {
        let seed = args.bench.seed.wrapping_add(u64::from(number));
        let verdict = pair.once(args.time, seed, &mut state, progress);
        let text = text(&verdict, [&a, &b]);
        // A single verdict is printed in the end.
        if args.times > 1 {
            (args.bench.notice)(&format!("{} of {}: {text}", number + 1, args.times));
        }
        different += u32::from(matches!(verdict, Verdict::Different { .. }));
        state.lab.findings.push(Finding::new("comparison", Severity::Note, text, ""));
        if interrupt.came() || pair.has_failed(&state) {
            break;
        }
    }
    if args.times > 1 {
        let text = format!("of {} comparisons, {different} called {a} and {b} different", args.times);
        (args.bench.notice)(&text);
        state.lab.findings.push(Finding::new("comparisons", Severity::Note, text, ""));
    }
    let failed = pair.has_failed(&state);
    pair.done(&mut state);
    state.finish(interrupt.came());
    let ended = if interrupt.came() {
        Ended::Cut
    } else if failed {
        Ended::Failed
    } else {
        Ended::Complete
    };
    Ok((state, ended))
}

/// The suite with the one case that is compared.
fn suite(args: &ComparisonOptions) -> Result<Suite, Error> {
    let (name, case) = args.case.split_once('/').unwrap_or((CASES, &args.case));
    let mut suite = Suite::find(name, false)?;
    let known: Vec<String> = suite.cases.iter().map(|case| case.id.clone()).collect();
    suite.cases.retain(|known| known.id == case);
    if suite.cases.is_empty() {
        let why = format!(
            "{name} has no case {case:?}; it has {}; one of another suite is SUITE/CASE",
            known.join(", ")
        );
        return Err(Error::input(why));
    }
    if let Some(length) = args.bench.length {
        suite.cases[0].length = length;
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
    fn once(
        &mut self,
        time: Duration,
        seed: u64,
        state: &mut State,
        progress: &mut impl ComparisonProgress,
    ) -> Verdict {
        let began = Instant::now();
        let mut comparison = Comparison::new(Plan::new(sequences(time, self.spec.length)));
        progress.begin(time);
        for (block, target) in order(seed).enumerate() {
            let over = began.elapsed() >= time && block % 4 == 0;
            if comparison.is_finished() || over || self.bench.interrupt().came() || self.has_failed(state) {
                break;
            }
            let index = usize::from(target == Arm::B);
            progress.at(began.elapsed(), &self.targets[index].name);
            let value = self.block(index, state);
            comparison.push(target, value);
            self.round += u32::from(block % 2 == 1);
        }
        progress.end();
        comparison.verdict()
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
        Verdict::Different { ratio, interval } => format!(
            "{b} takes {ratio:.3} ({:.3} to {:.3}) times the time of {a} per transaction",
            interval.low, interval.high
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
