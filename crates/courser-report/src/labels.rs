//! What figures are called, and the sentences about them. The only place: page, text, Markdown and CSV agree.

mod control;
mod failures;
mod figures;
mod findings;
mod order;
mod prose;
mod verdict;

use courser_record::Lab;
use courser_record::lab::{Block, Case, Cell, Era, Limit, LimitPart, Value};

use crate::figure;
use crate::ranking::{self, CellValue, Estimate, FigureSpec, Kind};

pub use control::{CONTROL, CONTROL_HEADS, control_caution, control_rows};
pub use failures::mostly_failed;
pub use figures::{figure_name, figure_spread, figure_text, repeats};
pub use findings::{Concern, findings, grouped};
pub use order::{detectable, factor, factor_range, order, why};
pub use prose::without_figures;
pub use verdict::{Verdict, verdict};

/// What a figure is called, at the head of a column.
pub fn name(spec: &FigureSpec) -> String {
    let name = spec.figure.as_deref().unwrap_or_else(|| value(spec.value));
    match spec.client.as_deref() {
        Some(client) if !client.is_empty() => format!("{name}, {client}"),
        _ => name.to_owned(),
    }
}

/// What a kind of figure is called.
pub fn value(value: Value) -> &'static str {
    match value {
        Value::Tps => "transactions/s",
        Value::TpsOfCpu => "transactions/s by CPU",
        Value::Handshakes => "full handshakes/s",
        Value::Cpu => "CPU per connection",
        Value::KernelShare => "kernel's share",
        Value::LimitShare => "limit's share",
        // As the figures of 2011 were called.
        Value::MaxTps => "maximum",
        Value::MaxTpsAvg100ms => "average < 100 ms",
        Value::MaxTpsAvg500ms => "average < 500 ms",
        Value::MaxTpsLoss => "loss < 0.01 %",
        Value::MaxTpsRule => "loss < 0.1 %, average < 100 ms",
        Value::Mean => "mean response",
        Value::P50 => "median response",
        Value::P99 => "p99 response",
        Value::Throughput => "throughput",
        Value::Memory => "memory",
        Value::Resumed => "resumed",
        Value::ResumedOfOffered => "resumed of those on offer",
        Value::Figure => "figure",
    }
}

/// What a figure is counted in, as CSV and axes say it.
pub fn unit(lab: &Lab, spec: &FigureSpec) -> String {
    match spec.value {
        Value::Cpu | Value::Mean | Value::P50 | Value::P99 => "us".to_owned(),
        Value::KernelShare | Value::LimitShare | Value::Resumed | Value::ResumedOfOffered => {
            "share".to_owned()
        }
        Value::Throughput => "bytes/s".to_owned(),
        Value::Memory => "bytes".to_owned(),
        Value::Figure => figure_unit(lab, spec.figure.as_deref()).unwrap_or_default(),
        _ => "1/s".to_owned(),
    }
}

fn figure_unit(lab: &Lab, name: Option<&str>) -> Option<String> {
    let windows = lab.cells.iter().flat_map(|cell| &cell.blocks).flat_map(|block| &block.windows);
    let mut figures = windows.flat_map(|window| &window.figures);
    figures.find(|figure| Some(figure.name.as_str()) == name).map(|figure| figure.unit.clone())
}

/// A figure as people read it; its unit is in its column's name where it has none here.
pub fn amount(value: Value, amount: f64) -> String {
    match value {
        Value::Cpu | Value::Mean | Value::P50 | Value::P99 => figure::time(Some(amount)),
        Value::KernelShare | Value::LimitShare | Value::Resumed | Value::ResumedOfOffered => {
            figure::percent(Some(amount))
        }
        Value::Throughput => format!("{}/s", figure::bytes(Some(amount))),
        Value::Memory => figure::bytes(Some(amount)),
        _ => figure::number(Some(amount)),
    }
}

/// The figure of an estimate, with the mark of its kind: `1,980`, `≈ 1,980`, `≥ 1,980`.
pub fn estimate(value: Value, estimate: &Estimate) -> String {
    format!("{}{}", estimate.kind.mark(), amount(value, estimate.value))
}

