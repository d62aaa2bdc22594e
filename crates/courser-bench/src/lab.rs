//! A suite on several targets: each case is prepared on all of them, verified, then measured in blocks that take turns.
//!
//! What is measured in a block is in `lab/block.rs`; what is on disk meanwhile in `lab/state.rs`. Nothing here says who
//! is better: a report does, from the record.

mod progress;

#[path = "../../courser-lab/src"]
mod moving {
    use super::progress;

    pub(crate) mod block;
    pub(crate) mod command;
    pub(crate) mod cores;
    pub(crate) mod libraries;
    pub(crate) mod prepare;
    pub(crate) mod request;
    pub(crate) mod scratch;
    pub(crate) mod start;
    pub(crate) mod state;
    pub(crate) mod window;
}
pub(crate) use moving::{block, command, cores, scratch, start, state};
use moving::libraries;

use courser_machine::allowed_cpus;
use courser_record::lab::{Cell, CellState, Figure, Measure};

use crate::cli::RunSuiteArgs;
use crate::exit::{Ended, Failure};
use crate::measure::Interrupt;
use block::BlockRun;
use cores::CoreMap;
use courser_lab::suite::{CaseSpec, Suite};
use progress::SuiteProgress;
use start::{Bench, PreparedTarget};
use state::{About, State};

pub(crate) use progress::Progress;

/// Runs a suite to its end, and keeps its record.
pub(crate) fn run(args: &RunSuiteArgs) -> Result<(State, Ended), Failure> {
    let suite = chosen(args)?;
    if args.profile {
        courser_lab::profile::available().map_err(Failure::System)?;
    }
    let interrupt = Interrupt::install()?;
    let names: Vec<String> = args.targets.iter().chain(&args.target).cloned().collect();
    let mut bench = Bench::new(&args.bench, &names, &suite.targets, interrupt.clone())?;
    // The record comes after everything that can be wrong: the next try may have its name.
    let about = About { suite: &suite, seed: args.bench.seed, quick: args.quick, rtt: args.bench.rtt };
    let path = args.record_path();
    let mut state = if args.resume { State::resume(path, &about)? } else { State::new(path, &about)? };
    bench.describe(&mut state);
    let mut progress = SuiteProgress::new(&suite.cases, bench.count(), args.quiet);
    for spec in &suite.cases {
        if interrupt.came() {
            break;
        }
        progress.case(spec);
        if spec.measure == Measure::InProcess {
            libraries::run(args.quick, &mut state, &mut progress);
            continue;
        }
        case(spec, args.profile, &mut bench, &mut state, &mut progress);
        state.keep();
        progress.done(spec, &state.lab);
    }
    progress.end();
    state.finish(interrupt.came());
    let ended = if interrupt.came() { Ended::Cut } else { ended(&state) };
    Ok((state, ended))
}

/// The suite's cases, of those the ones that were asked for, and as long as was asked for.
fn chosen(args: &RunSuiteArgs) -> Result<Suite, Failure> {
    let mut suite = Suite::find(&args.suite, args.quick)?;
    if !args.cases.is_empty() {
        for target_spec in &args.cases {
            if !suite.cases.iter().any(|case| case.id.contains(target_spec.as_str())) {
                let known: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
                let why =
                    format!("{} has no case like {target_spec:?}; it has {}", args.suite, known.join(", "));
                return Err(Failure::usage(why));
            }
        }
        suite
            .cases
            .retain(|case| args.cases.iter().any(|target_spec| case.id.contains(target_spec.as_str())));
    }
    for case in &mut suite.cases {
        case.rounds = args.rounds.unwrap_or(case.rounds);
        case.length = args.bench.seconds.unwrap_or(case.length);
    }
    Ok(suite)
}

/// One case on all targets.
fn case(
    spec: &CaseSpec,
    profile: bool,
    bench: &mut Bench<'_>,
    state: &mut State,
    progress: &mut SuiteProgress,
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
            progress.block(spec, &ready[index].name, round);
            block(spec, &mut ready[index], bench, state, round);
        }
    }
    for target in &mut ready {
        if profile && !bench.interrupt().came() {
            bench.profile(target, state);
        }
        let cell = state.cell(&spec.id, &target.name);
        if cell.state == CellState::Pending && whole(cell, spec) {
            cell.state = CellState::Done;
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
    let run = BlockRun {
        spec: &target.spec,
        address: &target.address,
        cores: &target.cores,
        seed: bench.seed().wrapping_add(u64::from(round)),
        round,
        interrupt: bench.interrupt(),
        reached: target.reached,
    };
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
            target.reached = result.reached.or(target.reached);
            if cell.state == CellState::Pending {
                cell.blocks.push(result.block);
            }
        }
        Err(why) if cell.state == CellState::Pending => {
            (cell.state, cell.reason) = (CellState::Failed, Some(why.told().to_owned()));
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

/// A suite in which a cell failed is told by the exit code; what cannot be done by nature is not.
fn ended(state: &State) -> Ended {
    let failed = state.lab.cells.iter().any(|cell| cell.state == CellState::Failed);
    if failed { Ended::Inconclusive } else { Ended::Well }
}

#[cfg(test)]
mod tests {
    use super::*;

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
