//! A suite: the question, the answer case by case, tables, plots, costs, and what is missing and why.

use courser_record::Lab;
use courser_record::lab::CellState;
use maud::{Markup, html};

use super::plots::Plots;
use super::{anchor, costs, table, verdict};
use crate::grid::grids;
use crate::labels;
use crate::ranking::rankings;

/// A suite that is drawn, but for how many of its plots there is room.
pub(super) struct Suite {
    /// Its verdict, for the headline too.
    pub(super) verdict: Markup,
    answers: Markup,
    plots: Plots,
    checks: Markup,
}

impl Suite {
    pub(super) fn new(lab: &Lab) -> Self {
        let answers = html! {
            p.analysis { (lab.suite.analysis) }
            (orders(lab))
            (findings(lab))
            @for grid in &grids(lab) { (table::table(grid)) }
            @if !grids(lab).is_empty() { p.notes { (labels::MARKS) } }
            @if let Some(note) = labels::share_note(lab) { p.notes { (note) } }
        };
        let checks = html! {
            (costs::costs(lab))
            (missing(lab))
            (asked(lab))
        };
        Self { verdict: verdict(&labels::verdict(lab)), answers, plots: Plots::new(lab), checks }
    }

    /// Its part of the page; plots may take `room` bytes.
    pub(super) fn section(&self, lab: &Lab, index: usize, is_one_of_several: bool, room: usize) -> Markup {
        html! {
            section.suite id=(anchor(index)) {
                h2 { (lab.suite.title) }
                @if !lab.suite.question.is_empty() { p.question { (lab.suite.question) } }
                p.source { (lab.suite.source) }
                // Of a single suite both stand at the top of the page.
                @if is_one_of_several { p.faint { (labels::byline(lab)) } (self.verdict) }
                (self.answers)
                (self.plots.show(room))
                (self.checks)
            }
        }
    }
}

/// Case by case: the order of the targets, and how sure it is.
fn orders(lab: &Lab) -> Markup {
    let rankings = rankings(lab);
    html! {
        @if !rankings.is_empty() {
            h3 { "Case by case" }
            @let common = labels::common(lab);
            @if !common.is_empty() { p.faint { "All cases: " (common) "." } }
            ul {
                @for ranking in &rankings {
                    li { strong { (labels::ranking_title(lab, ranking)) ": " } (labels::order(lab, ranking)) }
                }
            }
            p.notes { (labels::HOW_SURE) }
        }
    }
}

/// What a reader has to know: of the suite, and of its cells.
fn findings(lab: &Lab) -> Markup {
    let findings = labels::findings(lab);
    html! {
        @if !findings.is_empty() {
            h3 { "Caution" }
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
