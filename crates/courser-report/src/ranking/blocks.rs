//! What one block says.

mod cut;

use courser_record::lab::{Block, Case, Cell, Measure, Value, WindowResult};
use courser_record::{Completions, Lab};
use courser_stats::number::{float, length};

use super::block_value::{BlockValue, Kind, Spread, is_client_bound};
use super::{FigureSpec, is_yardstick, staircase};

/// What a block says about a figure.
pub(super) fn read(lab: &Lab, cell: &Cell, block: &Block, spec: &FigureSpec) -> BlockValue {
    let Some(case) = lab.case(&cell.case) else { return BlockValue::Absent };
    if let Some(rule) = staircase::Rule::of(spec.value) {
        return staircase::highest(block, rule);
    }
    match spec.value {
        Value::Figure => figure(block, spec.figure.as_deref()),
        Value::Mean | Value::P50 | Value::P99 => response(case, block, spec),
        Value::Tps | Value::Handshakes | Value::Throughput => rate(case, cell, block, spec),
        // It terminates nothing, so the least that a terminator can take says nothing of it.
        Value::LimitShare if is_yardstick(&cell.target) => BlockValue::Absent,
        Value::KernelShare if !is_split(case, cell, spec) => BlockValue::Absent,
        value => spent(lab, case, cell, block, &FigureSpec { value, ..spec.clone() }),
    }
}

/// Handshakes over connections of a block, as both ended within it: 1 but for those that its ends cut in two. `None` where that is
/// not so on average, since some failed or stayed open, and for figures that it says nothing of.
pub(super) fn edge(lab: &Lab, cell: &Cell, block: &Block, spec: &FigureSpec) -> Option<f64> {
    let case = lab.case(&cell.case)?;
    let is_count = matches!(
        spec.value,
        Value::Tps | Value::Handshakes | Value::Throughput | Value::Cpu | Value::TpsOfCpu
    );
    let sum = Sum::of(&chosen(case, block, spec));
    if !is_count || case.measure == Measure::KeepAlive || sum.failed > 0 {
        return None;
    }
    let (handshakes, connections) = (sum.served.full + sum.served.resumed, sum.served.connections);
    // The way without TLS has none.
    if handshakes == 0 { Some(1.0) } else { quotient(float(handshakes), float(connections)) }
}

/// The windows that a figure is about: of clients those of one kind, of a staircase the saturation before it.
pub(super) fn chosen<'a>(case: &Case, block: &'a Block, spec: &FigureSpec) -> Vec<&'a WindowResult> {
    let is_it = |window: &&WindowResult| match case.measure {
        Measure::Clients => spec.client.as_ref().is_none_or(|client| *client == window.label),
        Measure::Staircase => window.offered_tps.is_none(),
        _ => true,
    };
    let chosen: Vec<_> = block.windows.iter().filter(is_it).collect();
    let all_steps = chosen.is_empty() && case.measure == Measure::Staircase;
    if all_steps { block.windows.iter().collect() } else { chosen }
}

fn figure(block: &Block, name: Option<&str>) -> BlockValue {
    let figures = block.windows.iter().flat_map(|window| &window.figures);
    let Some(figure) = figures.into_iter().find(|figure| Some(figure.name.as_str()) == name) else {
        return BlockValue::Absent;
    };
    let spread = figure.low.zip(figure.high).map(|(low, high)| Spread { low, high, is_interval: true });
    BlockValue::Value { value: figure.value, kind: Kind::Measured, spread }
}

/// Response times: of a staircase those of the highest step that keeps the rule.
fn response(case: &Case, block: &Block, spec: &FigureSpec) -> BlockValue {
    let chosen = match case.measure {
        Measure::Staircase => staircase::best(block).into_iter().collect(),
        _ => chosen(case, block, spec),
    };
    if let Some(reason) = inconclusive(&chosen) {
        return BlockValue::Inconclusive(reason);
    }
    let summary = match chosen.as_slice() {
        [] => return BlockValue::Absent,
        [one] => *one.response.summary(),
        several => {
            let mut all = courser_stats::Histogram::default();
            several.iter().for_each(|window| all.merge(&window.response.unpack()));
            (&all).into()
        }
    };
    BlockValue::measured(match spec.value {
        Value::Mean => summary.mean_us,
        Value::P50 => summary.p50_us,
        _ => summary.p99_us,
    })
}

fn rate(case: &Case, cell: &Cell, block: &Block, spec: &FigureSpec) -> BlockValue {
    let chosen = chosen(case, block, spec);
    let sum = Sum::of(&chosen);
    let body = cell.verified.as_ref().and_then(|verified| verified.body_bytes);
    let rate = match spec.value {
        Value::Tps => sum.per_second(sum.served.transactions),
        Value::Handshakes => sum.per_second(sum.served.full),
        _ => body.and_then(|body| Some(sum.per_second(sum.served.transactions)? * float(body))),
    };
    if let Some(reason) = cut::cut(case, cell, block, spec) {
        return BlockValue::Inconclusive(reason);
    }
    match inconclusive(&chosen) {
        // At a rate that is given, what was served is what was served: a faster generator would have brought no more.
        Some(reason) if case.measure == Measure::Rate && is_client_bound(&reason) => {
            BlockValue::measured(rate)
        }
        Some(reason) => BlockValue::bounded(rate, reason),
        None => BlockValue::measured(rate),
    }
}

