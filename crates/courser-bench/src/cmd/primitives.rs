//! `primitives`: what the cryptographic library does on this machine.

use std::io::IsTerminal;

use courser_lab::primitives::{self, Family, Figure};
use courser_lab::to_record;
use courser_record::Machine;
use courser_report::figure::{UNKNOWN, bytes, count, percent, time};
use courser_report::layout::{Page, Style, Tone};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::PrimitivesArgs;
use crate::deliver::{print, style};
use crate::exit::{Ended, Failure};

/// Measures, and prints a table or JSON.
pub(crate) fn primitives(args: &PrimitivesArgs) -> Result<Ended, Failure> {
    let bar = bar("primitives");
    let measured = primitives::measure(args.time, |done, total| step(&bar, done, total));
    bar.finish_and_clear();
    let figures = measured.map_err(|why| Failure::System(why.to_string()))?;
    let machine = to_record::machine();
    if args.json {
        print(&format!("{:#}\n", document(&figures, &machine)));
    } else {
        print(&table(&figures, &machine, style()));
    }
    Ok(Ended::Well)
}

/// A bar with the time left; nothing where standard error is no terminal.
pub(super) fn bar(what: &'static str) -> ProgressBar {
    let shown = std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(None, target).with_message(what);
    let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} figures, {eta} left");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// How many figures are done, and of how many.
pub(super) fn step(bar: &ProgressBar, done: usize, total: usize) {
    bar.set_length(total as u64);
    bar.set_position(done as u64);
}

/// What stands above a table: the library, and what of the machine decides how fast it is.
pub(super) fn above(page: &mut Page, machine: &Machine) {
    let library: Vec<&str> = machine.crypto.values().map(String::as_str).collect();
    let cpu = if machine.cpu_model.is_empty() { "unknown processor" } else { &machine.cpu_model };
    let place = machine.virtualisation.as_deref().filter(|name| *name != "none");
    let place = place.map(|name| format!(", in a virtual machine ({name})")).unwrap_or_default();
    page.line(Tone::Heading, &library.join(", "));
    page.paragraph(Tone::Plain, "", &format!("{cpu}, {} cores, {}{place}", machine.cores, machine.kernel));
    if let Some(instructions) = machine.facts.get("cryptographic instructions") {
        page.paragraph(Tone::Plain, "", &format!("instructions for cryptography: {instructions}"));
    }
    page.line(Tone::Plain, "");
}

fn table(figures: &[Figure], machine: &Machine, style: Style) -> String {
    let mut page = Page::new(style);
    above(&mut page, machine);
    page.paragraph(
        Tone::Plain,
        "",
        "Processor time on one core: the median of rounds, and how far its 95 % interval reaches either way.",
    );
    page.heading("Signatures");
    page.table(&signatures(figures));
    page.heading("Key exchange");
    page.table(&single(figures, Family::KeyExchange, |figure| figure.name.to_owned()));
    page.heading("Ciphers and digests, 1,000,000 bytes a second");
    page.table(&throughput(figures));
    let reach = figures.iter().filter(|figure| is_throughput(figure)).map(either_way).fold(0.0, f64::max);
    page.line(Tone::Plain, &format!("  95 % intervals: at most {} either way", percent(Some(reach))));
    page.heading("Key derivation");
    page.table(&single(figures, Family::Kdf, |figure| {
        format!("{}, {}", figure.name, size(figure.bytes.unwrap_or_default()))
    }));
    page.finish()
}

