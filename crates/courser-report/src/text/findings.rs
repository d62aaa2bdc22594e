//! What a reader has to know: what matters most first, and what several runs report reported once.

use courser_record::{Finding, Run, Severity};

use crate::layout::{Page, Tone};

/// Most variants of a finding that are printed.
const MAX_VARIANTS: usize = 3;

/// Findings on the same matter, each in its own words, with the runs that have it.
struct Matter<'r> {
    first: &'r Finding,
    variants: Vec<(&'r Finding, Vec<&'r str>)>,
}

pub(super) fn show(page: &mut Page, runs: &[Run]) {
    let mut matters = matters(runs);
    if matters.is_empty() {
        return;
    }
    matters.sort_by_key(|matter| std::cmp::Reverse(matter.first.severity));
    page.heading("findings");
    matters.iter().for_each(|matter| one(page, matter, runs.len()));
}

fn matters(runs: &[Run]) -> Vec<Matter<'_>> {
    let mut matters: Vec<Matter<'_>> = Vec::new();
    for (run, finding) in runs.iter().flat_map(|run| run.findings.iter().map(move |finding| (run, finding))) {
        let same = |known: &Finding| {
            (&known.id, known.severity, &known.advice) == (&finding.id, finding.severity, &finding.advice)
        };
        let known = matters.iter().position(|matter| runs.len() > 1 && same(matter.first));
        let index = known.unwrap_or_else(|| {
            matters.push(Matter { first: finding, variants: Vec::new() });
            matters.len() - 1
        });
        let variants = &mut matters[index].variants;
        match variants.iter_mut().find(|(known, _)| *known == finding) {
            Some((_, labels)) => labels.push(&run.label),
            None => variants.push((finding, vec![&run.label])),
        }
    }
    matters
}

fn one(page: &mut Page, matter: &Matter<'_>, runs: usize) {
    let tone = tone(matter.first.severity);
    for (index, (finding, labels)) in matter.variants.iter().take(MAX_VARIANTS).enumerate() {
        let severity = if index == 0 { finding.severity.to_string() } else { String::new() };
        let of: String = [who(labels, runs), finding.source.clone()]
            .into_iter()
            .flatten()
            .map(|of| format!("{of}: "))
            .collect();
        page.paragraph(tone, &format!("  {severity:<9}"), &format!("{of}{} [{}]", finding.text, finding.id));
    }
    if let more @ 1.. = matter.variants.len().saturating_sub(MAX_VARIANTS) {
        page.paragraph(tone, "           ", &format!("and so in {more} more"));
    }
    if !matter.first.advice.is_empty() {
        page.paragraph(Tone::Plain, "           ", &matter.first.advice);
    }
}

/// The runs that have it; nothing where there is only one.
fn who(labels: &[&str], runs: usize) -> Option<String> {
    match (labels.len(), runs) {
        (_, 1) => None,
        (some, all) if some == all => Some("all runs".to_owned()),
        _ => Some(labels.join(", ")),
    }
}

fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Note => Tone::Plain,
        Severity::Warning => Tone::Warning,
        Severity::Invalid => Tone::Bad,
    }
}
