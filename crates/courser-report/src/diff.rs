//! One record of a suite against another: before and after a change, or one platform and the next.

use std::fmt::Write;

use courser_record::Lab;
use courser_record::lab::{Measure, Value};
use courser_stats::{Unpaired, holm, unpaired};

use crate::labels;
use crate::layout::harmless;
use crate::ranking::{self, FigureSpec};

/// What is compared, the first that both records have: processor time does not depend on the generator.
const COMPARED: [Value; 3] = [Value::Cpu, Value::Tps, Value::MaxTpsAvg100ms];

/// The error that all lines of a comparison share.
const ERROR: f64 = 0.05;

/// Two records against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Diff {
    /// What a reader has to know first: other machines, other variants.
    pub warnings: Vec<String>,
    /// A line for each case, target and figure that both have.
    pub lines: Vec<Line>,
    /// Cases and targets that only one of them has, with figures.
    pub missing: Vec<String>,
}

/// One figure in both records.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The case.
    pub case: String,
    /// The target.
    pub target: String,
    /// The figure.
    pub value: Value,
    /// In the first record: the median of its blocks.
    pub before: f64,
    /// In the second.
    pub after: f64,
    /// What the blocks support; `None` of too few.
    pub compared: Option<Unpaired>,
}

impl Line {
    /// How much worse the second is: 0.03 is 3 % more time, or 3 % fewer transactions. Negative where it is better.
    pub fn worse(&self) -> f64 {
        let ratio = self.compared.map_or(self.after / self.before, |compared| compared.ratio);
        if ranking::is_cost(self.value) { ratio - 1.0 } else { 1.0 - ratio }
    }

    /// How likely a change of just `limit` looks at least this much worse: small where the second is worse by more.
    fn p_worse_than(&self, limit: f64) -> f64 {
        let p = |compared: Unpaired| match ranking::is_cost(self.value) {
            true => compared.p_above(1.0 + limit),
            false => compared.p_below(1.0 - limit),
        };
        self.compared.map_or(1.0, p)
    }

    /// Whether a change of `limit` beyond the limit would have been lost in the noise.
    pub fn cannot_detect(&self, limit: f64) -> bool {
        self.compared.is_none_or(|compared| compared.min_detectable > limit)
    }

    /// The change in words: `3.1 % worse (1.0 % to 5.2 %), detectable from 2.9 %`.
    pub fn change(&self) -> String {
        let Some(compared) = self.compared else {
            return format!("{} {}, one block: no interval", percent(self.worse().abs()), side(self.worse()));
        };
        let cost = ranking::is_cost(self.value);
        let signed = |ratio: f64| if cost { ratio - 1.0 } else { 1.0 - ratio };
        let mut ends = [signed(compared.interval.low), signed(compared.interval.high)];
        ends.sort_by(f64::total_cmp);
        if !compared.is_different() {
            return format!(
                "no change seen ({} to {}), detectable from {}",
                signed_percent(ends[0]),
                signed_percent(ends[1]),
                percent(compared.min_detectable)
            );
        }
        let [near, far] = if self.worse() < 0.0 { [-ends[1], -ends[0]] } else { ends };
        format!(
            "{} {} ({} to {}), detectable from {}",
            percent(self.worse().abs()),
            side(self.worse()),
            percent(near),
            percent(far),
            percent(compared.min_detectable)
        )
    }
}

fn side(worse: f64) -> &'static str {
    if worse > 0.0 { "worse" } else { "better" }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

impl Diff {
    /// The lines that are worse by more than `limit`, beyond what chance explains: a test against the limit itself, on one
    /// side, corrected for the number of lines (Holm). One of any number of lines that are no worse than the limit is
    /// among them in at most 5 of 100 cases.
    pub fn worse_than(&self, limit: f64) -> Vec<&Line> {
        let p: Vec<f64> = self.lines.iter().map(|line| line.p_worse_than(limit)).collect();
        let beyond = holm(&p).into_iter().map(|p| p <= ERROR);
        self.lines.iter().zip(beyond).filter_map(|(line, beyond)| beyond.then_some(line)).collect()
    }
}

/// Compares two records, figure by figure.
pub fn compare(before: &Lab, after: &Lab) -> Diff {
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for cell in &before.cells {
        let line = COMPARED.iter().find_map(|value| line(before, after, &cell.case, &cell.target, *value));
        match line {
            Some(line) => lines.push(line),
            None if !cell.blocks.is_empty() => missing.push(format!("{} of {}", cell.case, cell.target)),
            None => {}
        }
    }
    Diff { warnings: warnings(before, after), lines, missing }
}

