//! `overheads`: both ends of TLS in this process, full handshakes against resumed ones.

use courser_lab::overheads::{self, Cost, Error, Library, Options, Row};
use courser_lab::to_record;
use courser_record::Machine;
use courser_report::figure::{UNKNOWN, count, percent};
use courser_report::layout::{Page, Style, Tone};
use serde_json::{Value, json};

use super::primitives::{above, bar, size, step};
use crate::cli::OverheadsArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};

/// Measures, and prints tables or JSON.
pub(crate) fn overheads(args: &OverheadsArgs) -> Result<Ended, Failure> {
    let options = Options {
        library: Library::Own,
        bytes: sizes(&args.bytes),
        number: args.number,
        suites: args.suites.clone(),
        keys: Vec::new(),
    };
    let bar = bar("overheads");
    let measured = overheads::measure(&options, |done, total| step(&bar, done, total));
    bar.finish_and_clear();
    let rows = measured.map_err(|why| match why {
        Error::Suite(_) => Failure::usage(why),
        _ => Failure::System(why.to_string()),
    })?;
    let machine = to_record::machine();
    if args.json {
        print(&format!("{:#}\n", document(&rows, args.number, &machine)));
    } else {
        print(&table(&rows, args.number, &machine, style()));
    }
    Ok(Ended::Well)
}

/// Ascending, each once: they become columns.
fn sizes(asked: &[usize]) -> Vec<usize> {
    let mut sizes = asked.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn table(rows: &[Row], number: u32, machine: &Machine, style: Style) -> String {
    let mut page = Page::new(style);
    above(&mut page, machine);
    let about = format!(
        "Microseconds of processor time per connection, full / resumed, by bytes sent there and back; \
         {} connections a figure, key exchange X25519, no network. Medians; divide by 1000 for seconds per 1000 \
         connections.",
        count(number.into())
    );
    page.paragraph(Tone::Plain, "", &about);
    for (name, of) in [
        ("Both ends", Cost::total_us as fn(&Cost) -> f64),
        ("The server", |cost| cost.server_us),
        ("The client", |cost| cost.client_us),
    ] {
        page.heading(name);
        page.table(&matrix(rows, of));
    }
    if let Some(reach) = reach(rows) {
        page.line(Tone::Plain, "");
        page.line(
            Tone::Plain,
            &format!("95 % intervals of both ends: at most {} either way", percent(Some(reach))),
        );
    }
    page.finish()
}

/// A row per suite and key, a column per size.
fn matrix(rows: &[Row], of: impl Fn(&Cost) -> f64) -> Vec<Vec<String>> {
    let sizes = sizes(&rows.iter().map(|row| row.bytes).collect::<Vec<_>>());
    let mut lines = vec![[String::new()].into_iter().chain(sizes.iter().map(|bytes| size(*bytes))).collect()];
    let mut kinds = Vec::new();
    for kind in rows.iter().map(|row| (row.suite, row.key)) {
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        let cell = |bytes: &usize| {
            let row = rows.iter().find(|row| (row.suite, row.key) == kind && row.bytes == *bytes);
            row.map_or(UNKNOWN.to_owned(), |row| format!("{:.0} / {:.0}", of(&row.full), of(&row.resumed)))
        };
        let name = format!("{}, {}", kind.0, kind.1);
        lines.push([name].into_iter().chain(sizes.iter().map(cell)).collect());
    }
    lines
}

/// The widest interval.
fn reach(rows: &[Row]) -> Option<f64> {
    let intervals = rows.iter().flat_map(|row| [row.full, row.resumed]).filter_map(|cost| cost.interval);
    intervals.map(|interval| interval.either_way()).reduce(f64::max)
}

fn document(rows: &[Row], number: u32, machine: &Machine) -> Value {
    json!({
        "format": "courser-overheads",
        "version": 1,
        "tool": to_record::tool(),
        "machine": machine,
        "connections": number,
        "group": "X25519",
        "rows": rows.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(row: &Row) -> Value {
    json!({
        "suite": row.suite,
        "key": row.key.to_string(),
        "bytes": row.bytes,
        "full": cost(&row.full),
        "resumed": cost(&row.resumed),
    })
}

fn cost(cost: &Cost) -> Value {
    json!({
        "client_us": cost.client_us,
        "server_us": cost.server_us,
        "total_us_low": cost.interval.map(|interval| interval.low),
        "total_us_high": cost.interval.map(|interval| interval.high),
    })
}

#[cfg(test)]
mod tests {
    use courser_lab::overheads::Key;
    use courser_stats::ConfidenceInterval;

    use super::super::primitives::tests::machine;
    use super::*;

    fn row(suite: &'static str, key: Key, bytes: usize, us: f64) -> Row {
        let cost = |client_us, server_us| {
            let total = client_us + server_us;
            Cost {
                client_us,
                server_us,
                interval: Some(ConfidenceInterval { low: total * 0.98, high: total * 1.02 }),
            }
        };
        Row { suite, key, bytes, full: cost(us, us * 1.5), resumed: cost(us / 4.0, us / 2.0) }
    }

    fn rows() -> Vec<Row> {
        vec![
            row("TLS_AES_128_GCM_SHA256", Key::EcdsaP256, 1, 100.0),
            row("TLS_AES_128_GCM_SHA256", Key::EcdsaP256, 102_400, 300.0),
            row("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Key::Rsa2048, 1, 1000.0),
            row("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", Key::Rsa2048, 102_400, 1200.0),
        ]
    }

    const TABLE: &str = "\
AWS-LC 5.12.0
Example CPU 3000, 2 cores, Linux 6.1.0
instructions for cryptography: aes sha_ni

Microseconds of processor time per connection, full / resumed, by bytes sent there and back; 1,000 connections
a figure, key exchange X25519, no network. Medians; divide by 1000 for seconds per 1000 connections.

Both ends
                                                          1 B     100 KiB
  TLS_AES_128_GCM_SHA256, P-256                      250 / 75   750 / 225
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, RSA-2048  2500 / 750  3000 / 900

The server
                                                          1 B     100 KiB
  TLS_AES_128_GCM_SHA256, P-256                      150 / 50   450 / 150
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, RSA-2048  1500 / 500  1800 / 600

The client
                                                          1 B     100 KiB
  TLS_AES_128_GCM_SHA256, P-256                      100 / 25    300 / 75
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, RSA-2048  1000 / 250  1200 / 300

95 % intervals of both ends: at most 2 % either way
";

    #[test]
    fn the_table_is_as_somebody_approved_of_it() {
        assert_eq!(table(&rows(), 1000, &machine(), Style::default()), TABLE);
    }

    #[test]
    fn json_has_every_row_and_a_version() {
        let document = document(&rows(), 1000, &machine());
        assert_eq!((&document["format"], &document["version"]), (&json!("courser-overheads"), &json!(1)));
        let last = &document["rows"][3];
        assert_eq!((&last["key"], &last["bytes"]), (&json!("RSA-2048"), &json!(102_400)));
        assert_eq!(
            (&last["full"]["server_us"], &last["resumed"]["client_us"]),
            (&json!(1800.0), &json!(300.0))
        );
    }

    #[test]
    fn sizes_become_columns() {
        assert_eq!(sizes(&[1024, 1, 1024]), [1, 1024]);
    }
}