/// A row per kind of key: how often it signs, and its signatures are verified.
fn signatures(figures: &[Figure]) -> Vec<Vec<String>> {
    let head = ["", "signed/s", "each", "+-", "verified/s", "each", "+-"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for sign in figures.iter().filter(|figure| figure.family == Family::Sign) {
        let is_same = |other: &&Figure| other.family == Family::Verify && other.name == sign.name;
        let verify = figures.iter().find(is_same).map_or([const { UNKNOWN }; 3].map(str::to_owned), cells);
        let row = [sign.name.to_owned()].into_iter().chain(cells(sign)).chain(verify);
        rows.push(row.collect());
    }
    rows
}

fn single(figures: &[Figure], family: Family, name: impl Fn(&Figure) -> String) -> Vec<Vec<String>> {
    let mut rows = vec![["", "per second", "each", "+-"].map(str::to_owned).to_vec()];
    let of_family = figures.iter().filter(|figure| figure.family == family);
    rows.extend(of_family.map(|figure| [name(figure)].into_iter().chain(cells(figure)).collect()));
    rows
}

/// A row per algorithm, a column per size.
fn throughput(figures: &[Figure]) -> Vec<Vec<String>> {
    let mut sizes: Vec<usize> =
        figures.iter().filter(|figure| is_throughput(figure)).filter_map(|figure| figure.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut rows = vec![[String::new()].into_iter().chain(sizes.iter().map(|bytes| size(*bytes))).collect()];
    let mut names: Vec<&str> = Vec::new();
    for figure in figures.iter().filter(|figure| is_throughput(figure)) {
        if !names.contains(&figure.name) {
            names.push(figure.name);
            rows.push(throughput_of(figure.name, &sizes, figures));
        }
    }
    rows
}

fn throughput_of(name: &str, sizes: &[usize], figures: &[Figure]) -> Vec<String> {
    let cell = |bytes: &usize| {
        let figure = figures.iter().find(|figure| figure.name == name && figure.bytes == Some(*bytes));
        figure
            .and_then(Figure::bytes_per_second)
            .map_or(UNKNOWN.to_owned(), |rate| format!("{:.1}", rate / 1e6))
    };
    [name.to_owned()].into_iter().chain(sizes.iter().map(cell)).collect()
}

fn is_throughput(figure: &Figure) -> bool {
    matches!(figure.family, Family::Cipher | Family::Digest)
}

fn cells(figure: &Figure) -> [String; 3] {
    #[expect(clippy::cast_possible_truncation, reason = "rates are small and positive")]
    let per_second = count(figure.per_second.round() as u64);
    [per_second, time(Some(figure.us)), percent(Some(either_way(figure)))]
}

fn either_way(figure: &Figure) -> f64 {
    figure.interval.either_way()
}

/// A size as a heading.
pub(super) fn size(size: usize) -> String {
    bytes(Some(size as f64))
}

fn document(figures: &[Figure], machine: &Machine) -> Value {
    json!({
        "format": "courser-primitives",
        "version": 1,
        "tool": to_record::tool(),
        "machine": machine,
        "figures": figures.iter().map(entry).collect::<Vec<_>>(),
    })
}

fn entry(figure: &Figure) -> Value {
    json!({
        "name": figure.name,
        "family": figure.family.to_string(),
        "bytes": figure.bytes,
        "per_second": figure.per_second,
        "us": figure.us,
        "us_low": figure.interval.low,
        "us_high": figure.interval.high,
        "operations": figure.operations,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use courser_stats::ConfidenceInterval;

    use super::*;

    /// A machine of paper.
    pub(in crate::cmd) fn machine() -> Machine {
        let one = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Machine {
            name: "paper".into(),
            cpu_model: "Example CPU 3000".into(),
            cores: 2,
            kernel: "Linux 6.1.0".into(),
            memory_bytes: 1 << 30,
            open_files: 1024,
            virtualisation: Some("none".into()),
            crypto: one("aws-lc-rs", "AWS-LC 5.12.0"),
            sysctls: BTreeMap::new(),
            facts: one("cryptographic instructions", "aes sha_ni"),
        }
    }

    fn figure(name: &'static str, family: Family, bytes: Option<usize>, us: f64) -> Figure {
        let interval = ConfidenceInterval { low: us * 0.984, high: us * 1.016 };
        Figure { name, family, bytes, per_second: 1e6 / us, us, interval, operations: 1000 }
    }

    fn figures() -> Vec<Figure> {
        vec![
            figure("RSA-2048", Family::Sign, None, 682.4),
            figure("RSA-2048", Family::Verify, None, 28.4),
            figure("ECDSA P-256", Family::Sign, None, 20.0),
            figure("X25519 agree", Family::KeyExchange, None, 31.25),
            figure("AES-128-GCM seal", Family::Cipher, Some(64), 0.05),
            figure("AES-128-GCM seal", Family::Cipher, Some(16_384), 4.0),
            figure("SHA-256", Family::Digest, Some(64), 0.2),
            figure("HKDF-SHA-256 expand", Family::Kdf, Some(32), 0.5),
        ]
    }

    const TABLE: &str = "\
AWS-LC 5.12.0
Example CPU 3000, 2 cores, Linux 6.1.0
instructions for cryptography: aes sha_ni

Processor time on one core: the median of rounds, and how far its 95 % interval reaches either way.

Signatures
               signed/s    each      +-  verified/s     each      +-
  RSA-2048        1,465  682 us  1.60 %      35,211  28.4 us  1.60 %
  ECDSA P-256    50,000   20 us  1.60 %           -        -       -

Key exchange
                per second     each      +-
  X25519 agree      32,000  31.2 us  1.60 %

Ciphers and digests, 1,000,000 bytes a second
                      64 B  16 KiB
  AES-128-GCM seal  1280.0  4096.0
  SHA-256            320.0       -
  95 % intervals: at most 1.60 % either way

Key derivation
                             per second     each      +-
  HKDF-SHA-256 expand, 32 B   2,000,000  0.50 us  1.60 %
";

    #[test]
    fn the_table_is_as_somebody_approved_of_it() {
        assert_eq!(table(&figures(), &machine(), Style::default()), TABLE);
    }

    #[test]
    fn json_has_every_figure_and_a_version() {
        let document = document(&figures(), &machine());
        assert_eq!((&document["format"], &document["version"]), (&json!("courser-primitives"), &json!(1)));
        assert_eq!(document["machine"]["crypto"]["aws-lc-rs"], "AWS-LC 5.12.0");
        let first = &document["figures"][0];
        assert_eq!(
            (&first["name"], &first["family"], &first["bytes"]),
            (&json!("RSA-2048"), &json!("sign"), &Value::Null)
        );
        assert_eq!(document["figures"].as_array().map(Vec::len), Some(8));
    }
}