/// How far it may be off: `1,950 to 2,010`; in brackets of another kind where it is only what blocks range over.
pub fn spread(value: Value, estimate: &Estimate) -> Option<String> {
    let Some(spread) = estimate.spread else { return Some(single(estimate)) };
    if estimate.kind == Kind::AtLeast {
        return Some(format!("from {}", amount(value, spread.low)));
    }
    let ends = range(&amount(value, spread.low), &amount(value, spread.high));
    Some(if spread.is_interval { ends } else { format!("range {ends}") })
}

/// Of a single block nothing says how far the next would have been off.
fn single(estimate: &Estimate) -> String {
    match estimate.of {
        0 | 1 => "one round".to_owned(),
        rounds => format!("one of {rounds} rounds"),
    }
}

/// Both ends, their unit once where it is the same: `210 to 236 us`.
pub(crate) fn range(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// A share in whole percent, as sentences have it.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// What stands in a cell: the figure, or the word for why there is none.
pub fn cell_text(value: Value, cell: &CellValue) -> String {
    match cell {
        CellValue::Value(found) => estimate(value, found),
        CellValue::Inconclusive { at_least: Some(bound), computed: Some(computed), .. } => {
            format!("{} ({})", estimate(value, bound), estimate(Value::TpsOfCpu, computed))
        }
        CellValue::Inconclusive { computed: Some(computed), .. } => estimate(Value::TpsOfCpu, computed),
        CellValue::Inconclusive { at_least: Some(bound), .. } => estimate(value, bound),
        CellValue::Pending => "not measured".to_owned(),
        CellValue::Unknown => figure::UNKNOWN.to_owned(),
        other => other.word().to_owned(),
    }
}

/// What stands behind a figure of a target that was held to a share of its cores: the rate of all of them, in proportion;
/// the mark of response times, which have waits in them.
pub fn of_share(value: Value, cell: &CellValue, share: f64, by_cpu: Option<f64>) -> String {
    match (value, cell) {
        (Value::Mean | Value::P50 | Value::P99, CellValue::Value(_)) => " †".to_owned(),
        (value, CellValue::Value(found)) if is_rate(value) => {
            let by_rate = amount(value, found.value / share);
            match by_cpu {
                Some(by_cpu) => {
                    format!(" (whole core: {by_rate} by rate, {} by CPU)", amount(value, by_cpu))
                }
                None => format!(" (whole core: {by_rate})"),
            }
        }
        _ => String::new(),
    }
}

/// Whether a figure depends on how much of its cores a target has.
pub(crate) fn is_rate(value: Value) -> bool {
    use Value::{
        Handshakes, MaxTps, MaxTpsAvg100ms, MaxTpsAvg500ms, MaxTpsLoss, MaxTpsRule, Throughput, Tps,
    };
    matches!(
        value,
        Tps | Handshakes | Throughput | MaxTps | MaxTpsAvg100ms | MaxTpsAvg500ms | MaxTpsLoss | MaxTpsRule
    )
}

/// What a share of their cores means for the figures of a suite; `None` where all targets had all of theirs.
pub fn share_note(lab: &Lab) -> Option<String> {
    let held = lab.cells.iter().find_map(|cell| cell.server_share)?;
    Some(format!(
        "Targets were held to {} of their cores ({} in each {}), so that they are the limit and not the generator. Rates \
         are for that share; in brackets stands the rate of a whole core, in proportion and by processor time (the two \
         differ where other programs had the core meanwhile: then the second holds). †: a response time has waits of up \
         to {} for the next period in it, and is not compared.",
        held.share,
        figure::duration(held.quota_us),
        figure::duration(held.period_us),
        figure::duration(held.period_us.saturating_sub(held.quota_us))
    ))
}

/// What a target is called in a report.
pub fn target<'a>(lab: &'a Lab, name: &'a str) -> &'a str {
    let found = lab.targets.iter().find(|target| target.name == name);
    found.map(|target| target.title.as_str()).filter(|title| !title.is_empty()).unwrap_or(name)
}

/// What a target is called in a sentence: by its name where its title is one itself, or another target's too.
pub fn short_target<'a>(lab: &'a Lab, name: &'a str) -> &'a str {
    let title = target(lab, name);
    let is_shared = lab.targets.iter().filter(|target| target.title == title).count() > 1;
    if title.contains(',') || is_shared { name } else { title }
}

/// What a target is called where there is room: by its title, and by its name where sentences have that.
pub fn long_target(lab: &Lab, name: &str) -> String {
    let (title, short) = (target(lab, name), short_target(lab, name));
    if title == short { title.to_owned() } else { format!("{title} ({short})") }
}

/// What a case is called in a report of its suite.
pub fn case(lab: &Lab, id: &str) -> String {
    let cases: Vec<&Case> = lab.cases.iter().collect();
    lab.case(id).map_or_else(|| id.to_owned(), |case| short(&cases, case))
}

/// What a cell is called: its target and its case.
pub(crate) fn cell(lab: &Lab, cell: &Cell) -> String {
    format!("{}, {}", target(lab, &cell.target), case(lab, &cell.case))
}

/// What a case is called among these: its title without the parts that all of them have.
pub fn short(cases: &[&Case], case: &Case) -> String {
    let kept = |case: &Case| {
        let is_common = |part: &&str| cases.iter().all(|other| parts(other).any(|known| known == *part));
        parts(case).filter(|part| !is_common(part)).collect::<Vec<_>>().join(", ")
    };
    let (own, title) = (kept(case), if case.title.is_empty() { &case.id } else { &case.title });
    let is_ambiguous = || cases.iter().filter(|other| kept(other) == own).count() > 1;
    if own.is_empty() || is_ambiguous() { title.clone() } else { own }
}

/// What all cases of a suite have in common; empty when nothing, or when there is one.
pub fn common(lab: &Lab) -> String {
    let [first, _, ..] = lab.cases.as_slice() else { return String::new() };
    let is_common = |part: &&str| lab.cases.iter().all(|case| parts(case).any(|known| known == *part));
    parts(first).filter(is_common).collect::<Vec<_>>().join(", ")
}

fn parts(case: &Case) -> impl Iterator<Item = &str> {
    case.title.split(", ")
}

/// What is said of records that were made before completions were counted.
pub const WITHOUT_COMPLETIONS: &str =
    "An earlier record, without completions: rates are of successes by their intended start.";

/// How a staircase's throughput falls past its maximum; `None` where it does not.
pub(crate) fn fall(block: &Block) -> Option<String> {
    let (most, last) = ranking::fall(block)?;
    let [most, least, offered] =
        [Some(most), Some(ranking::rate(last)), last.offered_tps].map(figure::number);
    Some(format!("served at most {most}/s, and {least}/s where {offered}/s were offered"))
}

/// What kind of figure it is, in a word.
pub fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Measured => "measured",
        Kind::Computed => "computed",
        Kind::MostFailed => "most failed",
        Kind::AtLeast => "at least",
    }
}

