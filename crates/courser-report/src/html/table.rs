//! Tables of a page: each scrolls in its own box where it is wider than the screen.

use maud::{Markup, html};

use crate::grid::{Apart, Grid, Slot};
use crate::ranking::CellValue;

/// A table in the published layout, ours first.
pub(super) fn table(grid: &Grid) -> Markup {
    html! {
        h3 { (grid.title) }
        div.scroll tabindex="0" role="region" aria-label=(grid.title) {
            table {
                @if let Some(shows) = &grid.shows { caption { "In each cell: " (shows) } }
                (head(&grid.corner, &grid.columns))
                tbody {
                    @for row in &grid.rows {
                        tr {
                            th scope="row" { (row.label) }
                            @for slots in &row.cells { (cell(slots)) }
                        }
                    }
                    @if !grid.published.is_empty() {
                        tr.divider { th colspan=(grid.columns.len() + 1) { "as published: " (grid.source.as_deref().unwrap_or_default()) } }
                        @for (label, cells) in &grid.published { (published(label, cells)) }
                    }
                }
            }
        }
        @if let Some(apart) = &grid.apart { (set_apart(apart, grid.source.as_deref().unwrap_or_default())) }
        (notes(&grid.notes))
    }
}

fn head(corner: &str, columns: &[String]) -> Markup {
    html! { thead { tr { th scope="col" { (corner) } @for column in columns { th scope="col" { (column) } } } } }
}

fn cell(slots: &[Slot]) -> Markup {
    html! { td { @for slot in slots { (figure(slot, slots.len() == 1)) } } }
}

/// A figure and how far it may be off: below it where it stands alone, beside it where there are several.
fn figure(slot: &Slot, is_alone: bool) -> Markup {
    let class = match slot.value {
        CellValue::Value(_) => "figure",
        CellValue::Failed(_) => "figure failed",
        _ => "figure absent",
    };
    html! {
        span class=(class) {
            (slot.text())
            @if let Some(note) = slot.note { sup { "[" (note) "]" } }
            @if let Some(spread) = slot.spread() { " " span.spread.below[is_alone] { "(" (spread) ")" } }
        }
    }
}

fn published(label: &str, cells: &[String]) -> Markup {
    html! { tr.published { th scope="row" { (label) } @for cell in cells { td { (cell) } } } }
}

fn set_apart(apart: &Apart, source: &str) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="as published" {
            table {
                caption { "As published: " (source) }
                (head("", &apart.columns))
                tbody { @for (label, cells) in &apart.rows { (published(label, cells)) } }
            }
        }
    }
}

fn notes(notes: &[String]) -> Markup {
    html! {
        @if !notes.is_empty() {
            ol.notes { @for note in notes { li { (note) } } }
        }
    }
}

/// A table of plain text, its first column the name of the row.
pub(super) fn plain(columns: &[&str], rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(columns.join(", ")) {
            table.plain {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            @for (index, cell) in row.iter().enumerate() {
                                @if index == 0 { th scope="row" { (cell) } } @else { td.text { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
