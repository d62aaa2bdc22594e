//! The style sheet: as few rules as a page needs that is read on a phone, on a screen and on paper.

use crate::chart;

/// What every page has.
const PAGE: &str = include_str!("style.css");

/// All of it.
pub(super) fn sheet() -> String {
    let page = PAGE.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let dark = format!("@media (prefers-color-scheme:dark){{:root{{{}}}}}", chart::values(true));
    let paper = format!("@media print{{:root{{{}}}}}", chart::values(false));
    format!("{page}\n:root{{{}}}\n{dark}\n{paper}\n{}", chart::values(false), chart::rules())
}
