//! The table at the end of a run, and the line of each second.

mod asked;
mod cost;
mod outcome;
mod runs;
mod times;

use courser_record::{Finding, Interval, Record, Run, Severity};

pub use crate::layout::Style;

use crate::figure;
use crate::layout::{Page, Tone};

/// A record for a terminal: whether it may be believed, what was asked, what came out. Of a record with several runs
/// each has a line.
pub fn render(record: &Record, style: Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    asked::show(&mut page, record);
    match record.runs.as_slice() {
        [run] => one(&mut page, record, run),
        runs => runs::show(&mut page, record, runs),
    }
    findings(&mut page, &record.runs);
    page.finish()
}

/// One second, in columns that stay where they are.
pub fn line(interval: &Interval) -> String {
    let response = interval.response.summary();
    format!(
        "{:>4} s {:<7} started {:>6} done {:>6} failed {:>5} full {:>6} resumed {:>6} open {:>6} mean {:>7} p99 {:>7}",
        interval.second,
        interval.phase.to_string(),
        interval.attempted,
        interval.succeeded,
        interval.failed,
        interval.full,
        interval.resumed,
        interval.in_flight,
        figure::time(response.mean_us),
        figure::time(response.p99_us),
    )
}

fn headline(page: &mut Page, record: &Record) {
    if record.is_valid() {
        page.line(Tone::Good, "VALID");
    }
    if record.runs.is_empty() {
        page.line(Tone::Bad, "WITHHELD  nothing was measured");
    }
    for run in record.runs.iter().filter(|run| !run.verdict.valid) {
        let reason = run.verdict.withheld.as_deref().unwrap_or("no reason given");
        let label = if record.runs.len() > 1 { format!("{}: ", run.label) } else { String::new() };
        page.paragraph(Tone::Bad, "WITHHELD  ", &format!("{label}{reason}"));
    }
    if let Some(cut) = &record.cut {
        page.paragraph(
            Tone::Warning,
            "CUT       ",
            &format!("{cut}: the figures are of what there was until then"),
        );
    }
}

fn one(page: &mut Page, record: &Record, run: &Run) {
    outcome::show(page, record, run);
    times::show(page, record, &run.totals);
    cost::show(page, run);
}

/// What matters most first; what several runs say is said once.
fn findings(page: &mut Page, runs: &[Run]) {
    let mut all: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for (run, finding) in runs.iter().flat_map(|run| run.findings.iter().map(move |finding| (run, finding))) {
        match all.iter_mut().find(|(known, _)| *known == finding) {
            Some((_, labels)) => labels.push(&run.label),
            None => all.push((finding, vec![&run.label])),
        }
    }
    if all.is_empty() {
        return;
    }
    all.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.severity));
    page.heading("findings");
    for (finding, labels) in all {
        one_finding(page, finding, if runs.len() > 1 { &labels } else { &[] });
    }
}

fn one_finding(page: &mut Page, finding: &Finding, labels: &[&str]) {
    let runs = (!labels.is_empty()).then(|| labels.join(", "));
    let of: String = [runs.as_deref(), finding.source.as_deref()]
        .into_iter()
        .flatten()
        .map(|of| format!("{of}: "))
        .collect();
    let label = format!("  {:<9}", finding.severity.to_string());
    page.paragraph(tone(finding.severity), &label, &format!("{of}{} [{}]", finding.text, finding.id));
    if !finding.advice.is_empty() {
        page.paragraph(Tone::Plain, "           ", &finding.advice);
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warning,
        Severity::Invalid => Tone::Bad,
    }
}
