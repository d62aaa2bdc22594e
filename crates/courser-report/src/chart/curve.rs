//! A line for each target over a dimension, whose values stand in their natural order.

use std::cmp::Ordering;

use courser_record::Lab;
use courser_record::lab::{Case, Chart};
use courser_stats::number::length;

use super::Drawing;
use super::canvas::{self, Scale, legend_height, width};
use super::theme::series;
use crate::labels;
use crate::ranking::{FigureSpec, targets, value_of};

struct Line {
    number: usize,
    name: String,
    points: Vec<(usize, f64)>,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let Some(dimension) = &chart.x else { return Vec::new() };
    let mut ticks: Vec<String> =
        cases.iter().filter_map(|case| case.dimensions.get(dimension).cloned()).collect();
    ticks.sort_by(|a, b| natural(a, b));
    ticks.dedup();
    let lines = lines(lab, chart, cases, dimension, &ticks);
    if lines.is_empty() || ticks.len() < 2 {
        return Vec::new();
    }
    vec![plot(chart, dimension, &ticks, &lines)]
}

/// One for each target, and for each further way in which cases differ.
fn lines(lab: &Lab, chart: &Chart, cases: &[&Case], dimension: &str, ticks: &[String]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for target in targets(lab) {
        for case in cases {
            let Some(x) =
                case.dimensions.get(dimension).and_then(|at| ticks.iter().position(|tick| tick == at))
            else {
                continue;
            };
            let value = value_of(lab, &case.id, target, &FigureSpec::from(chart.value));
            let Some(found) = value.estimate() else { continue };
            let name = line_name(cases, case, dimension, labels::target(lab, target));
            let number = super::number(lab, target);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push((x, found.value)),
                None => lines.push(Line { number, name, points: vec![(x, found.value)] }),
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by_key(|(x, _)| *x));
    lines
}

fn line_name(cases: &[&Case], case: &Case, dimension: &str, target: &str) -> String {
    let differs =
        |name: &str| cases.iter().any(|other| other.dimensions.get(name) != case.dimensions.get(name));
    let further = case.dimensions.iter().filter(|(name, _)| *name != dimension && differs(name));
    std::iter::once(target).chain(further.map(|(_, value)| value.as_str())).collect::<Vec<_>>().join(", ")
}

fn plot(chart: &Chart, dimension: &str, ticks: &[String], lines: &[Line]) -> Drawing {
    let names: Vec<(usize, String)> = lines.iter().map(|line| (line.number, line.name.clone())).collect();
    let height = 260 + legend_height(&names);
    let value = chart.value;
    let x = across(ticks);
    let y = Scale::from_zero(lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y), move |at| {
        labels::amount(value, at)
    });
    let inside = canvas::draw(height, |canvas| {
        let axes = canvas.axes(0, 256, &x, &y);
        for line in lines {
            let points: Vec<_> = line.points.iter().map(|(x, y)| axes.at(length(*x), *y)).collect();
            canvas.line(points.clone(), series(line.number), 2);
            points.into_iter().for_each(|point| canvas.mark(line.number, point));
        }
        canvas.legend(258, &names);
    });
    let describe = |line: &Line| {
        let points = line.points.iter().map(|(x, y)| format!("{} {}", ticks[*x], labels::amount(value, *y)));
        format!("{}: {}", line.name, points.collect::<Vec<_>>().join(", "))
    };
    let description = lines.iter().map(describe).collect::<Vec<_>>().join("; ");
    let caption = format!("{} by {dimension}", labels::value(value));
    Drawing { title: chart.title.clone(), description, caption, height, inside }
}

/// Evenly spaced; every second name, or fewer, where they would run into each other.
fn across(ticks: &[String]) -> Scale {
    let widest = ticks.iter().map(|tick| width(tick) + 10).max().unwrap_or(1);
    let room = (340 / widest.max(1)).max(1);
    let every = ticks.len().div_ceil(usize::try_from(room).unwrap_or(1)).max(1);
    let (names, last) = (ticks.to_vec(), length(ticks.len()) - 1.0);
    let label = move |at: f64| {
        let near = at.round();
        let index = names.iter().enumerate().find(|(index, _)| (length(*index) - near).abs() < 0.1);
        let is_tick = (at - near).abs() < 1e-6;
        index
            .filter(|(index, _)| is_tick && index % every == 0)
            .map_or(String::new(), |(_, name)| name.clone())
    };
    Scale { low: -0.25, high: last + 0.25, ticks: ticks.len() + 2, label: Box::new(label) }
}

/// `512 B` before `1 KB` before `64 KB`; `each` before `100` before `never`; other text by the alphabet.
fn natural(a: &str, b: &str) -> Ordering {
    let (first, second) = (rank(a), rank(b));
    first.0.cmp(&second.0).then(first.1.total_cmp(&second.1)).then_with(|| a.cmp(b))
}

/// Words that come before numbers, numbers by their size, words that come after them.
fn rank(text: &str) -> (u8, f64) {
    match text.to_lowercase().as_str() {
        "each" | "none" | "off" => return (0, 0.0),
        "never" | "all" | "unlimited" => return (3, 0.0),
        _ => {}
    }
    let is_digit = |char: char| char.is_ascii_digit() || char == '.';
    let start = text.find(|char: char| char.is_ascii_digit());
    let Some(rest) = start.map(|start| &text[start..]) else { return (2, 0.0) };
    let end = rest.find(|char| !is_digit(char)).unwrap_or(rest.len());
    let number: f64 = rest[..end].parse().unwrap_or(0.0);
    let unit = match rest[end..].trim_start().chars().next() {
        Some('k' | 'K') => 1e3,
        Some('M') => 1e6,
        Some('G') => 1e9,
        _ => 1.0,
    };
    (1, number * unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_their_natural_order() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_by(|a, b| natural(a, b));
            names
        };
        assert_eq!(sorted(vec!["64 KB", "1 KB", "107 B", "1 MB"]), ["107 B", "1 KB", "64 KB", "1 MB"]);
        assert_eq!(sorted(vec!["never", "100", "each"]), ["each", "100", "never"]);
        assert_eq!(sorted(vec!["RSA-4096", "RSA-2048", "P-256"]), ["P-256", "RSA-2048", "RSA-4096"]);
    }
}
