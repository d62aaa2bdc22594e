//! Response times by percentile, a line for each target: a plot for each case. The horizontal axis is the logarithm of
//! 1/(1-p), as Gil Tene's plots have it, so that the few slow ones get as much room as the many.

use courser_record::Lab;
use courser_record::lab::{Case, Cell, Chart, Measure, WindowResult};
use courser_stats::Histogram;
use courser_stats::number::index;

use super::Drawing;
use super::canvas::{self, Scale, legend_height};
use super::theme::series;
use crate::figure;
use crate::labels;
use crate::ranking::cells;

/// Points a decade.
const STEPS: u32 = 12;

struct Line {
    number: usize,
    name: String,
    /// Logarithm of 1/(1-p), response in microseconds.
    points: Vec<(f64, f64)>,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let one = |case: &&Case| {
        let cells = cells(lab, &case.id).into_iter();
        let lines: Vec<Line> =
            cells.map(|cell| line(lab, cell)).filter(|line| line.points.len() > 1).collect();
        let is_closed = matches!(case.measure, Measure::Saturation | Measure::KeepAlive);
        (!lines.is_empty()).then(|| plot(&super::titled(chart, case, cases), &lines, is_closed))
    };
    cases.iter().filter_map(one).collect()
}

fn line(lab: &Lab, cell: &Cell) -> Line {
    let windows: Vec<&WindowResult> = cell.blocks.iter().flat_map(|block| &block.windows).collect();
    let mut all = Histogram::default();
    windows
        .iter()
        .filter(|window| window.inconclusive.is_none())
        .for_each(|window| all.merge(&window.response.unpack()));
    let points = (0..5 * STEPS).map(|step| f64::from(step) / f64::from(STEPS));
    let point = |log: f64| {
        let fraction = 1.0 - 10_f64.powf(-log);
        let seen = all.quantile(fraction).filter(|_| all.supports(fraction))?;
        Some((log, seen.as_nanos() as f64 / 1e3)).filter(|(_, us)| *us > 0.0)
    };
    let name = labels::target(lab, &cell.target).to_owned();
    Line { number: super::number(lab, &cell.target), name, points: points.filter_map(point).collect() }
}

fn plot(title: &str, lines: &[Line], is_closed: bool) -> Drawing {
    let names: Vec<(usize, String)> = lines.iter().map(|line| (line.number, line.name.clone())).collect();
    let height = 264 + legend_height(&names);
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|(x, _)| *x).fold(1.0, f64::max).ceil();
    let x = Scale { low: 0.0, high: last, ticks: index(last) + 1, label: Box::new(percentile) };
    let y = Scale::decades(points().map(|(_, y)| *y), |us| figure::time(Some(us)));
    let inside = canvas::draw(height, |canvas| {
        let axes = canvas.axes(0, 260, &x, &y);
        for line in lines {
            let places: Vec<_> = line.points.iter().map(|(x, y)| axes.at(*x, y.log10())).collect();
            canvas.line(places.clone(), series(line.number), 2);
            places.iter().step_by(STEPS as usize).for_each(|place| canvas.mark(line.number, *place));
        }
        canvas.legend(262, &names);
    });
    let describe = |line: &Line| {
        let whole = line.points.iter().filter(|(x, _)| x.fract() == 0.0);
        let points = whole.map(|(x, y)| format!("{} {}", percentile(*x), figure::time(Some(*y))));
        format!("{}: {}", line.name, points.collect::<Vec<_>>().join(", "))
    };
    let description = lines.iter().map(describe).collect::<Vec<_>>().join("; ");
    let kind =
        if is_closed { "closed loop: service time under saturation" } else { "from the intended start" };
    let caption = format!("response time by percentile, as far as the samples go; {kind}");
    Drawing { title: title.to_owned(), description, caption, height, inside }
}

/// `0 %`, `90 %`, `99 %`, `99.9 %`.
fn percentile(log: f64) -> String {
    if (log - log.round()).abs() > 1e-6 {
        return String::new();
    }
    let digits = index(log.round() - 2.0);
    format!("{:.digits$} %", 100.0 - 100.0 * 10_f64.powf(-log))
}
