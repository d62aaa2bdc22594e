//! What a suite shows while it runs: a bar with the time left on a terminal, a line for each case everywhere.

use std::io::IsTerminal;
use std::time::Duration;

use courser_record::lab::{Cell, CellState, Lab, Measure};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use courser_lab::suite::CaseSpec;
use courser_lab::{command, progress};

/// Starting and verifying a target, and what a block takes beside its own length.
const AROUND: Duration = Duration::from_millis(900);

/// Tells how far a suite is.
pub(crate) struct SuiteProgress {
    quiet: bool,
    bar: ProgressBar,
    cases: usize,
    number: usize,
}

impl SuiteProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, bar: ProgressBar::hidden(), cases: 0, number: 0 }
    }

    fn line(&self, line: &str) {
        if !self.quiet {
            if self.bar.is_hidden() { notice!("{line}") } else { self.bar.println(line) }
        }
    }
}

impl progress::Progress for SuiteProgress {
    fn begin(&mut self, cases: &[CaseSpec], targets: usize) {
        let whole: Duration = cases.iter().map(|spec| length(spec, targets)).sum();
        let target = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        self.bar = ProgressBar::with_draw_target(Some(whole.as_secs().max(1)), target);
        let style = ProgressStyle::with_template("{bar:30} {elapsed} of about {len} s, {eta} left  {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        if !self.quiet {
            notice!("{} cases, about {} in all", cases.len(), format_duration(whole));
        }
        self.cases = cases.len();
    }

    fn case(&mut self, spec: &CaseSpec) {
        self.number += 1;
        self.line(&format!("{} of {}: {} ({})", self.number, self.cases, spec.title, spec.id));
    }

    fn block(&mut self, spec: &CaseSpec, target: &str, round: u32) {
        self.bar.set_message(if round < spec.rounds {
            format!("{target}, round {} of {}", round + 1, spec.rounds)
        } else {
            format!("{target}, control with the real client")
        });
        self.bar.inc(block(spec).as_secs());
    }

    fn part(&mut self, done: usize, of: usize, what: &str) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
    }

    fn done(&mut self, spec: &CaseSpec, lab: &Lab) {
        for cell in lab.cells.iter().filter(|cell| cell.case == spec.id) {
            self.line(&format!("    {:<22} {}", cell.target, outcome(cell)));
        }
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How far a comparison is within its time.
pub(crate) struct ComparisonProgress {
    quiet: bool,
    bar: ProgressBar,
}

impl ComparisonProgress {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, bar: ProgressBar::hidden() }
    }
}

impl progress::ComparisonProgress for ComparisonProgress {
    fn begin(&mut self, time: Duration) {
        let shown = !self.quiet && std::io::stderr().is_terminal();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        self.bar = ProgressBar::with_draw_target(Some(time.as_secs().max(1)), target);
        let style = ProgressStyle::with_template("{bar:30} {pos} of at most {len} s, {eta} left  {msg}");
        self.bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    }

    fn at(&mut self, time: Duration, target: &str) {
        self.bar.set_position(time.as_secs());
        self.bar.set_message(target.to_owned());
    }

    fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long a case takes, about.
fn length(spec: &CaseSpec, targets: usize) -> Duration {
    let targets = spec.targets.as_ref().map_or(targets, Vec::len);
    let cells = u32::try_from(targets).unwrap_or(1);
    if spec.measure == Measure::InProcess {
        Duration::from_secs(60)
    } else {
        block(spec) * (spec.rounds + u32::from(spec.control)) * cells
    }
}

fn block(spec: &CaseSpec) -> Duration {
    let steps = if spec.measure == Measure::Staircase { spec.steps } else { 1 };
    // A closed loop finds the capacity first.
    let feeler = if spec.capacity.is_some() { Duration::from_millis(1500) } else { Duration::ZERO };
    AROUND + feeler + command::climb(spec) + spec.length * steps
}

fn format_duration(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

/// The median of its blocks, or why there is none.
fn outcome(cell: &Cell) -> String {
    match cell.state {
        CellState::Cannot => format!("cannot: {}", cell.reason.as_deref().unwrap_or_default()),
        CellState::Failed => format!("failed: {}", cell.reason.as_deref().unwrap_or_default()),
        CellState::Pending => "not finished".into(),
        CellState::Done => {
            let windows = cell.blocks.iter().flat_map(|block| &block.windows);
            let (mut rates, mut costs) = (Vec::new(), Vec::new());
            for window in windows {
                let served = window.served().transactions;
                rates.push(served as f64 * 1e6 / window.window_us.max(1) as f64);
                if let (Some(user), Some(system)) = (window.user_us, window.system_us) {
                    costs.push((user + system) as f64 / served.max(1) as f64);
                }
            }
            let highest = rates.iter().copied().fold(0.0, f64::max);
            let inconclusive =
                cell.blocks.iter().flat_map(|block| &block.windows).any(|s| s.inconclusive.is_some());
            let mark = if inconclusive { ", the generator was the limit" } else { "" };
            let cost = middle(&mut costs).map_or(String::new(), |cost| format!(", {cost:.0} us each"));
            format!("up to {highest:.0}/s{cost}{mark}")
        }
    }
}

fn middle(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
