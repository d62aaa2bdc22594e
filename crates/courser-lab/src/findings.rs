//! What a reader has to know before the figures, and whether there is a verdict at all (METHODOLOGY.md, "When a
//! run is inconclusive"). Each finding has a name that stays, and advice.

mod generator;
mod server;

use courser_load::plan::Plan;
use courser_load::run::Counted;
use courser_record::{Finding, Run, Severity, Verdict};

use crate::reading::{Reading, Watched};

/// Everything that a finding may be made of.
pub(crate) struct Evidence<'e> {
    pub(crate) plan: &'e Plan,
    pub(crate) counted: &'e Counted<Reading>,
    pub(crate) run: &'e Run,
    pub(crate) watched: &'e Watched,
    /// How often a session was to be used; 1 for never again.
    pub(crate) reuse: u32,
    pub(crate) cut: bool,
}

/// Looks at everything, and judges.
pub(crate) fn judge(evidence: &Evidence<'_>) -> (Vec<Finding>, Verdict) {
    let mut findings = generator::findings(evidence);
    findings.extend(server::findings(evidence));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let invalid: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Invalid)
        .map(|finding| finding.text.as_str())
        .collect();
    let verdict =
        if invalid.is_empty() { Verdict::valid() } else { Verdict::inconclusive(invalid.join("; ")) };
    (findings, verdict)
}

/// Whether a run has no verdict for another reason than that nothing in it succeeded.
pub fn is_spoilt(run: &Run) -> bool {
    let other = |finding: &&Finding| finding.id != server::NOTHING_SUCCEEDED;
    run.findings.iter().filter(other).any(|finding| finding.severity == Severity::Invalid)
}

/// A share as people read it.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 || percent == 0.0 {
        format!("{percent:.0} %")
    } else if percent >= 0.1 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.3} %")
    }
}

/// A part of a whole; 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
