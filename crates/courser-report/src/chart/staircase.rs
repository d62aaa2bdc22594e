//! Attempted, successful and failed transactions a second over time, the response time below: a plot for each cell.

use courser_record::Lab;
use courser_record::lab::{Block, Case, Cell, Chart};
use courser_record::{Second, Summary};
use courser_stats::number::{float, length};
use plotters::style::RGBColor;

use super::Drawing;
use super::canvas::{self, Axes, AxisSide, Canvas, Scale};
use super::theme::{FAINT, INK, MARK, series};
use crate::figure;
use crate::labels;
use crate::ranking::{self, cells, steps};

/// More points than pixels show nothing more.
const MOST_POINTS: usize = 130;

/// What happened around a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    at: f64,
    attempted: f64,
    succeeded: f64,
    failed: f64,
    mean_us: Option<f64>,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let of_case = |case: &&Case| {
        let cells = cells(lab, &case.id).into_iter();
        let one = |cell: &Cell| plot(lab, chart, &super::titled(chart, case, cases), cell);
        cells.filter_map(one).collect::<Vec<_>>()
    };
    cases.iter().flat_map(of_case).collect()
}

fn plot(lab: &Lab, chart: &Chart, title: &str, cell: &Cell) -> Option<Drawing> {
    let block = cell.blocks.iter().find(|block| !steps(block).is_empty())?;
    let points = thinned(points(block));
    let height = 390;
    let target = labels::target(lab, &cell.target);
    let inside = canvas::draw(height, |canvas| rates(canvas, &points));
    let highest = points.iter().map(|point| point.succeeded).fold(0.0, f64::max);
    let slowest = points.iter().filter_map(|point| point.mean_us).fold(0.0, f64::max);
    let description = format!(
        "{}: attempted, successful and failed transactions a second over time, and the mean response time; at most {} \
         succeeded in a second, the longest mean was {}",
        chart.title,
        figure::number(Some(highest)),
        figure::time(Some(slowest))
    );
    let fall = labels::fall(block).map(|text| format!("; {text}"));
    let caption = format!(
        "{target}: block 1 of {}; successful: when they ended; dashed below: 100 ms{}",
        cell.blocks.len(),
        fall.unwrap_or_default()
    );
    Some(Drawing { title: format!("{title}, {target}"), description, caption, height, inside })
}

fn rates(canvas: &Canvas<'_>, points: &[Point]) {
    let end = points.iter().map(|point| point.at).fold(1.0, f64::max);
    let x = || Scale { low: 0.0, high: end, ticks: 7, label: Box::new(|at| figure::number(Some(at))) };
    let every = points.iter().flat_map(|point| [point.attempted, point.succeeded, point.failed]);
    let upper = canvas.axes(24, 214, &x(), &Scale::from_zero(every, |at| figure::number(Some(at))));
    line(canvas, &upper, points, |point| point.attempted, MARK);
    line(canvas, &upper, points, |point| point.failed, series(1));
    line(canvas, &upper, points, |point| point.succeeded, series(0));
    for (x, name, colour) in
        [(66, "attempted", MARK), (188, "successful", series(0)), (312, "failed", series(1))]
    {
        canvas.line(vec![(x, 12), (x + 24, 12)], colour, 2);
        canvas.text((x + 30, 12), AxisSide::Left, INK, name);
    }
    responses(canvas, points, &x());
}

fn line(canvas: &Canvas<'_>, axes: &Axes<'_>, points: &[Point], of: fn(&Point) -> f64, colour: RGBColor) {
    let line = points.iter().map(|point| axes.at(point.at, of(point))).collect();
    canvas.line(line, colour, 2);
}

fn responses(canvas: &Canvas<'_>, points: &[Point], x: &Scale) {
    let known = points.iter().filter_map(|point| point.mean_us).chain([100_000.0]);
    let y = Scale::decades(known, |us| figure::time(Some(us)));
    let lower = canvas.axes(236, 390, x, &y);
    canvas.text((6, 228), AxisSide::Left, FAINT, "mean response, over seconds");
    canvas.line(vec![lower.at(x.low, 5.0), lower.at(x.high, 5.0)], MARK, 1);
    for run in unbroken(points, &lower) {
        canvas.line(run, series(0), 2);
    }
}

/// A line is broken where nothing ended.
fn unbroken(points: &[Point], axes: &Axes<'_>) -> Vec<Vec<canvas::Point>> {
    let runs = points.split(|point| point.mean_us.is_none_or(|mean| mean <= 0.0));
    let place = |point: &Point| axes.at(point.at, point.mean_us.unwrap_or(1.0).log10());
    runs.filter(|run| run.len() > 1).map(|run| run.iter().map(place).collect()).collect()
}

/// Second by second; of steps without seconds each as a whole.
fn points(block: &Block) -> Vec<Point> {
    let mut seconds: Vec<&Second<Summary>> =
        steps(block).into_iter().flat_map(|step| &step.seconds).collect();
    seconds.sort_by_key(|second| second.second);
    let first = seconds.first().map_or(0, |second| second.second);
    let of_second = |second: &&Second<Summary>| Point {
        at: float(second.second - first),
        attempted: float(second.attempted),
        succeeded: float(second.succeeded),
        failed: float(second.failed),
        mean_us: second.response.mean_us,
    };
    if seconds.len() > 1 { seconds.iter().map(of_second).collect() } else { step_points(block) }
}

fn step_points(block: &Block) -> Vec<Point> {
    let mut start = 0.0;
    let mut points = Vec::new();
    for step in steps(block) {
        let length = float(step.window_us.max(1)) / 1e6;
        let rate = |count: u64| float(count) / length;
        let point = Point {
            at: start,
            attempted: rate(step.attempted),
            succeeded: ranking::rate(step),
            failed: rate(step.failed),
            mean_us: step.response.summary().mean_us,
        };
        points.extend([point, Point { at: start + length, ..point }]);
        start += length;
    }
    points
}

/// Neighbours averaged until there are few enough.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    let several = points.len().div_ceil(MOST_POINTS);
    if several < 2 {
        return points;
    }
    points.chunks(several).map(average).collect()
}

fn average(points: &[Point]) -> Point {
    let count = length(points.len());
    let mean = |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / count;
    let known: Vec<f64> = points.iter().filter_map(|point| point.mean_us).collect();
    Point {
        at: points[0].at,
        attempted: mean(|point| point.attempted),
        succeeded: mean(|point| point.succeeded),
        failed: mean(|point| point.failed),
        mean_us: (!known.is_empty()).then(|| known.iter().sum::<f64>() / length(known.len())),
    }
}
