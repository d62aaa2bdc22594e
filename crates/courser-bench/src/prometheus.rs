//! `--prometheus-text`: the figures of the last run in Prometheus' text format, for the textfile collector of its node
//! exporter. [`METRICS`] is the only list of them.

use std::fmt::Write as _;

use courser_record::times::RESPONSE_INTENDED;
use courser_record::{Outcomes, Record, Run};
use courser_stats::number::float;

use crate::thresholds::CROSSED;

/// A metric: all its samples stand together.
struct Metric {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: fn(&Record, &Run) -> Vec<Sample>,
}

/// A value, with what is added to the metric's name, and its labels beside `run`.
struct Sample {
    suffix: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

/// Each is of the last run: a gauge, since the next run may have less of it.
const METRICS: [Metric; 14] = [
    Metric {
        name: "courser_bench_info",
        kind: "gauge",
        help: "Always 1; what was measured, and by what.",
        samples: |record, _| {
            let labels = [
                ("command", &record.experiment.command),
                ("target", &record.experiment.target.url),
                ("version", &record.envelope.tool.version),
            ];
            vec![Sample::new(1.0).with(labels.map(|(name, value)| (name, value.clone())))]
        },
    },
    Metric {
        name: "courser_bench_start_timestamp_seconds",
        kind: "gauge",
        help: "Start of the measured window, seconds since 1970.",
        samples: |_, run| one(float(run.window.steady_start_unix_us) / 1e6),
    },
    Metric {
        name: "courser_bench_window_seconds",
        kind: "gauge",
        help: "Length of the measured window.",
        samples: |_, run| one(float(run.totals.window_us) / 1e6),
    },
    Metric {
        name: "courser_bench_valid",
        kind: "gauge",
        help: "1 when the figures say something about the server, 0 when they are inconclusive.",
        samples: |_, run| one(f64::from(u8::from(run.verdict.valid))),
    },
    Metric {
        name: "courser_bench_offered_rate",
        kind: "gauge",
        help: "Arrivals per second of the schedule; absent in a closed loop.",
        samples: |_, run| run.offered_rate.map(Sample::new).into_iter().collect(),
    },
    Metric {
        name: "courser_bench_connections",
        kind: "gauge",
        help: "Connections that were to start in the window, by outcome.",
        samples: |_, run| outcomes(run.totals.connections),
    },
    Metric {
        name: "courser_bench_requests",
        kind: "gauge",
        help: "Requests that were to start in the window, by outcome.",
        samples: |_, run| outcomes(run.totals.requests),
    },
    Metric {
        name: "courser_bench_served",
        kind: "gauge",
        help: "What ended as it should within the window, whenever it was to start: over the window's length, the rates.",
        samples: |_, run| {
            let one = |what: &str, count| Sample::new(float(count)).with([("what", what.to_owned())]);
            let all = run.totals.completed.iter().flat_map(|served| {
                [
                    one("connections", served.connections),
                    one("requests", served.transactions),
                    one("full_handshakes", served.full),
                    one("resumed_handshakes", served.resumed),
                ]
            });
            all.collect()
        },
    },
    Metric {
        name: "courser_bench_handshakes",
        kind: "gauge",
        help: "Handshakes of the window: full, or resumed by what, and what they agreed on.",
        samples: |_, run| {
            let one = |kind: &courser_record::Negotiated| {
                Sample::new(float(kind.count)).with([
                    ("handshake", kind.handshake.to_string()),
                    ("version", kind.version.clone()),
                    ("suite", kind.suite.clone()),
                    ("group", kind.group.clone().unwrap_or_default()),
                    ("scheme", kind.scheme.clone().unwrap_or_default()),
                    ("retried", kind.retried.to_string()),
                ])
            };
            run.totals.negotiated.iter().map(one).collect()
        },
    },
    Metric {
        name: "courser_bench_failures",
        kind: "gauge",
        help: "Failed attempts of the window by class.",
        samples: |_, run| {
            let one =
                |(class, count): (&String, &u64)| Sample::new(float(*count)).with([("class", class.clone())]);
            run.totals.failures.iter().map(one).collect()
        },
    },
    Metric {
        name: "courser_bench_response_seconds",
        kind: "summary",
        help: "Response times from the intended start; quantiles that the samples support.",
        samples: |_, run| response(run),
    },
    Metric {
        name: "courser_bench_server_cpu_seconds",
        kind: "gauge",
        help: "Processor time of the server in the window, by mode; absent without --server-pid.",
        samples: |_, run| {
            let one = |mode: &str, us: u64| Sample::new(float(us) / 1e6).with([("mode", mode.to_owned())]);
            let times = run.server.iter();
            times.flat_map(|server| [one("user", server.user_us), one("system", server.system_us)]).collect()
        },
    },
    Metric {
        name: "courser_bench_server_memory_bytes",
        kind: "gauge",
        help: "Proportional set size of the server at the end of the window; absent when unknown.",
        samples: |_, run| {
            let bytes = run.server.as_ref().and_then(|server| server.memory_bytes);
            bytes.map(|bytes| Sample::new(float(bytes))).into_iter().collect()
        },
    },
    Metric {
        name: "courser_bench_thresholds_crossed",
        kind: "gauge",
        help: "Thresholds of --fail-if that were crossed.",
        samples: |_, run| one(run.findings.iter().filter(|finding| finding.id == CROSSED).map(|_| 1.0).sum()),
    },
];

impl Sample {
    fn new(value: f64) -> Self {
        Self { suffix: "", labels: Vec::new(), value }
    }

