//! How long it took.

use courser_record::{Record, Summary, Totals, times};

use crate::figure;
use crate::layout::{Page, Tone};

pub(super) fn show(page: &mut Page, record: &Record, totals: &Totals) {
    if totals.times.is_empty() {
        return;
    }
    page.heading("times");
    if record.experiment.load.rate.is_none() {
        let idle = record.experiment.command == "idle";
        let what = if idle {
            "all connections were opened at once: not what users would wait"
        } else {
            "closed loop: service time under saturation, not what users would wait"
        };
        page.paragraph(Tone::Warning, "  ", what);
    }
    let mut rows =
        vec![["", "count", "mean", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).to_vec()];
    let summary = |name: &str| totals.times.get(name).map(Summary::from);
    let (intended, actual) = (summary(times::RESPONSE_INTENDED), summary(times::RESPONSE_ACTUAL));
    rows.extend(intended.as_ref().map(|summary| row("response, intended start", summary)));
    rows.extend(actual.as_ref().map(|summary| row("response, actual start", summary)));
    rows.extend(intended.zip(actual).map(|(intended, actual)| gap(&intended, &actual)));
    rows.extend(summary(times::SCHEDULE_LAG).map(|summary| row("schedule lag", &summary)));
    for name in others(totals) {
        rows.extend(summary(name).map(|summary| row(&title(name), &summary)));
    }
    page.table(&rows);
}

/// What is left: the moments of connections in their order, then names that are new to this program.
fn others(totals: &Totals) -> impl Iterator<Item = &str> {
    let known = || times::FULL.into_iter().chain(times::RESUMED);
    let named = |name: &str| times::all().any(|known| known == name);
    known().chain(totals.times.keys().map(String::as_str).filter(move |name| !named(name)))
}

/// `full_server_hello` as `full: server hello`.
fn title(name: &str) -> String {
    let kind = ["full", "resumed"]
        .into_iter()
        .find_map(|kind| Some((kind, name.strip_prefix(kind)?.strip_prefix('_')?)));
    kind.map_or(name.to_owned(), |(kind, moment)| format!("{kind}: {moment}")).replace('_', " ")
}

fn row(name: &str, summary: &Summary) -> Vec<String> {
    let times =
        [summary.mean_us, summary.p50_us, summary.p90_us, summary.p99_us, summary.p99_9_us, summary.max_us];
    let cells = times.into_iter().map(figure::time);
    [name.to_owned(), figure::count(summary.count)].into_iter().chain(cells).collect()
}

/// What the generator's and the connection's waiting added: how much a count from the actual start would have hidden.
fn gap(intended: &Summary, actual: &Summary) -> Vec<String> {
    let less =
        |intended: Option<f64>, actual: Option<f64>| intended.zip(actual).map(|(i, a)| (i - a).max(0.0));
    let gap = Summary {
        count: intended.count.min(actual.count),
        mean_us: less(intended.mean_us, actual.mean_us),
        p50_us: less(intended.p50_us, actual.p50_us),
        p90_us: less(intended.p90_us, actual.p90_us),
        p99_us: less(intended.p99_us, actual.p99_us),
        p99_9_us: less(intended.p99_9_us, actual.p99_9_us),
        max_us: less(intended.max_us, actual.max_us),
    };
    row("  the gap between them", &gap)
}
