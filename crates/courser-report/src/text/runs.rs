//! Many runs, a line for each: the steps of a staircase, the trials of a search.

use courser_record::{GeneratorUsage, LoadKind, Record, Run, Summary, times};
use courser_stats::number::float;

use super::outcome::arrivals;
use crate::layout::{Page, Tone};
use crate::{figure, labels};

/// Columns of the longest bar.
const BAR: u64 = 40;

pub(super) fn show(page: &mut Page, record: &Record, runs: &[Run]) {
    if runs.is_empty() {
        return;
    }
    page.heading("runs");
    let heads =
        ["run", "offered", "attempted", "completed", "failed", "mean", "p99", "server", "busy", "verdict"];
    let rows = std::iter::once(heads.map(str::to_owned).to_vec()).chain(runs.iter().map(row));
    page.table(&rows.collect::<Vec<_>>());
    page.paragraph(Tone::Plain, "  ", &legend(record));
    if runs.iter().any(|run| run.totals.completed.is_none()) {
        page.paragraph(Tone::Plain, "  ", labels::WITHOUT_COMPLETIONS);
    }
    if record.experiment.load.kind == LoadKind::Staircase {
        chart(page, record, runs);
    }
}

fn row(run: &Run) -> Vec<String> {
    let totals = &run.totals;
    let connections = &totals.connections;
    let response =
        totals.times.get(times::RESPONSE_INTENDED).or_else(|| totals.times.get(times::RESPONSE_ACTUAL));
    let response = response.map(Summary::from).unwrap_or_default();
    let server = run.server.as_ref();
    let server =
        server.and_then(|server| Some(server.user_us_per_connection? + server.system_us_per_connection?));
    vec![
        run.label.clone(),
        figure::rate(run.offered_rate),
        figure::count(connections.attempted),
        figure::rate(totals.per_second(totals.connections_served())),
        figure::percent(figure::share(connections.failed, connections.attempted)),
        figure::time(response.mean_us),
        figure::time(response.p99_us),
        figure::time(server),
        figure::percent(busiest(&run.generators)),
        if run.verdict.valid { "valid" } else { "inconclusive" }.to_owned(),
    ]
}

/// The thread of a generator that had least left.
fn busiest(generators: &[GeneratorUsage]) -> Option<f64> {
    let threads = generators.iter().flat_map(|generator| &generator.threads);
    threads.filter_map(|thread| thread.busy).max_by(f64::total_cmp)
}

fn legend(record: &Record) -> String {
    let load = &record.experiment.load;
    let response = match load.rate {
        Some(_) => "response times from the intended start",
        None => "closed loop: service time under saturation, not what users would wait",
    };
    format!(
        "offered: {}; attempted, completed (in the window, whenever begun), failed: connections; {response}; server: its processor time per connection; \
         busy: the generator's busiest thread",
        arrivals(load.kind)
    )
}

/// What was completed of what was offered: a mark of a bar is so many connections a second, a dot one that is missing.
fn chart(page: &mut Page, record: &Record, runs: &[Run]) {
    let each = record.experiment.tls.as_ref().map_or(1, |tls| tls.reuse.max(1));
    let rates = |run: &Run| {
        let achieved = run.totals.per_second(run.totals.connections_served())?;
        Some((run.offered_rate? * f64::from(each), achieved))
    };
    let rates: Vec<(f64, f64)> = runs.iter().filter_map(rates).collect();
    let most = rates.iter().map(|(offered, achieved)| offered.max(*achieved)).fold(0.0, f64::max);
    if most <= 0.0 || rates.len() < runs.len() {
        return;
    }
    page.heading("connections completed of those offered");
    let row = |&(offered, achieved): &(f64, f64)| {
        let of = format!("{} of {}", figure::rate(Some(achieved)), figure::rate(Some(offered)));
        format!("{of:>24}  {}", bar(achieved / most, offered / most))
    };
    rates.iter().for_each(|rate| page.line(Tone::Plain, &row(rate)));
    if let [.., (offered, last)] = rates[..]
        && let completed = rates.iter().map(|(_, completed)| *completed).fold(0.0, f64::max)
        && last < 0.95 * completed
    {
        let [most, last, offered] = [completed, last, offered].map(|rate| figure::rate(Some(rate)));
        page.paragraph(
            Tone::Plain,
            "  ",
            &format!("past its maximum of {most} it fell to {last} where {offered} were offered"),
        );
    }
}

/// Shares of the longest bar.
fn bar(achieved: f64, offered: f64) -> String {
    let marks = |share: f64| (1..=BAR).filter(|mark| float(*mark) <= share * float(BAR) + 0.5).count();
    let (full, all) = (marks(achieved), marks(offered));
    format!("{}{}", "#".repeat(full), ".".repeat(all.saturating_sub(full)))
}
