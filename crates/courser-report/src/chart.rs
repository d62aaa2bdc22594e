//! Plots of a suite as SVG: plain shapes and text, no script, colours that follow a light or a dark page.

mod answer;
mod bars;
mod canvas;
mod cpu;
mod curve;
mod flame;
mod latency;
mod percentiles;
mod staircase;
mod theme;

use courser_record::Lab;
use courser_record::lab::{Case, Chart, ChartKind};

use crate::labels;
use crate::layout::harmless;
use canvas::WIDTH;

pub use answer::{Costs, costs, ratios, then_and_now};
pub use flame::{flame, flames};
pub(crate) use theme::{rules, values};

/// A plot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawing {
    /// Its heading.
    pub title: String,
    /// What it shows, for whoever does not see it.
    pub description: String,
    /// A note below it; empty for nothing.
    pub caption: String,
    height: u32,
    inside: String,
}

impl Drawing {
    /// As an element within a page that has [`rules`].
    pub(crate) fn inline(&self) -> String {
        self.element("")
    }

    /// As a file of its own, light or dark by itself.
    pub fn file(&self) -> String {
        self.element(&format!("<style>{}</style>", theme::alone())) + "\n"
    }

    fn element(&self, style: &str) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\"><title>{title}</title>\
             <desc>{description}</desc>{style}{}</svg>",
            self.height, self.inside
        )
    }
}

/// All plots of a chart: one for each case, or cell, or one over all.
pub fn drawings(lab: &Lab, chart: &Chart) -> Vec<Drawing> {
    let cases = crate::grid::selected(lab, &chart.filter);
    match chart.kind {
        ChartKind::Bars => bars::draw(lab, chart, &cases),
        ChartKind::Curve => curve::draw(lab, chart, &cases),
        ChartKind::Staircase => staircase::draw(lab, chart, &cases),
        ChartKind::Latency => latency::draw(lab, chart, &cases),
        ChartKind::Cpu => cpu::draw(lab, chart, &cases),
        ChartKind::Percentiles => percentiles::draw(lab, chart, &cases),
    }
}

/// The heading of a plot of a case: the chart's, and the case's where there are several.
fn titled(chart: &Chart, case: &Case, cases: &[&Case]) -> String {
    if cases.len() > 1 {
        format!("{}: {}", chart.title, labels::short(cases, case))
    } else {
        chart.title.clone()
    }
}

/// The number of a target: the same in all plots, so that it keeps its colour and mark.
fn number(lab: &Lab, target: &str) -> usize {
    crate::ranking::targets(lab).iter().position(|known| *known == target).unwrap_or(0)
}

fn escaped(text: &str) -> String {
    harmless(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
