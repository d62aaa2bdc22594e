//! The table at the end of a run, and the line of each second.

mod cost;
mod experiment;
mod findings;
mod found;
mod outcome;
mod runs;
mod times;

use courser_record::{Record, Run, Second};

pub use crate::layout::Style;

use crate::figure;
use crate::layout::{Page, Tone};

/// A record for a terminal: whether it may be believed, what was found, what was asked, what came out. Of a record with
/// several runs each has a line.
pub fn render(record: &Record, style: Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    found::show(&mut page, record);
    experiment::show(&mut page, record);
    match record.runs.as_slice() {
        [run] => {
            outcome::show(&mut page, record, run);
            times::show(&mut page, record, &run.totals);
            cost::show(&mut page, run);
        }
        runs => runs::show(&mut page, record, runs),
    }
    findings::show(&mut page, &record.runs);
    page.finish()
}

/// One second, in columns that stay where they are.
pub fn line(interval: &Second) -> String {
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
        page.line(Tone::Bad, "INCONCLUSIVE  nothing was measured");
    }
    if let Some(text) = inconclusive(&record.runs) {
        page.paragraph(Tone::Bad, "INCONCLUSIVE  ", &text);
    }
    if let Some(cut) = &record.envelope.cut {
        page.paragraph(
            Tone::Warning,
            "CUT       ",
            &format!("{cut}: the figures are of what there was until then"),
        );
    }
}

/// Why, of a single run; of several how many, and the first one's reason.
fn inconclusive(runs: &[Run]) -> Option<String> {
    let inconclusive: Vec<_> = runs.iter().filter(|run| !run.verdict.valid).collect();
    let first = inconclusive.first()?;
    let reason = first.verdict.inconclusive.as_deref().unwrap_or("no reason given");
    Some(match runs.len() {
        1 => reason.to_owned(),
        all => format!("{} of {all} runs, the first is {}: {reason}", inconclusive.len(), first.label),
    })
}