fn inconclusive(windows: &[&WindowResult]) -> Option<String> {
    windows.iter().find_map(|window| window.inconclusive.clone())
}

/// What holds whether or not the generator kept up.
fn spent(lab: &Lab, case: &Case, cell: &Cell, block: &Block, spec: &FigureSpec) -> BlockValue {
    let sum = Sum::of(&chosen(case, block, spec));
    if matches!(spec.value, Value::Cpu | Value::TpsOfCpu | Value::LimitShare)
        && let Some(reason) = cut::cut(case, cell, block, spec)
    {
        return BlockValue::Inconclusive(reason);
    }
    let per_connection = sum.cpu_us.and_then(|cpu| quotient(cpu, sum.paid_for(case.measure)));
    let mostly = |kind| if sum.failed > sum.succeeded { Kind::MostFailed } else { kind };
    match spec.value {
        Value::Cpu => BlockValue::of_kind(per_connection, mostly(Kind::Measured)),
        Value::TpsOfCpu => {
            let each = sum.cpu_us.and_then(|cpu| quotient(cpu, float(sum.served.transactions)));
            BlockValue::of_kind(
                each.and_then(|us| quotient(cores(lab, case) * 1e6, us)),
                mostly(Kind::Computed),
            )
        }
        Value::KernelShare => BlockValue::measured(sum.kernel_share()),
        Value::LimitShare => {
            let least = case.limit.as_ref().map(|limit| limit.us_per_connection);
            BlockValue::measured(least.zip(per_connection).and_then(|(least, spent)| quotient(least, spent)))
        }
        Value::Memory => BlockValue::measured(sum.memory_bytes.map(float)),
        Value::ResumedOfOffered => {
            BlockValue::measured(sum.offered.and_then(|offered| quotient(float(sum.resumed), offered)))
        }
        Value::Resumed => BlockValue::measured(quotient(float(sum.resumed), float(sum.full + sum.resumed))),
        _ => BlockValue::Absent,
    }
}

/// Whether the kernel's account of a cell's processor time says how much of it was its own: it counts which of both it is at
/// its ticks, of 10 ms at most, and has blocks of a second without any.
fn is_split(case: &Case, cell: &Cell, spec: &FigureSpec) -> bool {
    const ENOUGH_US: f64 = 2_000_000.0;

    let sums: Vec<Sum> = cell.blocks.iter().map(|block| Sum::of(&chosen(case, block, spec))).collect();
    let known = || sums.iter().filter_map(|sum| sum.cpu_us.zip(sum.system_us));
    let all: f64 = known().map(|(cpu, _)| cpu).sum();
    all >= ENOUGH_US && known().all(|(cpu, system)| system > 0.0 && system < cpu)
}

/// Cores that a target has in a case: what its dimension `cores` begins with, else those of the core map.
fn cores(lab: &Lab, case: &Case) -> f64 {
    let digits = |text: &String| text.split(|char: char| !char.is_ascii_digit()).next()?.parse().ok();
    let asked: Option<u32> = case.dimensions.get("cores").and_then(digits);
    let is_target = |role: &String| role == "target";
    let mapped = lab.cores.iter().filter(|core| core.roles.iter().any(is_target)).count();
    asked.filter(|cores| *cores > 0).map_or_else(|| length(mapped.max(1)), f64::from)
}

fn quotient(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Several windows taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) window_us: u64,
    /// Within the windows.
    pub(crate) served: Completions,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    /// `None` where one of the windows does not know.
    pub(crate) offered: Option<f64>,
    /// User and kernel together; `None` where one of the windows does not know.
    pub(crate) cpu_us: Option<f64>,
    pub(crate) system_us: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
}

impl Sum {
    pub(crate) fn of(windows: &[&WindowResult]) -> Self {
        let total = |of: fn(&WindowResult) -> u64| {
            windows.iter().fold(0_u64, |sum, window| sum.saturating_add(of(window)))
        };
        let known = |of: fn(&WindowResult) -> Option<u64>| {
            let all: Option<Vec<u64>> = windows.iter().map(|window| of(window)).collect();
            all.filter(|all| !all.is_empty()).map(|all| all.into_iter().map(float).sum::<f64>())
        };
        let (user, system) = (known(|window| window.user_us), known(|window| window.system_us));
        Self {
            window_us: total(|window| window.window_us),
            succeeded: total(|window| window.succeeded),
            failed: total(|window| window.failed),
            served: windows.iter().fold(Completions::default(), |mut sum, window| {
                sum.add(&window.served());
                sum
            }),
            full: total(|window| window.full),
            resumed: total(|window| window.resumed),
            offered: known(|window| window.offered),
            cpu_us: user.zip(system).map(|(user, system)| user + system),
            system_us: system,
            memory_bytes: windows.last().and_then(|window| window.memory_bytes),
        }
    }

    fn kernel_share(&self) -> Option<f64> {
        quotient(self.system_us?, self.cpu_us?)
    }

    fn per_second(&self, count: u64) -> Option<f64> {
        quotient(float(count) * 1e6, float(self.window_us))
    }

    /// What processor time is counted by: connections, or transactions where connections stay open.
    pub(crate) fn paid_for(&self, measure: Measure) -> f64 {
        float(if measure == Measure::KeepAlive || self.served.connections == 0 {
            self.served.transactions
        } else {
            self.served.connections
        })
    }
}
