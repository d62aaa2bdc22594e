//! One page with everything: no network request, no script, light and dark, on a phone and on paper.
//!
//! The answer comes first: one table, one plot, three sentences. Findings and method are folded behind one click, then come
//! tables and plots, then what a sceptic wants to check: machine, tuning, core map, configuration files, commands, the raw
//! data. All text of a record is escaped: parts of it were chosen by servers.

mod answer;
mod appendix;
mod costs;
mod data;
mod index;
mod plots;
mod style;
mod suite;
mod table;

use courser_record::Lab;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::labels;
pub use index::{Page, index};

use appendix::Appendix;
use suite::Suite;

/// A page stays below this, bytes.
pub const LIMIT: usize = 400_000;

/// What a browser may load: nothing but what is in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// Shares of [`LIMIT`] in percent for plots and for configuration files: the first with which the page is small enough.
const SHARES: [(usize, usize); 4] = [(50, 20), (30, 12), (10, 4), (0, 0)];

/// What is left for the raw data at least, where it can be: bytes.
const DATA: usize = 40_000;

/// The page of these records, suite after suite in the order given. Plots, configuration files and the embedded copy of
/// the data are as complete as [`LIMIT`] allows, and the page says what it leaves out.
pub fn render(labs: &[Lab]) -> String {
    let suites: Vec<Suite> = labs.iter().map(Suite::new).collect();
    let appendix = Appendix::new(labs);
    let of = |share: usize| LIMIT / 100 * share / labs.len().max(1);
    let bare = |(plots, files): &(usize, usize)| {
        page(labs, &suites, of(*plots), &appendix.show(labs, of(*files), &html! {}))
    };
    let small = |share: &&(usize, usize)| bare(share).len() + DATA < LIMIT;
    let share = SHARES.iter().find(small).unwrap_or(&SHARES[SHARES.len() - 1]);
    let data = data::links(labs, LIMIT.saturating_sub(bare(share).len() + 2000));
    page(labs, &suites, of(share.0), &appendix.show(labs, of(share.1), &data))
}

fn page(labs: &[Lab], suites: &[Suite], plots: usize, appendix: &Markup) -> String {
    let main = html! {
        @for (index, (lab, suite)) in labs.iter().zip(suites).enumerate() {
            (suite.section(lab, index, labs.len() > 1, plots))
        }
        (appendix)
    };
    let warnings = labs.iter().filter_map(|lab| {
        Some(
            (labs.len() > 1)
                .then(|| lab.suite.title.clone())
                .into_iter()
                .chain([labels::cut(lab)?])
                .collect::<Vec<_>>()
                .join(": "),
        )
    });
    let contents = if labs.len() > 1 {
        contents(labs)
    } else {
        html! {}
    };
    document(
        &title(labs),
        &warnings.chain(labels::across(labs)).collect::<Vec<_>>(),
        &html! { (contents) (main) },
    )
}

/// A page with its style sheet and nothing to load.
fn document(title: &str, warnings: &[String], main: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(style::sheet())) }
            }
            body {
                header {
                    h1 { (title) }
                    @for warning in warnings { p.warning role="note" { strong { "Caution: " } (warning) } }
                }
                main { (main) }
            }
        }
    };
    page.into_string().chars().map(harmless).collect()
}

/// Neither controls nor what turns text around: a name must look like what it is.
fn harmless(char: char) -> char {
    let turns = matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if turns || (char.is_control() && char != '\n' && char != '\t') {
        char::REPLACEMENT_CHARACTER
    } else {
        char
    }
}

fn title(labs: &[Lab]) -> String {
    match labs {
        [one] => one.suite.title.clone(),
        _ => "TLS terminators, measured".to_owned(),
    }
}

fn contents(labs: &[Lab]) -> Markup {
    html! {
        nav aria-label="Contents" {
            @for (index, lab) in labs.iter().enumerate() {
                a href=(format!("#{}", anchor(index))) { (lab.suite.name) } " "
            }
            @for (id, name) in appendix::PARTS { a href=(format!("#{id}")) { (name) } " " }
        }
    }
}

/// The name of a place in the page: made of numbers and words of ours alone.
fn anchor(suite: usize) -> String {
    format!("suite-{suite}")
}