    fn with<const N: usize>(self, labels: [(&'static str, String); N]) -> Self {
        Self { labels: labels.into(), ..self }
    }
}

fn one(value: f64) -> Vec<Sample> {
    vec![Sample::new(value)]
}

fn outcomes(of: Outcomes) -> Vec<Sample> {
    let one = |outcome: &str, count| Sample::new(float(count)).with([("outcome", outcome.to_owned())]);
    vec![one("attempted", of.attempted), one("succeeded", of.succeeded), one("failed", of.failed)]
}

fn response(run: &Run) -> Vec<Sample> {
    let Some(times) = run.totals.times.get(RESPONSE_INTENDED) else { return Vec::new() };
    let seconds = |time: Option<std::time::Duration>| time.map_or(0.0, |time| time.as_secs_f64());
    let supported = [0.5, 0.9, 0.99, 0.999].into_iter().filter(|quantile| times.supports(*quantile));
    let quantile = |quantile: f64| {
        Sample::new(seconds(times.quantile(quantile))).with([("quantile", quantile.to_string())])
    };
    let count = float(times.count());
    let sum = Sample { suffix: "_sum", ..Sample::new(count * seconds(times.mean())) };
    supported.map(quantile).chain([sum, Sample { suffix: "_count", ..Sample::new(count) }]).collect()
}

/// All metrics of a record that have a sample.
pub(crate) fn text(record: &Record) -> String {
    let mut text = String::new();
    for metric in &METRICS {
        let mut lines = String::new();
        for run in &record.runs {
            for sample in (metric.samples)(record, run) {
                line(&mut lines, metric.name, &sample, &run.label);
            }
        }
        if !lines.is_empty() {
            let Metric { name, kind, help, .. } = metric;
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}");
        }
    }
    text
}

fn line(lines: &mut String, name: &str, sample: &Sample, run: &str) {
    let _ = write!(lines, "{name}{}{{run=\"{}\"", sample.suffix, escaped(run));
    for (label, value) in &sample.labels {
        let _ = write!(lines, ",{label}=\"{}\"", escaped(value));
    }
    let _ = writeln!(lines, "}} {}", sample.value);
}

/// As the text format wants label values.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_conventions() {
        for metric in &METRICS {
            let name = metric.name;
            let allowed = name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
            assert!(allowed && name.starts_with("courser_bench_"), "{name}");
            // What counters and parts of summaries end in, and units that are not the base ones.
            for end in ["_total", "_sum", "_count", "_bucket", "_ms", "_us", "_milliseconds", "_percent"] {
                assert!(!name.ends_with(end), "{name}");
            }
            assert!(["gauge", "summary"].contains(&metric.kind), "{name}");
            assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\']), "{name}");
            assert_eq!(METRICS.iter().filter(|other| other.name == name).count(), 1, "{name} is there once");
        }
    }

    #[test]
    fn labels_are_escaped() {
        let mut lines = String::new();
        let sample = Sample::new(0.5).with([("class", "a\"b\\c\nd".to_owned())]);
        line(&mut lines, "x", &sample, "load");
        assert_eq!(lines, "x{run=\"load\",class=\"a\\\"b\\\\c\\nd\"} 0.5\n");
    }
}
