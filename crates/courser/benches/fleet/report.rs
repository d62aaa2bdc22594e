//! Results as a table for people and as JSON for programs.

use serde_json::{Value, json};

use crate::{
    options::{Case, Options},
    sample::Sample,
};

/// Version of the JSON's shape.
const SCHEMA: &str = "courser-fleet/1";

/// All that was measured.
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) options: Options,
}

/// The samples of a case.
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) samples: Vec<Sample>,
}

impl Report {
    pub(crate) fn print(&self, as_json: bool) {
        if as_json { println!("{:#}", self.json()) } else { self.table() }
    }

    fn table(&self) {
        println!("medians of {} rounds; percent of one core", self.options.rounds);
        println!(
            "case        user  kernel     all  wanted  ratio  spread  sessions/s  datagrams/s       lost"
        );
        self.rows.iter().for_each(Row::line);
        println!(
            "ratio: by unicast the user's time to what is wanted, else all of it; spread: of that, over rounds"
        );
    }

    fn json(&self) -> Value {
        let Options { rounds, stretch, peers, senders, .. } = self.options;
        let row = |row: &Row| {
            let sample = |sample: &Sample| {
                json!({
                    "user_percent": sample.share.user,
                    "kernel_percent": sample.share.kernel,
                    "idle_percent": sample.idle.total(),
                    "measured_seconds": sample.seconds,
                    "sessions": sample.made,
                    "datagrams": sample.datagrams,
                    "lost": sample.lost,
                })
            };
            let samples: Vec<_> = row.samples.iter().map(sample).collect();
            json!({ "case": row.case.name(), "ratio": row.judged() / row.case.target(), "samples": samples })
        };
        json!({
            "schema": SCHEMA,
            "rounds": rounds,
            "seconds": stretch.as_secs(),
            "peers": peers,
            "senders": senders,
            "cases": self.rows.iter().map(row).collect::<Vec<_>>(),
        })
    }
}

impl Case {
    /// The figure that is held against the target.
    fn judged(self, sample: &Sample) -> f64 {
        if self == Self::Unicast { sample.share.user } else { sample.share.total() }
    }
}

impl Row {
    fn line(&self) {
        let judged = self.judged();
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for sample in &self.samples {
            let value = self.case.judged(sample);
            (low, high) = (low.min(value), high.max(value));
        }
        println!(
            "{:10} {:5.2} {:7.2} {:7.2} {:7.1} {:6.2} {:7.2} {:11.0} {:12.0} {:10}",
            self.case.name(),
            self.median(|sample| sample.share.user),
            self.median(|sample| sample.share.kernel),
            self.median(|sample| sample.share.total()),
            self.case.target(),
            judged / self.case.target(),
            high - low,
            self.median(|sample| sample.made as f64 / sample.seconds),
            self.median(|sample| sample.datagrams as f64 / sample.seconds),
            self.lost(),
        );
    }

    fn judged(&self) -> f64 {
        self.median(|sample| self.case.judged(sample))
    }

    fn lost(&self) -> u64 {
        self.samples.iter().map(|sample| sample.lost).sum()
    }

    /// The mean of the two in the middle if there are two.
    fn median(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        let mut values: Vec<_> = self.samples.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
    }
}
