//! The plots of a suite, as many as the page has room for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use courser_record::Lab;
use maud::{Markup, PreEscaped, html};

use crate::chart::{self, Drawing};

/// All plots of a suite.
pub(super) struct Plots {
    figures: Vec<Markup>,
    flames: Vec<(String, String)>,
}

impl Plots {
    pub(super) fn new(lab: &Lab) -> Self {
        let drawings = lab.suite.charts.iter().flat_map(|chart| chart::drawings(lab, chart));
        Self { figures: drawings.map(|drawing| figure(&drawing)).collect(), flames: chart::flames(lab) }
    }

    /// In a grid, one column on a phone, and one flame graph if there is room left.
    pub(super) fn show(&self, room: usize) -> Markup {
        let mut left = room;
        let mut shown = Vec::new();
        for figure in &self.figures {
            if let Some(rest) = left.checked_sub(figure.0.len()) {
                left = rest;
                shown.push(figure);
            }
        }
        let missing = self.figures.len() - shown.len();
        html! {
            @if !shown.is_empty() { h3 { "Plots" } div.charts { @for figure in &shown { (figure) } } }
            @if missing > 0 {
                p.faint { "There are " (missing) " more, for which a page of this size has no room: "
                    code { "courser-bench report --svg" } " draws all." }
            }
            (flame(&self.flames, left))
        }
    }
}

fn figure(drawing: &Drawing) -> Markup {
    html! {
        figure {
            h4 { (drawing.title) }
            (PreEscaped(drawing.inline()))
            figcaption { (drawing.caption) }
        }
    }
}

/// The first that fits, as an image: its style sheet would be that of the whole page otherwise. On a light card, since
/// its colours are for white paper.
fn flame(flames: &[(String, String)], room: usize) -> Markup {
    let fitting = flames.iter().find(|(_, svg)| svg.len() * 4 / 3 < room.min(80_000));
    html! {
        @if let Some((title, svg)) = fitting {
            h3 { "Flame graph: " (title) }
            div.scroll.light tabindex="0" role="region" aria-label="Flame graph" {
                img alt=(format!("Flame graph of {title}: stacks of functions, as wide as their share of processor time"))
                    src=(format!("data:image/svg+xml;base64,{}", STANDARD.encode(svg)));
            }
            @if flames.len() > 1 {
                p.faint { "The first of " (flames.len()) "; " code { "courser-bench report --svg" } " draws all." }
            }
        }
    }
}
