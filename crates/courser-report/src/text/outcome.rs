//! What came out: what was agreed on, rates, failures.

use std::collections::BTreeSet;

use courser_record::{LoadKind, Outcomes, Record, Resumption, Run, Totals};
use courser_stats::Counts;

use crate::layout::{Page, Tone};
use crate::{figure, labels};

/// How many failures are shown in their own words, each kind of words once.
const SHOWN: usize = 5;

pub(super) fn show(page: &mut Page, record: &Record, run: &Run) {
    if record.experiment.tls.is_some() {
        negotiated(page, record, &run.totals);
    }
    rates(page, record.experiment.load.kind, run);
    failures(page, run);
}

fn negotiated(page: &mut Page, record: &Record, totals: &Totals) {
    page.heading("negotiated");
    let all = totals.handshakes();
    let mut kinds = totals.negotiated.clone();
    kinds.sort_by(|left, right| right.count.cmp(&left.count).then_with(|| left.cmp(right)));
    for kind in &kinds {
        let retried = kind.retried.then_some("after HelloRetryRequest");
        let terms = [
            Some(kind.version.as_str()),
            Some(&kind.suite),
            kind.group.as_deref(),
            kind.scheme.as_deref(),
            retried,
        ];
        let share = figure::percent(figure::share(kind.count, all));
        let terms = terms.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let handshake = kind.handshake.to_string();
        let text = format!("{handshake}, {terms} ({})", figure::count(kind.count));
        page.paragraph(Tone::Plain, &format!("  {share:>7}  "), &text);
    }
    page.paragraph(Tone::Plain, "  ", &resumption(record, totals));
    page.paragraph(Tone::Plain, "  ", &extras(totals));
}

/// The resumption that was agreed on, beside what was requested.
fn resumption(record: &Record, totals: &Totals) -> String {
    let full = totals.negotiated.iter().filter(|kind| kind.handshake == courser_record::Handshake::Full);
    let full = full.fold(0_u64, |sum, kind| sum.saturating_add(kind.count));
    let share = figure::percent(figure::share(full, totals.handshakes()));
    let requested = record.experiment.tls.as_ref().map(|offer| match (offer.resumption, offer.reuse) {
        (Resumption::Never, _) => 1.0,
        (_, 0) => 0.0,
        (_, reuse) => 1.0 / f64::from(reuse),
    });
    format!(
        "full handshakes {share}, requested {}; offered: {}",
        figure::percent(requested),
        listed(&totals.offered)
    )
}

fn extras(totals: &Totals) -> String {
    let mut parts = Vec::new();
    if !totals.tickets_received.is_empty() {
        let tickets = totals.tickets_received.iter().map(|(n, count)| (n.to_string(), *count)).collect();
        parts.push(format!("tickets per handshake: {}", listed(&tickets)));
    }
    if totals.early_data_accepted > 0 {
        parts.push(format!("early data accepted {}", figure::count(totals.early_data_accepted)));
    }
    if !totals.alpn.is_empty() {
        parts.push(format!("ALPN: {}", listed(&totals.alpn)));
    }
    parts.join("; ")
}

/// Kinds and their counts; the kind without a name is none.
fn listed(counts: &Counts<String>) -> String {
    let kind = |kind: &String| if kind.is_empty() { "none".to_owned() } else { kind.clone() };
    let listed: Vec<_> =
        counts.iter().map(|(name, count)| format!("{} ({})", kind(name), figure::count(*count))).collect();
    if listed.is_empty() { figure::UNKNOWN.to_owned() } else { listed.join(", ") }
}

fn rates(page: &mut Page, kind: LoadKind, run: &Run) {
    let totals = &run.totals;
    page.heading(&format!("rates over {}", figure::duration(totals.window_us)));
    let heads =
        ["", "completed", "", "attempted", "", "succeeded", "", "failed", ""].map(str::to_owned).to_vec();
    let completed = totals.completed;
    let connections = completed.map(|completed| completed.connections);
    let mut rows = vec![heads, outcomes("connections", totals, &totals.connections, connections)];
    if totals.requests.attempted > 0 {
        let requests = completed.map(|completed| completed.transactions);
        rows.push(outcomes("requests", totals, &totals.requests, requests));
    }
    page.table(&rows);
    let what = match completed {
        Some(_) => {
            "completed: within the window, whenever it was to start; the others: what was to start in it"
        }
        None => labels::WITHOUT_COMPLETIONS,
    };
    page.paragraph(Tone::Plain, "  ", what);
    let offered =
        run.offered_rate.map(|rate| format!("offered: {} {}", arrivals(kind), figure::rate(Some(rate))));
    let sessions = (totals.sessions > 0).then(|| {
        format!(
            "sessions begun {} ({})",
            figure::rate(totals.per_second(totals.sessions)),
            figure::count(totals.sessions)
        )
    });
    let bytes = |bytes: u64| figure::bytes(totals.per_second(bytes));
    let goodput =
        format!("goodput {}/s in, {}/s out", bytes(totals.received_bytes), bytes(totals.sent_bytes));
    let rest: Vec<_> = [offered, sessions, Some(goodput)].into_iter().flatten().collect();
    page.paragraph(Tone::Plain, "  ", &rest.join("; "));
}

/// What it is that arrives at the offered rate.
pub(super) fn arrivals(kind: LoadKind) -> &'static str {
    match kind {
        LoadKind::Sessions | LoadKind::Staircase => "sessions",
        LoadKind::ConstantRate | LoadKind::Closed | LoadKind::Handshake | LoadKind::Abandon => "connections",
    }
}

/// Each rate with the count behind it; of failures the share too.
fn outcomes(name: &str, totals: &Totals, outcomes: &Outcomes, completed: Option<u64>) -> Vec<String> {
    let all = [completed, Some(outcomes.attempted), Some(outcomes.succeeded), Some(outcomes.failed)];
    let count =
        |count: Option<u64>| count.map_or(String::new(), |count| format!("({})", figure::count(count)));
    let cells =
        all.into_iter().flat_map(|of| [figure::rate(of.and_then(|of| totals.per_second(of))), count(of)]);
    let loss = figure::percent(figure::share(outcomes.failed, outcomes.attempted));
    std::iter::once(name.to_owned()).chain(cells).chain([loss]).collect()
}

fn failures(page: &mut Page, run: &Run) {
    let totals = &run.totals;
    if totals.failures.is_empty() {
        return;
    }
    page.heading("failures");
    let mut classes: Vec<_> = totals.failures.iter().collect();
    classes.sort_by_key(|(class, count)| (std::cmp::Reverse(**count), *class));
    let rows: Vec<_> = classes
        .into_iter()
        .map(|(class, failed)| {
            let share = figure::percent(figure::share(*failed, totals.connections.attempted));
            vec![class.clone(), figure::count(*failed), share]
        })
        .collect();
    page.table(&rows);
    let mut seen = BTreeSet::new();
    let new = totals.failure_samples.iter().filter(|sample| seen.insert((&sample.class, &sample.detail)));
    for sample in new.take(SHOWN) {
        let after = sample.at_unix_us.saturating_sub(run.window.start_unix_us);
        let label = format!("  first after {}  ", figure::duration(after));
        page.paragraph(Tone::Plain, &label, &format!("{}: {}", sample.class, sample.detail));
    }
}