/// Of today, or as published.
pub fn era(era: Era) -> &'static str {
    match era {
        Era::Modern => "modern",
        Era::Historic => "historic",
    }
}

/// What the marks of a table mean.
pub const MARKS: &str = "Figures are medians over interleaved blocks; in brackets their 95 % confidence interval, or, of too \
    few blocks for one, what they range over. ≈: computed from processor time, since the rate is inconclusive. ≥: nothing was \
    seen to fail above it, or the generator was the limit. †: most attempts failed, and their processor time is in it.";

/// Several names as a sentence has them: `a, b and c`; `a, b; c, d` where there are commas in them.
pub(crate) fn list(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        several if several.iter().any(|name| name.contains(',')) => several.join("; "),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A count and its noun: `1 case`, `3 cases`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// How sure an order is.
pub const HOW_SURE: &str = "All targets of a case are compared together, round by round, after what each round adds to all is \
    taken out (METHODOLOGY.md); the 95 % confidence intervals of all factors of a case hold at once (Tukey). The minimum \
    detectable difference is the one that such rounds would have shown in nine of ten cases.";

/// What the physical limit is, of a record in which the kernel's floor is part of it.
const LIMIT: &str = "The limit: what the signatures, key exchanges and ciphers of a connection take by themselves, and its reads \
    and writes without TLS (the kernel's floor), both timed on this machine; and its share of what the target spent. A share \
    of 100 % or more means that the machine was faster in the block than when the limit was timed.";

/// The same of earlier records.
const CRYPTOGRAPHY: &str = "Bare cryptography: what the signatures, key exchanges and ciphers of a connection take by \
    themselves, timed on this machine, and their share of what the target spent. It is not yet the limit: reads and writes \
    without TLS have a floor in the kernel too. A share of 100 % or more means that the machine was faster in the block than \
    when cryptography was timed.";

/// What the limit of a record is; `None` where it has none.
pub fn limit(lab: &Lab) -> Option<&'static str> {
    let known = lab.cases.iter().any(|case| case.limit.is_some());
    known.then_some(if has_floor(lab) { LIMIT } else { CRYPTOGRAPHY })
}

