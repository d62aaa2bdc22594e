//! What a suite's blocks say: of each cell a figure with its interval, of each case who is ahead and how sure that is.
//!
//! Pure. Nothing is ranked by a rate that says nothing about the target: where rates are inconclusive, processor time per
//! transaction takes their place, with a note.

mod basis;
mod block_value;
mod blocks;
mod compared;
mod estimate;
mod order;
mod share;
mod staircase;

use courser_record::Lab;
use courser_record::lab::{Cell, CellState, Measure, Value};

pub use basis::Basis;
pub use block_value::{Kind, Spread};
pub use compared::{Compared, Precision, compared};
pub use estimate::Estimate;
pub use order::{NotCompared, Outcome, Pair, RankedTarget, Ranking, by_round, ranking, rankings};
pub use staircase::Rule;

pub(crate) use basis::{is_cost, is_response};
pub(crate) use estimate::median;
pub(crate) use share::{Shares, is_asked, offered};
pub(crate) use staircase::{fall, rate, steps};

use block_value::BlockValue;

/// A figure that is asked for: a value, of in-process results the name of one, of different clients the kind of one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FigureSpec {
    /// What is asked for.
    pub value: Value,
    /// [`courser_record::lab::Figure::name`]; only with [`Value::Figure`].
    pub figure: Option<String>,
    /// [`courser_record::lab::WindowResult::label`], of [`Measure::Clients`]; all of them together without.
    pub client: Option<String>,
}

impl From<Value> for FigureSpec {
    fn from(value: Value) -> Self {
        Self { value, figure: None, client: None }
    }
}

/// What a cell says about it.
#[derive(Clone, Debug, PartialEq)]
pub enum CellValue {
    /// A figure.
    Value(Estimate),
    /// There is one, but it says nothing about the target.
    Inconclusive {
        /// Why.
        reason: String,
        /// The true one is at least this, where the generator was the limit; of rates only.
        at_least: Option<Estimate>,
        /// What the target's cores could do by their processor time; of rates only.
        computed: Option<Estimate>,
    },
    /// The target cannot do this.
    Cannot(String),
    /// It should have, and did not.
    Failed(String),
    /// Not measured, or not yet.
    Pending,
    /// It was measured, and this is not among what is known.
    Unknown,
}

impl CellValue {
    /// The figure, inconclusive or not: what was computed, else a lower bound, stands for what is inconclusive.
    pub fn estimate(&self) -> Option<&Estimate> {
        match self {
            Self::Value(estimate) => Some(estimate),
            Self::Inconclusive { computed, at_least, .. } => computed.as_ref().or(at_least.as_ref()),
            _ => None,
        }
    }

    /// A word for it: `value`, `inconclusive`, `cannot`, `failed`, `pending`, `unknown`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Value(_) => "value",
            Self::Inconclusive { .. } => "inconclusive",
            Self::Cannot(_) => "cannot",
            Self::Failed(_) => "failed",
            Self::Pending => "pending",
            Self::Unknown => "unknown",
        }
    }

    /// Why there is no figure.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Inconclusive { reason, .. } | Self::Cannot(reason) | Self::Failed(reason) => Some(reason),
            _ => None,
        }
    }
}

/// What a cell says about a figure: the median of its blocks. With the figure of fewer than half of its blocks it is
/// inconclusive: blocks are spoilt more often where a target is fast. Where the generator was the limit, the rate of a block is
/// a lower bound.
pub fn cell_value(lab: &Lab, cell: &Cell, spec: &FigureSpec) -> CellValue {
    let reason = || cell.reason.clone().unwrap_or_else(|| "no reason given".to_owned());
    match cell.state {
        CellState::Cannot => CellValue::Cannot(reason()),
        CellState::Failed => CellValue::Failed(reason()),
        CellState::Pending if cell.blocks.is_empty() => CellValue::Pending,
        CellState::Pending | CellState::Done => measured(lab, cell, spec),
    }
}

/// The same by names; [`CellValue::Pending`] where nothing was asked of this target.
pub fn value_of(lab: &Lab, case: &str, target: &str, spec: &FigureSpec) -> CellValue {
    lab.cell(case, target).map_or(CellValue::Pending, |cell| cell_value(lab, cell, spec))
}

fn measured(lab: &Lab, cell: &Cell, spec: &FigureSpec) -> CellValue {
    let reads: Vec<BlockValue> =
        cell.blocks.iter().map(|block| blocks::read(lab, cell, block, spec)).collect();
    let known = reads.iter().filter(|read| matches!(read, BlockValue::Value { .. })).count();
    let inconclusive = reads.iter().find_map(|read| match read {
        BlockValue::Inconclusive(reason) | BlockValue::AtLeast(_, reason) => Some(reason.clone()),
        _ => None,
    });
    let estimate = estimate::of(&reads, lab.seed);
    match inconclusive {
        Some(reason) if known * 2 < reads.len() => {
            let at_least = estimate.filter(|estimate| estimate.kind == Kind::AtLeast);
            CellValue::Inconclusive { reason, at_least, computed: computed(lab, cell, spec) }
        }
        _ => estimate.map_or(CellValue::Unknown, CellValue::Value),
    }
}

