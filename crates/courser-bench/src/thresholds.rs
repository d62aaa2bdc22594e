//! `--fail-if`: what a run must not show, for pipelines.

use courser_record::times::RESPONSE_INTENDED;
use courser_record::{Finding, Run, Severity};
use courser_stats::{Crossed, Histogram, Observation, Threshold};

use crate::exit::Failure;

/// The name of the finding of a threshold that was crossed.
pub(crate) const CROSSED: &str = "threshold-crossed";

/// The name of the finding of one that cannot be judged.
const UNKNOWN: &str = "threshold-unknown";

/// What the thresholds of a run come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Judged {
    /// Whether one was crossed.
    pub(crate) crossed: bool,
    /// Whether one cannot be judged for want of samples.
    pub(crate) unknown: bool,
}

/// Reads the thresholds of a command line.
pub(crate) fn read(texts: &[String]) -> Result<Vec<Threshold>, Failure> {
    let one =
        |text: &String| text.parse().map_err(|why| Failure::usage(format!("--fail-if {text:?}: {why}")));
    texts.iter().map(one).collect()
}

/// Judges a run, and adds a finding to it for each threshold that was crossed or cannot be judged.
pub(crate) fn judge(thresholds: &[Threshold], run: &mut Run) -> Judged {
    let empty = Histogram::default();
    let totals = &run.totals;
    let per_second = |count| totals.per_second(count).unwrap_or(0.0);
    // Bare handshakes have no requests.
    let of = if totals.requests.attempted > 0 { totals.requests } else { totals.connections };
    let observation = Observation {
        attempted: of.attempted,
        succeeded: of.succeeded,
        failed: of.failed,
        offered: per_second(of.attempted),
        // What ended within the window: what a drain was waited for is no rate.
        achieved: per_second(totals.completed.map_or(of.succeeded, |completed| completed.transactions)),
        response: totals.times.get(RESPONSE_INTENDED).unwrap_or(&empty),
    };
    let handshakes =
        totals.completed.map_or(totals.handshakes(), |completed| completed.full + completed.resumed);
    let handshakes = per_second(handshakes);
    let (mut judged, mut findings) = (Judged::default(), Vec::new());
    for threshold in thresholds {
        match threshold.check(&observation, handshakes) {
            Crossed::No => {}
            Crossed::Yes(seen) => {
                judged.crossed = true;
                let text = format!("{threshold}: {seen}");
                findings.push(Finding::new(CROSSED, Severity::Warning, text, "the run fails (--fail-if)"));
            }
            Crossed::Unknown { more } => {
                judged.unknown = true;
                let text = format!("{threshold}: {more} more responses would tell");
                let advice = "a longer --duration, or a lower percentile (--fail-if)";
                findings.push(Finding::new(UNKNOWN, Severity::Warning, text, advice));
            }
        }
    }
    run.findings.extend(findings);
    judged
}
