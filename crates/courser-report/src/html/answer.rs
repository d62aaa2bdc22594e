//! The first screen: a table, a plot, three sentences.

use maud::{Markup, PreEscaped, html};

use crate::answer::{Answer, Row};

/// The question and its answer; the question alone where nothing was measured.
pub(super) fn answer(answer: Option<&Answer>, question: &str) -> Markup {
    html! {
        @if !question.is_empty() { p.question { (question) } }
        @match answer {
            Some(answer) => (figures(answer)),
            None => p.verdict { "Nothing was measured." },
        }
    }
}

/// The same without the question.
pub(super) fn figures(answer: &Answer) -> Markup {
    html! {
        div.answer {
            div.scroll tabindex="0" role="region" aria-label=(answer.title) {
                table {
                    caption { (answer.title) }
                    thead { tr { th scope="col" {} @for head in &answer.heads { th scope="col" { (head) } } } }
                    tbody { @for row in &answer.rows { (shown(row)) } }
                }
                @for note in &answer.notes { p.notes { (note) } }
            }
            @if let Some(plot) = &answer.plot {
                figure { (PreEscaped(plot.inline())) figcaption { (plot.caption) } }
            }
        }
        ul.sentences { @for sentence in &answer.sentences { li { (sentence) } } }
    }
}

fn shown(row: &Row) -> Markup {
    html! {
        tr {
            th scope="row" { (row.name) }
            @for (text, spread) in &row.cells {
                td { (text) @if let Some(spread) = spread { " " span.spread.below { "(" (spread) ")" } } }
            }
        }
    }
}
