//! A suite on several targets: each case is prepared on all of them, verified, then measured in blocks that take turns.
//!
//! What is measured in a block is in `block.rs`; what is on disk meanwhile in `state.rs`. Nothing here says who
//! is better: a report does, from the record.

use std::path::PathBuf;

use courser_machine::allowed_cpus;
use courser_record::lab::{Cell, CellState, Figure, Measure};

use crate::control;
use crate::cores::CoreMap;
use crate::error::Error;
use crate::libraries;
use crate::measure::Interrupt;
use crate::progress::{Ended, Progress};
use crate::start::{Bench, BenchOptions, PreparedTarget};
use crate::state::{About, State};
use crate::suite::{CaseSpec, Suite};

/// What is run of a suite, and where the record goes.
pub struct SuiteOptions {
    /// A built-in suite, or the path of a file.
    pub suite: String,
    /// Targets; the suite's own if there are none.
    pub targets: Vec<String>,
    /// Whether the quick variant is run.
    pub quick: bool,
    /// Parts of the names of the cases to run; all if there are none.
    pub cases: Vec<String>,
    /// File of the record.
    pub record: PathBuf,
    /// Whether the record there is continued.
    pub resume: bool,
    /// Blocks of each cell; the suite's number without.
    pub rounds: Option<u32>,
    /// Whether targets are profiled in an additional block.
    pub profile: bool,
    /// Whether a block of each target has the client that does all the work.
    pub control: bool,
    /// How each case is run.
    pub bench: BenchOptions,
}

/// Runs a suite to its end, and writes its record after every block.
///
/// # Errors
/// When what was asked for cannot be had, or the record cannot be written.
pub fn run(
    args: &SuiteOptions,
    interrupt: &Interrupt,
    progress: &mut impl Progress,
) -> Result<(State, Ended), Error> {
    let suite = chosen(args)?;
    if args.profile {
        crate::profile::available().map_err(Error::System)?;
    }
    let mut bench = Bench::new(&args.bench, &args.targets, &suite.targets, interrupt.clone())?;
    // The record comes after everything that can be wrong: the next try may have its name.
    let about = About {
        suite: &suite,
        seed: args.bench.seed,
        quick: args.quick,
        rtt: args.bench.rtt,
        notice: args.bench.notice,
    };
    let path = args.record.clone();
    let mut state = if args.resume { State::resume(path, &about)? } else { State::new(path, &about)? };
    bench.prepare_share(&suite.cases, &mut state)?;
    bench.describe(&mut state);
    progress.begin(&suite.cases, bench.count());
    for spec in &suite.cases {
        if interrupt.came() {
            break;
        }
        progress.case(spec);
        if spec.measure == Measure::InProcess {
            libraries::run(args.quick, interrupt, &mut state, progress);
            continue;
        }
        case(spec, args.profile, &mut bench, &mut state, progress);
        state.keep();
        progress.done(spec, &state.lab);
    }
    progress.end();
    state.finish(interrupt.came());
    let ended = if interrupt.came() { Ended::Cut } else { ended(&state.lab.cells) };
    Ok((state, ended))
}

/// The suite's cases, of those the ones that were asked for, and as long as was asked for.
fn chosen(args: &SuiteOptions) -> Result<Suite, Error> {
    let mut suite = Suite::find(&args.suite, args.quick)?;
    if !args.cases.is_empty() {
        for target_spec in &args.cases {
            if !suite.cases.iter().any(|case| case.id.contains(target_spec.as_str())) {
                let known: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
                let why =
                    format!("{} has no case like {target_spec:?}; it has {}", args.suite, known.join(", "));
                return Err(Error::input(why));
            }
        }
        suite
            .cases
            .retain(|case| args.cases.iter().any(|target_spec| case.id.contains(target_spec.as_str())));
    }
    for case in &mut suite.cases {
        case.rounds = args.rounds.unwrap_or(case.rounds);
        case.length = args.bench.length.unwrap_or(case.length);
        case.control = args.control && control::is_due(case, args.quick);
    }
    Ok(suite)
}

/// One case on all targets.
fn case(
    spec: &CaseSpec,
    profile: bool,
    bench: &mut Bench<'_>,
    state: &mut State,
    progress: &mut impl Progress,
) {
    let map = CoreMap::new(&allowed_cpus(), spec.cores, bench.by_hand());
    let mut ready = match map {
        Ok(map) => bench.prepare(spec, &map, state),
        Err(why) => {
            bench.cannot(spec, &why, state);
            return;
        }
    };
    if ready.is_empty() {
        return;
    }
    for round in 0..spec.rounds {
        for index in order(ready.len(), round, bench.seed()) {
            if bench.interrupt().came() {
                return;
            }
            let target = &mut ready[index];
            progress.block(spec, &target.name, round);
            bench.start_again(spec, target, state);
            block(spec, target, bench, state, round);
            if spec.patience.is_some() {
                // What it still does for clients that have left would take the core from the next one.
                target.end();
            }
        }
    }
    if spec.control {
        for target in &mut ready {
            if bench.interrupt().came() {
                return;
            }
            progress.block(spec, &target.name, spec.rounds);
            control::block(spec, target, bench, state);
        }
        control::compare(spec, state);
    }
    for target in &mut ready {
        if profile && !bench.interrupt().came() {
            bench.start_again(spec, target, state);
            bench.profile(target, state);
        }
        let cell = state.cell(&spec.id, &target.name);
        if cell.state == CellState::Pending && whole(cell, spec) {
            // That no client is served in time is a result where clients leave.
            (cell.state, cell.reason) = match all_failed(cell).filter(|_| spec.patience.is_none()) {
                Some(why) => (CellState::Failed, Some(why)),
                None => (CellState::Done, None),
            };
        }
    }
}

