//! One page over all suites: what was published, what it is today, who is ahead.

use courser_record::Lab;
use maud::{Markup, PreEscaped, html};

use super::{answer, document};
use crate::answer::Since;
use crate::labels;

/// A record and the page that was drawn from it, relative to the index.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The record.
    pub lab: &'a Lab,
    /// Its page.
    pub file: &'a str,
}

/// The page over these, suites with a published figure first. Of several records of a suite the one named like it leads, or
/// else the first, and the others are links.
pub fn index(pages: &[Page<'_>]) -> String {
    let leads = |page: &Page<'_>| {
        let mut same = pages.iter().filter(|other| other.lab.suite.name == page.lab.suite.name);
        let first = same.clone().next();
        same.find(|other| stem(other) == other.lab.suite.name).or(first).map(|lead| lead.file)
            == Some(page.file)
    };
    let leading: Vec<&Page<'_>> = pages.iter().filter(|page| leads(page)).collect();
    let mut answers: Vec<_> = leading.iter().map(|page| (*page, crate::answer::answer(page.lab))).collect();
    answers.sort_by_key(|(_, answer)| answer.as_ref().is_none_or(|answer| answer.since.is_none()));
    let factors: Vec<(String, f64)> = answers
        .iter()
        .filter_map(|(page, answer)| Some((stem(page).to_owned(), answer.as_ref()?.since.as_ref()?.factor())))
        .collect();
    let labs: Vec<Lab> = leading.iter().map(|page| page.lab.clone()).collect();
    let main = html! {
        p.question { "What do published TLS experiments come to today, per core, and which terminator is ahead?" }
        div.answer.overview {
            div.scroll tabindex="0" role="region" aria-label="All suites" {
                table {
                    thead { tr { @for head in ["suite", "then, per core", "here, per core", "factor", "ahead here"] { th scope="col" { (head) } } } }
                    tbody { @for (page, answer) in &answers { (row(page, answer.as_ref())) } }
                }
            }
            @if let Some(plot) = crate::chart::then_and_now(&factors) {
                figure { (PreEscaped(plot.inline())) figcaption { (plot.caption) } }
            }
        }
        p.byline { "Then and now differ in processor, operating system, protocol and key: each line says which. " (bylines(&labs)) }
        @for (page, answer) in &answers {
            section.suite {
                h2 { a href=(page.file) { (page.lab.suite.title) } }
                p.question { (page.lab.suite.question) }
                @if let Some(cut) = labels::cut(page.lab) { p.warning { (cut) } }
                @if let Some(answer) = answer { (answer::figures(answer)) }
                @let more = pages.iter().filter(|other| other.lab.suite.name == page.lab.suite.name && other.file != page.file);
                p.faint {
                    a href=(page.file) { "All tables, plots, method and data" }
                    @for other in more { " · " a href=(other.file) { (stem(other)) } }
                }
            }
        }
    };
    document("TLS termination, 2011 to today", &labels::across(&labs), &main)
}

fn stem<'a>(page: &Page<'a>) -> &'a str {
    page.file.trim_end_matches(".html")
}

fn row(page: &Page<'_>, answer: Option<&crate::answer::Answer>) -> Markup {
    let since = answer.and_then(|answer| answer.since.as_ref());
    let dash = crate::figure::UNKNOWN;
    let amount = |since: &Since, value: f64| since.amount(value).replace(&format!(" {}", since.unit), "");
    let then = |since: &Since| {
        html! {
            (amount(since, since.then)) " " span.spread.below { (since.year) ": " (since.program) ", " (since.under) }
        }
    };
    let now = |since: &Since| {
        html! {
            (amount(since, since.now)) " " span.spread.below { (since.target) ", " (since.here) }
        }
    };
    let unit = since.filter(|since| !since.is_time()).map(|since| since.unit.as_str());
    html! {
        tr {
            th scope="row" { a href=(page.file) { (stem(page)) } @if let Some(unit) = unit { " " span.spread.below { (unit) } } }
            td { @match since { Some(since) => (then(since)), None => (dash) } }
            td { @match since { Some(since) => (now(since)), None => (dash) } }
            td { @match since { Some(since) => { "×\u{a0}" (labels::factor(since.factor())) }, None => (dash) } }
            td.text { (answer.and_then(|answer| answer.first.clone()).unwrap_or_else(|| dash.to_owned())) }
        }
    }
}

fn bylines(labs: &[Lab]) -> String {
    let machines: Vec<String> = labs
        .iter()
        .map(|lab| format!("{} ({})", lab.envelope.machine.cpu_model, lab.envelope.machine.name))
        .collect();
    format!("Measured on {}.", labels::list(&crate::ranking::distinct(machines.iter())))
}