fn line(before: &Lab, after: &Lab, case: &str, target: &str, value: Value) -> Option<Line> {
    let staircase = before.case(case)?.measure == Measure::Staircase;
    if staircase != (value == Value::MaxTpsAvg100ms) {
        return None;
    }
    let [had, has] = [before, after].map(|lab| ranking::share(lab, case, target));
    if labels::is_rate(value) && had != has {
        return None;
    }
    let spec: FigureSpec = value.into();
    let series = |lab: &Lab| -> Option<Vec<f64>> {
        let cell = lab.cell(case, target)?;
        let values: Vec<f64> = ranking::by_round(lab, cell, &spec).into_values().collect();
        (!values.is_empty()).then_some(values)
    };
    let (a, b) = (series(before)?, series(after)?);
    Some(Line {
        case: case.to_owned(),
        target: target.to_owned(),
        value,
        before: ranking::median(&a),
        after: ranking::median(&b),
        compared: unpaired(&a, &b),
    })
}

/// What makes two records hard to compare.
fn warnings(before: &Lab, after: &Lab) -> Vec<String> {
    let mut warnings = Vec::new();
    let described = |lab: &Lab| {
        format!(
            "{}, {} cores, {}",
            lab.envelope.machine.cpu_model, lab.envelope.machine.cores, lab.envelope.machine.kernel
        )
    };
    if described(before) != described(after) || before.envelope.machine.name != after.envelope.machine.name {
        let (one, other) = (described(before), described(after));
        let names = (&before.envelope.machine.name, &after.envelope.machine.name);
        warnings.push(format!("of different machines: {} ({one}) and {} ({other})", names.0, names.1));
    }
    if before.suite.name != after.suite.name {
        warnings.push(format!("of different suites: {} and {}", before.suite.name, after.suite.name));
    }
    if before.quick != after.quick {
        warnings.push("one is of the quick variant, whose blocks are shorter".to_owned());
    }
    let shares = |lab: &Lab| lab.cells.iter().map(|cell| cell.server_share.map(|held| held.share)).collect();
    let (one, other): (Vec<Option<f64>>, Vec<Option<f64>>) = (shares(before), shares(after));
    if one.iter().any(|share| !other.contains(share)) {
        warnings.push(
            "targets were held to other shares of their cores (--server-share): rates are not compared, and processor \
             time per connection may differ by some percent for it"
                .to_owned(),
        );
    }
    for target in &before.targets {
        let other = after.targets.iter().find(|other| other.name == target.name);
        if let Some(other) = other.filter(|other| other.version != target.version) {
            warnings.push(format!(
                "{} is {} in one, {} in the other",
                target.name, target.version, other.version
            ));
        }
    }
    warnings
}

/// A Markdown table of the lines, the warnings above it: for a comment on a change.
pub fn markdown(diff: &Diff, names: [&str; 2]) -> String {
    let mut text = String::new();
    for warning in &diff.warnings {
        let _ = writeln!(text, "**Warning:** {}\n", safe(warning));
    }
    let [before, after] = names.map(safe);
    let _ = writeln!(text, "| case | target | figure | {before} | {after} | change |");
    let _ = writeln!(text, "|---|---|---|---:|---:|---|");
    for line in &diff.lines {
        let cells = [
            safe(&line.case),
            safe(&line.target),
            labels::value(line.value).to_owned(),
            labels::amount(line.value, line.before),
            labels::amount(line.value, line.after),
            line.change(),
        ];
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    if !diff.missing.is_empty() {
        let _ = writeln!(text, "\nIn one of the records only: {}.", safe(&diff.missing.join(", ")));
    }
    text
}

/// A Markdown table of several records against a baseline: the loss of each in percent.
pub fn losses(baseline: (&str, &Lab), others: &[(&str, &Lab)]) -> String {
    let compared: Vec<(&str, Diff)> =
        others.iter().map(|(name, lab)| (*name, compare(baseline.1, lab))).collect();
    let mut text = String::new();
    for (name, diff) in &compared {
        for warning in &diff.warnings {
            let _ = writeln!(text, "**Note:** {}: {}\n", safe(name), safe(warning));
        }
    }
    let heads: Vec<String> = compared.iter().map(|(name, _)| format!("{}: loss", safe(name))).collect();
    let _ = writeln!(text, "| case | target | figure | {} | {} |", safe(baseline.0), heads.join(" | "));
    let _ = writeln!(text, "|---|---|---|---:|{}", "---:|".repeat(heads.len()));
    let Some((_, first)) = compared.first() else { return text };
    for line in &first.lines {
        let of = |(_, diff): &(&str, Diff)| {
            let same = |other: &&Line| other.case == line.case && other.target == line.target;
            diff.lines.iter().find(same).map_or("-".to_owned(), |line| signed_percent(line.worse()))
        };
        let cells: Vec<String> = compared.iter().map(of).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            safe(&line.case),
            safe(&line.target),
            labels::value(line.value),
            labels::amount(line.value, line.before),
            cells.join(" | ")
        );
    }
    text
}

/// Text that cannot break a table.
fn safe(text: &str) -> String {
    harmless(text).replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}
