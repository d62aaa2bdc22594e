//! docs/metrics.md, which is made from the table of metrics.

use std::fmt::Write as _;

use courser_telemetry::metrics::METRICS;

use crate::page::with_table;

#[test]
fn the_page_has_the_metrics_of_today() {
    crate::page::hold("metrics.md", |page| with_table(page, "metrics", &table()));
}

fn table() -> String {
    let mut table =
        "| metric | type | labels | in `fleet status --json` | what it counts |\n|---|---|---|---|---|\n"
            .to_owned();
    for metric in METRICS {
        let labels: Vec<_> =
            metric.labels.iter().map(|(name, values)| format!("`{name}` ({values})")).collect();
        let (name, kind, help) = (metric.name, metric.kind.name(), metric.help);
        let (labels, places) = (labels.join(", "), metric.status.iter().map(|place| format!("`{place}`")));
        let places = places.collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| `{name}` | {kind} | {labels} | {places} | {help} |");
    }
    table
}
