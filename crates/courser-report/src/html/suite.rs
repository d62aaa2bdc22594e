//! A suite: the question, the answer case by case, tables, plots, costs, and what is missing and why.

use courser_record::Lab;
use courser_record::lab::CellState;
use maud::{Markup, html};

use super::plots::Plots;
use super::{anchor, answer, costs, table};
use crate::grid::grids;
use crate::labels;
use crate::ranking::rankings;

/// A suite that is drawn, but for how many of its plots there is room.
pub(super) struct Suite {
    answer: Markup,
    tables: Markup,
    plots: Plots,
    checks: Markup,
}

impl Suite {
    pub(super) fn new(lab: &Lab) -> Self {
        let grids = grids(lab);
        let tables = html! {
            (folded("Case by case, and how sure", &html! { (verdict(lab)) (orders(lab)) }))
            (folded("Cautions of the instrument", &findings(lab)))
            (method(lab))
            @for grid in &grids { (table::table(grid)) }
            @if let Some(note) = labels::share_note(lab) { p.notes { (note) } }
        };
        let checks = html! {
            (folded("Where processor time goes, in figures", &costs::costs(lab)))
            (folded("What is missing, and why", &missing(lab)))
            (asked(lab))
        };
        let answer = crate::answer::answer(lab);
        Self {
            answer: answer::answer(answer.as_ref(), &lab.suite.question),
            tables,
            plots: Plots::new(lab),
            checks,
        }
    }

    /// Its part of the page; plots may take `room` bytes.
    pub(super) fn section(&self, lab: &Lab, index: usize, is_one_of_several: bool, room: usize) -> Markup {
        html! {
            section.suite[is_one_of_several] id=(anchor(index)) {
                // Of a single suite it is the title of the page.
                @if is_one_of_several { h2 { (lab.suite.title) } }
                (self.answer)
                @if let Some(caution) = labels::control_caution(lab) { p.cautions { (caution) } }
                p.byline { (labels::byline(lab)) ". " (measured_by(lab)) }
                (self.tables)
                (self.plots.show(room))
                (self.checks)
            }
        }
    }
}

/// A part that a click opens; nothing of nothing.
fn folded(title: &str, inside: &Markup) -> Markup {
    html! { @if !inside.0.trim().is_empty() { details { summary { (title) } (inside) } } }
}

/// Which build: a record without it says so.
fn measured_by(lab: &Lab) -> Markup {
    html! {
        @match &lab.envelope.tool.commit {
            Some(commit) => { "Commit " code { (commit.chars().take(12).collect::<String>()) } "." }
            None => "This record has neither commit nor hashes of the programs.",
        }
    }
}

fn verdict(lab: &Lab) -> Markup {
    let verdict = labels::verdict(lab);
    html! {
        @for sentence in &verdict.sentences { p.verdict { (sentence) } }
        @if !verdict.cautions.is_empty() { p.cautions { (verdict.cautions.join(" ")) } }
    }
}

/// How the figures are made and how sure they are: what the first screen need not say.
fn method(lab: &Lab) -> Markup {
    let prose = labels::without_figures(&lab.suite.analysis);
    html! {
        details.method {
            summary { "How it was measured, and how sure it is" }
            @for paragraph in &prose { p { (paragraph) } }
            p { (labels::MARKS) }
            p { (labels::HOW_SURE) }
            @if let Some(limit) = labels::limit(lab) { p { (limit) } }
            (control(lab))
            @if let Some(repeats) = labels::repeats(lab) { p { (repeats) } }
            p { "Then and now differ in processor, operating system and client too; figures per core are divided by the cores that were used." }
            p.source { "The published experiment: " (lab.suite.source) }
        }
    }
}

/// What a client that does all the work says of each case.
fn control(lab: &Lab) -> Markup {
    let rows = labels::control_rows(lab);
    html! {
        @if !rows.is_empty() {
            p { (labels::CONTROL) }
            (table::plain(&labels::CONTROL_HEADS, &rows))
        }
    }
}

/// Case by case: the order of the targets, and how sure it is.
fn orders(lab: &Lab) -> Markup {
    let rankings = rankings(lab);
    html! {
        @if !rankings.is_empty() {
            @let common = labels::common(lab);
            @if !common.is_empty() { p.faint { "All cases: " (common) "." } }
            ul {
                @for ranking in &rankings {
                    li { strong { (labels::ranking_title(lab, ranking)) ": " } (labels::order(lab, ranking)) }
                }
            }
        }
    }
}

/// What a reader has to know: of the suite, and of its cells.
fn findings(lab: &Lab) -> Markup {
    let findings = labels::findings(lab);
    html! {
        @if !findings.is_empty() {
            ul {
                @for finding in &findings {
                    li class=(finding.severity.to_string()) {
                        strong { (finding.about) ": " } (finding.text)
                        @if !finding.advice.is_empty() { " " em { (finding.advice) } }
                    }
                }
            }
        }
    }
}

/// What is not there, and why.
fn missing(lab: &Lab) -> Markup {
    let cells = |state: CellState| lab.cells.iter().filter(move |cell| cell.state == state);
    let rows = |state| {
        labels::grouped(lab, cells(state)).into_iter().map(|(who, why)| vec![who, why]).collect::<Vec<_>>()
    };
    let (cannot, failed, pending) =
        (rows(CellState::Cannot), rows(CellState::Failed), rows(CellState::Pending));
    let left_out: Vec<Vec<String>> =
        lab.suite.left_out.iter().map(|left| vec![left.row.clone(), left.reason.clone()]).collect();
    let parts = [
        ("What failed, and how", failed),
        ("What cannot be done, and why", cannot),
        ("What was not measured", pending),
        ("What is left out of the published experiment", left_out),
    ];
    html! {
        @for (title, rows) in &parts {
            @if !rows.is_empty() { h3 { (title) } (table::plain(&["", "reason"], rows)) }
        }
    }
}

/// Requirements, the same for every target.
fn asked(lab: &Lab) -> Markup {
    html! {
        details {
            summary { "Requirements, the same for every target (" (labels::counted(lab.cases.len(), "case")) ")" }
            dl {
                @for case in &lab.cases {
                    dt { (case.title) }
                    dd { (case.asked.join("; ")) }
                }
            }
        }
    }
}
