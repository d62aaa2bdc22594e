//! Many runs, a line for each: the steps of a staircase, the trials of a search and what it found.

use courser_record::{Found, Record, Run, Summary, times};

use crate::figure;
use crate::layout::{Page, Tone};

pub(super) fn show(page: &mut Page, record: &Record, runs: &[Run]) {
    if !record.found.is_empty() {
        page.heading("found");
        record.found.iter().for_each(|found| page.paragraph(Tone::Plain, "  ", &told(found)));
    }
    if runs.is_empty() {
        return;
    }
    page.heading("runs");
    let heads = ["run", "offered", "succeeded", "count", "failed", "mean", "p99", "full", "verdict"];
    let rows = std::iter::once(heads.map(str::to_owned).to_vec()).chain(runs.iter().map(row));
    page.table(&rows.collect::<Vec<_>>());
    page.paragraph(Tone::Plain, "  ", time_named(record));
}

fn told(found: &Found) -> String {
    let interval = found.rate_low.zip(found.rate_high).map(|(low, high)| {
        format!(" (95 % interval {} to {})", figure::rate(Some(low)), figure::rate(Some(high)))
    });
    let note = found.note.as_ref().map(|note| format!("; {note}"));
    let rate = found.rate.map_or_else(|| "no rate".to_owned(), |rate| figure::rate(Some(rate)));
    format!("{}: {rate}{}{}", found.rule, interval.unwrap_or_default(), note.unwrap_or_default())
}

fn row(run: &Run) -> Vec<String> {
    let totals = &run.totals;
    let connections = &totals.connections;
    let response =
        totals.times.get(times::RESPONSE_INTENDED).or_else(|| totals.times.get(times::RESPONSE_ACTUAL));
    let response = response.map(Summary::from).unwrap_or_default();
    let full = totals.negotiated.iter().filter(|kind| kind.handshake == courser_record::Handshake::Full);
    let full = full.fold(0_u64, |sum, kind| sum.saturating_add(kind.count));
    vec![
        run.label.clone(),
        figure::rate(run.offered_rate),
        figure::rate(totals.per_second(connections.succeeded)),
        figure::count(connections.succeeded),
        figure::percent(figure::share(connections.failed, connections.attempted)),
        figure::time(response.mean_us),
        figure::time(response.p99_us),
        figure::percent(figure::share(full, totals.handshakes())),
        if run.verdict.valid { "valid" } else { "withheld" }.to_owned(),
    ]
}

fn time_named(record: &Record) -> &'static str {
    match record.experiment.load.rate {
        Some(_) => "connections; response times from the intended start",
        None => "connections; closed loop: service time under saturation, not what users would wait",
    }
}
