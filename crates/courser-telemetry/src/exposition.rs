//! The text formats of Prometheus: 0.0.4, and OpenMetrics 1.0 for those who ask for it. May not know where numbers come from.
//!
//! An encoder of our own: prometheus-client writes OpenMetrics alone, while `promtool check metrics` and older scrapers read
//! 0.0.4; and its families are built from types for each set of labels, where ours are rows of one table.

use std::fmt::Write as _;
use std::time::Duration;

use crate::metrics::{Definition, Distribution, Kind, METRICS, Metric};

/// Which text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus' own, version 0.0.4.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl TextFormat {
    /// The format for this `Accept`.
    pub fn for_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Plain }
    }

    /// The `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A text that grows, family by family.
#[derive(Debug)]
pub struct Exposition {
    text: String,
    format: TextFormat,
    series: usize,
}

/// The numbers of one metric.
#[derive(Debug)]
pub struct Family<'a> {
    to: &'a mut Exposition,
    definition: &'static Definition,
    has_begun: bool,
}

/// A value as it is written.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// A whole number.
    Count(u64),
    /// Whole, and may be below zero.
    Signed(i64),
    /// In seconds.
    Time(Duration),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Self {
        Self::Count(yes.into())
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl Exposition {
    /// An empty one.
    pub fn new(format: TextFormat) -> Self {
        Self { text: String::with_capacity(32 * 1024), format, series: 0 }
    }

    /// Begins the numbers of a metric. Each may be begun once.
    pub fn family(&mut self, metric: Metric) -> Family<'_> {
        Family { to: self, definition: &METRICS[metric as usize], has_begun: false }
    }

    /// How many series there are so far; the buckets of a histogram are one each.
    pub fn series(&self) -> usize {
        self.series
    }

    /// The whole text.
    pub fn finish(mut self) -> String {
        if self.format == TextFormat::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Family<'_> {
    /// Writes a number. `labels`: the values of the metric's labels, in the order of the table.
    pub fn sample(&mut self, labels: &[&str], value: impl Into<Value>) {
        debug_assert_eq!(labels.len(), self.definition.labels.len(), "{}", self.definition.name);
        self.line("", labels, None, value.into());
    }

    /// Writes the buckets, the sum and the number of observations.
    pub fn histogram(&mut self, labels: &[&str], distribution: &Distribution<'_>) {
        let mut total = 0;
        for (bound, count) in distribution.below_bounds() {
            total = count;
            let bound = seconds(bound);
            self.line("_bucket", labels, Some(&bound), Value::Count(count));
        }
        total = total.max(distribution.count());
        self.line("_bucket", labels, Some("+Inf"), Value::Count(total));
        self.line("_sum", labels, None, Value::Time(distribution.sum));
        self.line("_count", labels, None, Value::Count(total));
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: Value) {
        self.begin();
        let text = &mut self.to.text;
        text.push_str(self.definition.name);
        text.push_str(suffix);
        let names = self.definition.labels.iter().map(|(name, _)| *name).zip(labels.iter().copied());
        let mut separator = '{';
        for (name, value) in names.chain(bound.map(|bound| ("le", bound))) {
            text.push(separator);
            text.push_str(name);
            text.push_str("=\"");
            escape(value, true, text);
            text.push('"');
            separator = ',';
        }
        if separator == ',' {
            text.push('}');
        }
        let _ = match value {
            Value::Count(count) => writeln!(text, " {count}"),
            Value::Signed(number) => writeln!(text, " {number}"),
            Value::Time(time) => writeln!(text, " {}", seconds(time)),
        };
        self.to.series += 1;
    }

    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let Definition { name, kind, unit, help, .. } = self.definition;
        let is_open = self.to.format == TextFormat::OpenMetrics;
        // The family of OpenMetrics is called without what its samples end with.
        let name = if is_open { family_name(name, *kind) } else { name };
        let kind = match kind {
            Kind::Info if !is_open => Kind::Gauge.name(),
            kind => kind.name(),
        };
        let text = &mut self.to.text;
        let _ = write!(text, "# HELP {name} ");
        escape(help, is_open, text);
        let _ = writeln!(text, "\n# TYPE {name} {kind}");
        if is_open && !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
    }
}

/// The name of the family that a metric's samples belong to in OpenMetrics.
fn family_name(name: &str, kind: Kind) -> &str {
    let suffix = match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    name.strip_suffix(suffix).unwrap_or(name)
}

/// To the microsecond.
fn seconds(time: Duration) -> String {
    let text = format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    // OpenMetrics wants a digit behind the point, and no more zeros in a bound than it needs.
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// Most have nothing to escape: they are copied as they are.
fn escape(mut value: &str, quote: bool, text: &mut String) {
    while let Some(at) = value.find(|c| matches!(c, '\\' | '\n') || (quote && c == '"')) {
        text.push_str(&value[..at]);
        text.push_str(match value.as_bytes()[at] {
            b'\n' => "\\n",
            b'"' => "\\\"",
            _ => "\\\\",
        });
        value = &value[at + 1..];
    }
    text.push_str(value);
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::metrics::{Counters, Step};

    #[test]
    fn families_of_openmetrics_do_not_share_a_name() {
        let names: HashSet<_> = METRICS.iter().map(|metric| family_name(metric.name, metric.kind)).collect();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn both_formats_have_their_headings_and_escape_what_they_must() {
        let write = |format| {
            let mut exposition = Exposition::new(format);
            let mut family = exposition.family(Metric::Connections);
            family.sample(&["a\"b\\c\nd", "none", "done"], 7);
            assert_eq!(exposition.series(), 1);
            exposition.finish()
        };
        let sample =
            "courser_connections_total{listener=\"a\\\"b\\\\c\\nd\",cause=\"none\",reason=\"done\"} 7\n";
        let plain = write(TextFormat::Plain);
        assert!(
            plain.contains("# TYPE courser_connections_total counter\n") && plain.ends_with(sample),
            "{plain}"
        );
        let open = write(TextFormat::OpenMetrics);
        assert!(open.contains("# TYPE courser_connections counter\n"), "{open}");
        assert!(open.ends_with(&format!("{sample}# EOF\n")), "{open}");
    }

    #[test]
    fn a_histogram_has_bounds_that_no_bucket_straddles() {
        let counters = Counters::default();
        for micros in [1, 127, 128, 200, 3_000_000, 20_000_000] {
            counters.observe(Step::Hello, Duration::from_micros(micros));
        }
        let counts = counters.read();
        let mut exposition = Exposition::new(TextFormat::Plain);
        exposition.family(Metric::StepDuration).histogram(&["hello"], &counts.step(Step::Hello));
        let text = exposition.finish();
        for line in [
            "{step=\"hello\",le=\"0.000128\"} 2",
            "{step=\"hello\",le=\"0.000256\"} 4",
            "{step=\"hello\",le=\"2.097152\"} 4",
            "{step=\"hello\",le=\"4.194304\"} 5",
            "{step=\"hello\",le=\"8.388608\"} 5",
            "{step=\"hello\",le=\"+Inf\"} 6",
            "_sum{step=\"hello\"} 23.000456",
            "_count{step=\"hello\"} 6",
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
    }

    #[test]
    fn the_format_is_what_the_scraper_asks_for() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        assert_eq!(TextFormat::for_accept(prometheus), TextFormat::OpenMetrics);
        assert_eq!(TextFormat::for_accept("*/*"), TextFormat::Plain);
    }
}
