//! Cautions for a reader, and which target it concerns.

use courser_record::Lab;
use courser_record::lab::Cell;
use courser_record::{Finding, Severity};

use crate::labels;

/// A finding, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    /// Cells, or the suite.
    pub about: String,
    /// How much it matters.
    pub severity: Severity,
    /// What is so.
    pub text: String,
    /// What to do about it; empty when nothing can be done.
    pub advice: String,
}

impl Concern {
    /// What is so and, in brackets, what to do about it.
    pub fn text(&self) -> String {
        if self.advice.is_empty() { self.text.clone() } else { format!("{} ({})", self.text, self.advice) }
    }
}

/// All findings: the gravest first, those that are alike together.
pub fn findings(lab: &Lab) -> Vec<Concern> {
    let mut all: Vec<(Finding, Vec<String>)> = Vec::new();
    for finding in &lab.findings {
        add(&mut all, finding, "the suite".to_owned());
    }
    for cell in &lab.cells {
        let name = labels::cell(lab, cell);
        let windows = cell.blocks.iter().flat_map(|block| &block.windows);
        let of_cell = cell.findings.iter().chain(windows.flat_map(|window| &window.findings));
        of_cell.for_each(|finding| add(&mut all, finding, name.clone()));
    }
    let measured = lab.cells.iter().filter(|cell| !cell.blocks.is_empty()).count();
    all.sort_by_key(|(finding, _)| std::cmp::Reverse(finding.severity));
    all.into_iter().map(|(finding, about)| joined(finding, &about, measured)).collect()
}

/// Those of the same kind stand together, with the text of the first.
fn add(all: &mut Vec<(Finding, Vec<String>)>, finding: &Finding, about: String) {
    let same = |(known, _): &&mut (Finding, Vec<String>)| {
        known.id == finding.id && known.severity == finding.severity && known.advice == finding.advice
    };
    match all.iter_mut().find(same) {
        Some((_, names)) if names.contains(&about) => {}
        Some((_, names)) => names.push(about),
        None => all.push((finding.clone(), vec![about])),
    }
}

/// More names than a reader wants are counted.
const MOST_NAMES: usize = 2;

fn joined(finding: Finding, about: &[String], measured: usize) -> Concern {
    let text = match about.len() {
        1 => finding.text,
        _ => format!("{} (the first of {})", finding.text, about.len()),
    };
    let about = match about.get(MOST_NAMES..) {
        Some([_, ..]) if about.len() == measured => format!("all {measured} cells"),
        Some(more) if !more.is_empty() => {
            format!("{} of {measured} cells", about.len())
        }
        _ => about.join("; "),
    };
    Concern { about, severity: finding.severity, text, advice: finding.advice }
}

/// Cells by their reason: who, and why.
pub fn grouped<'a>(lab: &Lab, cells: impl Iterator<Item = &'a Cell>) -> Vec<(String, String)> {
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for cell in cells {
        let (case, reason) =
            (labels::case(lab, &cell.case), cell.reason.as_deref().unwrap_or("no reason given"));
        match groups.iter_mut().find(|(target, known, _)| *target == cell.target && *known == reason) {
            Some((_, _, cases)) => cases.push(case),
            None => groups.push((&cell.target, reason, vec![case])),
        }
    }
    let row = |(target, reason, cases): (&str, &str, Vec<String>)| {
        let is_all = lab.cases.len() > 1 && cases.len() == lab.cases.len();
        let cases = if is_all { "all cases".to_owned() } else { cases.join("; ") };
        (format!("{}: {cases}", labels::target(lab, target)), reason.to_owned())
    };
    groups.into_iter().map(row).collect()
}