fn whole(cell: &Cell, spec: &CaseSpec) -> bool {
    cell.blocks.len() >= usize::try_from(spec.rounds).unwrap_or(usize::MAX)
}

/// One block of one target. A target that is not there any more is told as that; the others go on.
pub(crate) fn block(
    spec: &CaseSpec,
    target: &mut PreparedTarget,
    bench: &Bench<'_>,
    state: &mut State,
    round: u32,
) {
    let cell = state.cell(&spec.id, &target.name);
    if cell.state != CellState::Pending || cell.blocks.iter().any(|block| block.round == round) {
        return;
    }
    let run = target.run(bench, round);
    let before = target.sent();
    let result = run.take();
    let wire = before.zip(target.sent()).and_then(|(before, after)| after.per_session_since(before));
    if let Some(why) = target.ended() {
        (cell.state, cell.reason) = (CellState::Failed, Some(format!("it ended before its load did: {why}")));
    }
    match result {
        Ok(result) if result.cut => {}
        Ok(mut result) => {
            if let Some(window) = result.block.windows.first_mut() {
                window.figures.extend(wire.map(on_the_wire));
            }
            if spec.patience.is_none() {
                target.reached = result.reached.or(target.reached);
            }
            if cell.state == CellState::Pending {
                cell.blocks.push(result.block);
            }
        }
        Err(why) if cell.state == CellState::Pending => {
            (cell.state, cell.reason) = (CellState::Failed, Some(why.to_string()));
        }
        Err(_) => {}
    }
    state.keep();
}

fn on_the_wire(bytes: f64) -> Figure {
    Figure { name: "messages per session".into(), unit: "bytes".into(), value: bytes, low: None, high: None }
}

/// The order of targets in a round: drawn by the seed in even rounds, and the same backwards in odd ones, so that a
/// drift over two rounds hits all alike (A B B A).
fn order(targets: usize, round: u32, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..targets).collect();
    fastrand::Rng::with_seed(seed ^ u64::from(round / 2)).shuffle(&mut order);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// A suite in which a cell failed is told by the exit code; what cannot be done by nature is not. Of several targets the
/// processor times hold where rates are inconclusive; of one alone the rate is the result. Where no target can do any case
/// there is no result.
fn ended(cells: &[Cell]) -> Ended {
    if cells.iter().any(|cell| cell.state == CellState::Failed) {
        return Ended::Failed;
    }
    let is_alone = cells.first().is_some_and(|first| cells.iter().all(|cell| cell.target == first.target));
    let windows = || cells.iter().flat_map(|cell| &cell.blocks).flat_map(|block| &block.windows);
    let is_nothing = !cells.is_empty() && windows().next().is_none();
    if is_nothing || is_alone && windows().all(|window| window.inconclusive.is_some()) {
        Ended::Inconclusive
    } else {
        Ended::Complete
    }
}

/// Why a cell has nothing to show: every transaction of every block failed.
fn all_failed(cell: &Cell) -> Option<String> {
    let windows = || cell.blocks.iter().flat_map(|block| &block.windows);
    let attempted: u64 = windows().map(|window| window.attempted).sum();
    if attempted == 0 || windows().any(|window| window.succeeded > 0) {
        return None;
    }
    let (class, _) = windows().flat_map(|window| &window.failures).max_by_key(|(_, count)| **count)?;
    Some(format!("all of its {attempted} transactions failed, most of them as {class}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use courser_record::lab::{Block, WindowResult};

    use super::*;

    fn cell(target: &str, succeeded: u64, inconclusive: bool) -> Cell {
        let window = WindowResult {
            attempted: 10,
            succeeded,
            failures: BTreeMap::from([("alert-40".to_owned(), 10 - succeeded)]),
            inconclusive: inconclusive.then(|| "client-bound".to_owned()),
            ..WindowResult::default()
        };
        let block = Block { windows: vec![window], ..Block::default() };
        Cell { target: target.into(), state: CellState::Done, blocks: vec![block], ..Cell::default() }
    }

    #[test]
    fn one_target_alone_is_judged_by_its_rate() {
        let of = |cells: Vec<Cell>| ended(&cells);
        assert_eq!(of(vec![cell("a", 10, false), cell("a", 10, true)]), Ended::Complete);
        assert_eq!(of(vec![cell("a", 10, true)]), Ended::Inconclusive);
        assert_eq!(of(vec![cell("a", 10, true), cell("b", 10, true)]), Ended::Complete);
        let cannot = Cell { target: "a".into(), state: CellState::Cannot, ..Cell::default() };
        assert_eq!(of(vec![cannot.clone()]), Ended::Inconclusive, "nothing was measured");
        let neither = vec![cannot.clone(), Cell { target: "b".into(), ..cannot.clone() }];
        assert_eq!(of(neither), Ended::Inconclusive, "nor of any of two");
        assert_eq!(of(vec![cannot, cell("b", 10, false)]), Ended::Complete);
        assert_eq!(of(Vec::new()), Ended::Complete);
    }

    #[test]
    fn a_cell_in_which_all_failed_is_no_result() {
        assert_eq!(all_failed(&cell("a", 1, false)), None);
        let why = all_failed(&cell("a", 0, false)).unwrap();
        assert_eq!(why, "all of its 10 transactions failed, most of them as alert-40");
    }

    #[test]
    fn rounds_come_in_pairs_that_mirror_each_other() {
        let (there, mut back) = (order(5, 0, 7), order(5, 1, 7));
        back.reverse();
        assert_eq!(there, back);
        assert!(
            (0..20).any(|round| order(5, 2 * round, 7) != there),
            "the seed draws the same order each time"
        );
    }
}
