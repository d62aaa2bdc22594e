//! Results as a table for people and as JSON for programs.

use std::{fmt::Write, fs};

use serde_json::{Value, json};

use crate::{case::Case, options::Scale, sample::Sample, terminator::COURSER};

/// Version of the JSON's shape.
const SCHEMA: &str = "courser-cpu-per-connection/1";

/// Whom courser is compared with. stunnel is left out: a thread per connection is another kind of program.
const COMPARED: [&str; 3] = ["nginx", "haproxy", "hitch"];

/// From this share on a core counts as the bottleneck.
const SATURATED: f64 = 0.95;

/// From this share of a core on, what other programs use of it disturbs: caches and clock speed are shared.
const DISTURBED: f64 = 0.1;

/// All that was measured.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// Name and version of each terminator, in the order of every row's columns.
    pub(crate) lanes: Vec<(String, String)>,
    pub(crate) options: Scale,
}

/// The samples of one case, by terminator.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) samples: Vec<Vec<Sample>>,
    /// Why a terminator was given up.
    pub(crate) failures: Vec<Option<String>>,
}

impl Row {
    pub(crate) fn new(case: Case, lanes: usize) -> Self {
        Self { case, samples: vec![Vec::new(); lanes], failures: vec![None; lanes] }
    }

    fn median(&self, lane: usize) -> Option<f64> {
        median(self.samples[lane].iter().map(|sample| sample.value).collect())
    }

    /// The largest distance between a terminator's samples, as a share of its median.
    fn spread(&self) -> f64 {
        let spread = |lane: usize| {
            let values = self.samples[lane].iter().map(|sample| sample.value);
            let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
            self.median(lane).map_or(0.0, |median| (high - low) / median)
        };
        (0..self.samples.len()).map(spread).fold(0.0, f64::max)
    }

    /// Whether the client could not ask for more.
    fn saturated(&self, lane: usize) -> bool {
        self.typical(lane, |sample| sample.client_core) >= SATURATED
    }

    /// Whether other programs ran on the cores of the measurement.
    fn disturbed(&self, lane: usize) -> bool {
        self.typical(lane, |sample| sample.server_core - sample.server) >= DISTURBED
            || self.typical(lane, |sample| sample.client_core - sample.client) >= DISTURBED
    }

    fn typical(&self, lane: usize, field: fn(&Sample) -> f64) -> f64 {
        median(self.samples[lane].iter().map(field).collect()).unwrap_or_default()
    }
}

impl Report {
    pub(crate) fn table(&self) -> String {
        let mut text = self.heading();
        for row in &self.rows {
            self.table_row(row, &mut text);
        }
        self.legend(&mut text);
        text
    }

    pub(crate) fn json(&self) -> String {
        let Scale { rounds, connections, concurrency, idle } = self.options;
        let report = json!({
            "schema": SCHEMA,
            "machine": { "cpu": cpu_model(), "kernel": kernel() },
            "rounds": rounds, "connections": connections, "concurrency": concurrency, "idle": idle,
            "cases": self.rows.iter().map(|row| self.json_row(row)).collect::<Vec<_>>(),
        });
        format!("{report:#}")
    }

    /// courser's median over the smallest of those it is compared with.
    fn ratio(&self, row: &Row) -> Option<f64> {
        let lane = |wanted: &dyn Fn(&str) -> bool| {
            let lanes = self.lanes.iter().enumerate().filter(|(_, (name, _))| wanted(name));
            lanes.filter_map(|(lane, _)| row.median(lane)).reduce(f64::min)
        };
        let best = lane(&|name| COMPARED.iter().any(|compared| name.starts_with(compared)))?;
        Some(lane(&|name| name == COURSER)? / best)
    }

    fn heading(&self) -> String {
        let Scale { rounds, connections, concurrency, idle } = self.options;
        let mut text = format!(
            "Per connection, median of {rounds} rounds of {connections} connections, {concurrency} at a time \
             (memory: {idle} idle)\n\n{:<28} {:>4}",
            "case", "unit"
        );
        for (name, _) in &self.lanes {
            let _ = write!(text, " {name:>9}");
        }
        text.push_str("  courser/best  spread\n");
        text
    }

    fn table_row(&self, row: &Row, text: &mut String) {
        let _ = write!(text, "{:<28} {:>4}", row.case.name(), row.case.unit());
        for lane in 0..self.lanes.len() {
            let value = row.median(lane).map_or("-".into(), |value| format!("{value:.1}"));
            let _ = write!(text, " {value:>9}");
        }
        let ratio = self.ratio(row).map_or("-".into(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(text, "  {ratio:>12}  {:>5.1}%", row.spread() * 100.0);
    }

    fn legend(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\nbest: the smallest of {}. spread: largest minus smallest sample over the median, worst column.\n",
            COMPARED.join(", ")
        );
        for row in &self.rows {
            let _ = writeln!(text, "{:<28} {}", row.case.name(), row.case.description());
            self.remarks(row, text);
        }
        let _ = writeln!(text, "\nmachine                      {}, kernel {}", cpu_model(), kernel());
        for (name, version) in &self.lanes {
            let _ = writeln!(text, "{name:<28} {version}");
        }
    }

    fn remarks(&self, row: &Row, text: &mut String) {
        let names = |wanted: &dyn Fn(usize) -> bool| {
            let names: Vec<_> =
                (0..self.lanes.len()).filter(|&lane| wanted(lane)).map(|lane| &*self.lanes[lane].0).collect();
            names.join(", ")
        };
        for (remark, who) in [
            ("the client's core was full against", names(&|lane| row.saturated(lane))),
            ("disturbed: other programs used the cores beside", names(&|lane| row.disturbed(lane))),
        ] {
            if !who.is_empty() {
                let _ = writeln!(text, "{:<28} {remark} {who}", "");
            }
        }
        for (lane, failure) in row.failures.iter().enumerate() {
            if let Some(why) = failure.as_ref().and_then(|why| why.lines().next()) {
                let _ = writeln!(text, "{:<28} {} skipped: {why}", "", self.lanes[lane].0);
            }
        }
    }

    fn json_row(&self, row: &Row) -> Value {
        let server = |(lane, (name, version)): (usize, &(String, String))| {
            let of = |field: fn(&Sample) -> f64| row.samples[lane].iter().map(field).collect::<Vec<_>>();
            json!({
                "name": name,
                "version": version,
                "median": row.median(lane),
                "samples": of(|sample| sample.value),
                "server_share": of(|sample| sample.server),
                "server_core_busy": of(|sample| sample.server_core),
                "client_share": of(|sample| sample.client),
                "client_core_busy": of(|sample| sample.client_core),
                "skipped": row.failures[lane],
            })
        };
        json!({
            "case": row.case.name(),
            "description": row.case.description(),
            "unit": row.case.unit(),
            "ratio_to_best": self.ratio(row),
            "servers": self.lanes.iter().enumerate().map(server).collect::<Vec<_>>(),
        })
    }
}

/// The mean of the two in the middle if there are two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("unknown processor".into(), |(_, name)| name.trim().to_owned())
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}