/// Transactions a second that the cores could make, in place of a rate that is inconclusive. Nothing stands for a rate under
/// a rule: processor time does not say when clients begin to wait. Nor for a rate that was given: with little to do a server
/// takes more for each.
fn computed(lab: &Lab, cell: &Cell, spec: &FigureSpec) -> Option<Estimate> {
    let of_cpu = FigureSpec { value: Value::TpsOfCpu, ..spec.clone() };
    let is_given = lab.case(&cell.case).is_some_and(|case| case.measure == Measure::Rate);
    let is_plain = matches!(spec.value, Value::Tps | Value::MaxTps) && !is_given;
    is_plain.then(|| measured(lab, cell, &of_cpu).estimate().cloned()).flatten()
}

/// The figures that a case has, in the order of a report.
pub fn values(measure: Measure) -> &'static [Value] {
    use Value::{
        Cpu, Figure, Handshakes, KernelShare, LimitShare, MaxTps, MaxTpsAvg100ms, MaxTpsAvg500ms, MaxTpsLoss,
        MaxTpsRule, Mean, Memory, P50, P99, Resumed, Throughput, Tps, TpsOfCpu,
    };
    match measure {
        Measure::Saturation | Measure::Rate | Measure::KeepAlive | Measure::Clients => &[
            Tps,
            TpsOfCpu,
            Handshakes,
            Cpu,
            KernelShare,
            LimitShare,
            Mean,
            P50,
            P99,
            Throughput,
            Memory,
            Resumed,
        ],
        Measure::Staircase => &[
            MaxTps,
            MaxTpsAvg100ms,
            MaxTpsAvg500ms,
            MaxTpsLoss,
            MaxTpsRule,
            Tps,
            TpsOfCpu,
            Cpu,
            KernelShare,
            LimitShare,
            Mean,
            P50,
            P99,
            Memory,
            Resumed,
        ],
        Measure::InProcess => &[Figure],
    }
}

/// Everything that may be asked of a cell: [`values`], one for each figure and kind of client that its case has.
pub fn figure_specs(lab: &Lab, case: &str) -> Vec<FigureSpec> {
    let Some(asked) = lab.case(case) else { return Vec::new() };
    let all = values(asked.measure).iter().copied().map(FigureSpec::from);
    match asked.measure {
        Measure::InProcess => {
            let named = |figure| FigureSpec { figure: Some(figure), ..Value::Figure.into() };
            figures(lab, case).into_iter().map(named).collect()
        }
        Measure::Clients => {
            let clients = clients(lab, case);
            let each = |spec: FigureSpec| {
                let of = move |client: &String| FigureSpec { client: Some(client.clone()), ..spec.clone() };
                clients.iter().map(of).collect::<Vec<_>>()
            };
            all.flat_map(each).collect()
        }
        _ if asked.dimensions.contains_key("hosts") => all.chain([Value::ResumedOfOffered.into()]).collect(),
        _ => all.collect(),
    }
}

/// All targets by name, in the order of a report: also those that could not even be started.
pub fn targets(lab: &Lab) -> Vec<&str> {
    let mut names: Vec<&str> = lab.targets.iter().map(|target| target.name.as_str()).collect();
    for cell in &lab.cells {
        if !names.contains(&cell.target.as_str()) {
            names.push(&cell.target);
        }
    }
    names
}

/// The cells of a case, in the order of [`targets`].
pub fn cells<'a>(lab: &'a Lab, case: &str) -> Vec<&'a Cell> {
    targets(lab).into_iter().filter_map(|target| lab.cell(case, target)).collect()
}

/// The share of its cores that a target was held to in a case; `None` for all of them.
pub fn share(lab: &Lab, case: &str, target: &str) -> Option<f64> {
    lab.cell(case, target)?.server_share.map(|held| held.share)
}

/// Names of the in-process figures of a case, in the order in which they first appear.
pub fn figures(lab: &Lab, case: &str) -> Vec<String> {
    distinct(windows(lab, case).flat_map(|window| &window.figures).map(|figure| &figure.name))
}

/// The kinds of client of a case, in the order in which they first appear.
pub fn clients(lab: &Lab, case: &str) -> Vec<String> {
    distinct(windows(lab, case).map(|window| &window.label))
}

fn windows<'a>(lab: &'a Lab, case: &'a str) -> impl Iterator<Item = &'a courser_record::lab::WindowResult> {
    let cells = lab.cells.iter().filter(move |cell| cell.case == case);
    cells.flat_map(|cell| &cell.blocks).flat_map(|block| &block.windows)
}

/// Each once, the first first.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen
}

/// The way without a terminator is a yardstick and no rival.
pub(crate) fn is_yardstick(target: &str) -> bool {
    target == "direct"
}
