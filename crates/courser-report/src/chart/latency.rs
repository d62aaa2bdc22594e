//! Response time against offered load, a line for each target: a plot for each case.

use courser_record::Lab;
use courser_record::lab::{Case, Cell, Chart};

use super::Drawing;
use super::canvas::{self, Scale, legend_height};
use super::theme::{MARK, series};
use crate::figure;
use crate::labels;
use crate::ranking::{cells, median, steps};

struct Line {
    number: usize,
    name: String,
    /// Transactions a second on offer, mean response in microseconds.
    points: Vec<(f64, f64)>,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let one = |case: &&Case| {
        let cells = cells(lab, &case.id).into_iter();
        let lines: Vec<Line> =
            cells.map(|cell| line(lab, cell)).filter(|line| line.points.len() > 1).collect();
        (!lines.is_empty()).then(|| plot(&super::titled(chart, case, cases), &lines))
    };
    cases.iter().filter_map(one).collect()
}

/// Step by step the medians over the blocks.
fn line(lab: &Lab, cell: &Cell) -> Line {
    let blocks: Vec<_> = cell.blocks.iter().map(steps).collect();
    let most = blocks.iter().map(Vec::len).max().unwrap_or(0);
    let point = |index: usize| {
        let seen: Vec<(f64, f64)> = blocks
            .iter()
            .filter_map(|steps| steps.get(index))
            .filter_map(|step| Some((step.offered_tps?, step.response.summary().mean_us?)))
            .filter(|(_, mean)| *mean > 0.0)
            .collect();
        let (offered, means): (Vec<f64>, Vec<f64>) = seen.into_iter().unzip();
        (!offered.is_empty()).then(|| (median(&offered), median(&means)))
    };
    let name = labels::target(lab, &cell.target).to_owned();
    Line { number: super::number(lab, &cell.target), name, points: (0..most).filter_map(point).collect() }
}

fn plot(title: &str, lines: &[Line]) -> Drawing {
    let names: Vec<(usize, String)> = lines.iter().map(|line| (line.number, line.name.clone())).collect();
    let height = 264 + legend_height(&names);
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale { ticks: 5, ..Scale::from_zero(points().map(|(x, _)| *x), |at| figure::number(Some(at))) };
    let y = Scale::decades(points().map(|(_, y)| *y).chain([100_000.0]), |us| figure::time(Some(us)));
    let inside = canvas::draw(height, |canvas| {
        let axes = canvas.axes(0, 260, &x, &y);
        canvas.line(vec![axes.at(x.low, 5.0), axes.at(x.high, 5.0)], MARK, 1);
        for line in lines {
            let places: Vec<_> = line.points.iter().map(|(x, y)| axes.at(*x, y.log10())).collect();
            canvas.line(places.clone(), series(line.number), 2);
            places.into_iter().for_each(|place| canvas.mark(line.number, place));
        }
        canvas.legend(262, &names);
    });
    let describe = |line: &Line| {
        let points = line.points.iter();
        let points = points.map(|(x, y)| format!("{} at {}", figure::time(Some(*y)), figure::rate(Some(*x))));
        format!("{}: {}", line.name, points.collect::<Vec<_>>().join(", "))
    };
    let description = lines.iter().map(describe).collect::<Vec<_>>().join("; ");
    let caption = "mean response time by transactions a second on offer; dashed: 100 ms".to_owned();
    Drawing { title: title.to_owned(), description, caption, height, inside }
}