/// A limit, and what of it is the kernel's floor: `95.0 us, of it 42.0 us reads and writes`.
pub fn least(limit: &Limit) -> String {
    let all = figure::time(Some(limit.us_per_connection));
    if limit.floor.is_empty() {
        return all;
    }
    format!("{all}, of it {} reads and writes", figure::time(Some(LimitPart::sum(&limit.floor))))
}

/// Whether the kernel's floor is part of the limit.
pub fn has_floor(lab: &Lab) -> bool {
    lab.cases.iter().filter_map(|case| case.limit.as_ref()).any(|limit| !limit.floor.is_empty())
}

/// A share of the limit that cannot be.
pub const ABOVE_LIMIT: &str =
    "more than all of it: the limit was timed at another moment, when the machine was slower";

/// Which machine and when: `Intel Xeon, 2 cores (vm-1), 2026-11-22T02:00:00Z, courser-bench 0.1.0`.
pub fn byline(lab: &Lab) -> String {
    let (machine, tool) = (&lab.envelope.machine, &lab.envelope.tool);
    let cores = counted(machine.cores as usize, "core");
    let quick = if lab.quick { ", quick variant" } else { "" };
    format!(
        "{}, {cores} ({}), {}, {} {}{quick}",
        machine.cpu_model, machine.name, lab.envelope.created, tool.name, tool.version
    )
}

/// That a suite was cut short, and how much of it there is.
pub fn cut(lab: &Lab) -> Option<String> {
    let cut = lab.envelope.cut.as_ref()?;
    let done = lab.cells.iter().filter(|cell| cell.state != courser_record::lab::CellState::Pending).count();
    let all = counted(lab.cells.len(), "cell");
    Some(format!("Cut short ({cut}): {done} of {all} were measured to their end."))
}

/// Warnings about several records together.
pub fn across(labs: &[Lab]) -> Vec<String> {
    let machines = ranking::distinct(labs.iter().map(|lab| &lab.envelope.machine.name));
    let versions = ranking::distinct(labs.iter().map(|lab| &lab.envelope.tool.version));
    let mut warnings = Vec::new();
    if machines.len() > 1 {
        warnings.push(format!(
            "these records are of different machines ({}): figures of one cannot be laid beside those of another without \
             the machine being the reason of the difference.",
            list(&machines)
        ));
    }
    if versions.len() > 1 {
        warnings.push(format!(
            "these records were made by different versions of the instrument ({}).",
            list(&versions)
        ));
    }
    warnings
}

/// What a ranking is of: the case, the kind of client, the preset.
pub fn ranking_title(lab: &Lab, ranking: &ranking::Ranking) -> String {
    let client = ranking.client.as_deref().filter(|client| !client.is_empty());
    let preset = Some(ranking.preset.as_str())
        .filter(|preset| !preset.is_empty())
        .map(|preset| format!("{preset} settings"));
    let parts = [Some(case(lab, &ranking.case)), client.map(str::to_owned), preset];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
