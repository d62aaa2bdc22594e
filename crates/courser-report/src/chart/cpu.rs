//! Where processor time goes, stacked, for each target: user and kernel, or the classes of a profile; with the physical
//! limit. A plot for each case, all on one scale.

use courser_record::Lab;
use courser_record::lab::{Case, Cell, Chart, Limit, Value};

use super::Drawing;
use super::canvas::{self, AxisSide, Canvas, fitted, rounded, sheet_width};
use super::theme::{FAINT, INK, series};
use crate::figure;
use crate::labels;
use crate::ranking::{FigureSpec, cell_value, cells, distinct};

/// Height of a bar with the text above it.
const ROW: i32 = 42;

/// The classes of a profile, in the order in which they are stacked; others come after them.
const CLASSES: [&str; 6] = ["crypto", "tls", "kernel", "proxy", "memory", "other"];

/// Without a profile.
const HALVES: [&str; 2] = ["user", "kernel"];

struct Row {
    name: String,
    per_connection: f64,
    /// Name and microseconds per connection.
    parts: Vec<(String, f64)>,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let groups: Vec<(&Case, Vec<Row>)> = cases.iter().map(|case| (*case, rows(lab, case))).collect();
    let most = groups.iter().flat_map(|(_, rows)| rows).map(|row| row.per_connection).fold(0.0, f64::max);
    let one = |(case, rows): &(&Case, Vec<Row>)| plot(&super::titled(chart, case, cases), case, rows, most);
    groups.iter().filter(|(_, rows)| !rows.is_empty()).map(one).collect()
}

fn rows(lab: &Lab, case: &Case) -> Vec<Row> {
    let cells = cells(lab, &case.id);
    // Classes only where all have them: else two kinds of stacks would stand below each other.
    let measured = || cells.iter().filter(|cell| !cell.blocks.is_empty());
    let is_sampled = measured().all(|cell| cell.profile.as_ref().is_some_and(|profile| profile.samples > 0));
    measured().filter_map(|cell| row(lab, cell, is_sampled)).collect()
}

fn row(lab: &Lab, cell: &Cell, is_sampled: bool) -> Option<Row> {
    let of =
        |value: Value| cell_value(lab, cell, &FigureSpec::from(value)).estimate().map(|found| found.value);
    let cpu = of(Value::Cpu)?;
    let kernel = of(Value::KernelShare);
    let parts = match (&cell.profile, kernel) {
        (Some(profile), _) if is_sampled => {
            let all = profile.classes.values().sum();
            let part = |(name, count): (&String, &u64)| {
                (name.to_lowercase(), cpu * figure::share(*count, all).unwrap_or(0.0))
            };
            let mut parts: Vec<_> = profile.classes.iter().map(part).collect();
            parts.sort_by_key(|(name, _)| {
                CLASSES.iter().position(|class| class == name).unwrap_or(CLASSES.len())
            });
            parts
        }
        (_, Some(kernel)) => {
            vec![(HALVES[0].to_owned(), cpu * (1.0 - kernel)), (HALVES[1].to_owned(), cpu * kernel)]
        }
        _ => vec![("all".to_owned(), cpu)],
    };
    Some(Row { name: labels::target(lab, &cell.target).to_owned(), per_connection: cpu, parts })
}

fn plot(title: &str, case: &Case, rows: &[Row], most: f64) -> Drawing {
    let names = distinct(rows.iter().flat_map(|row| &row.parts).map(|(name, _)| name));
    let legend = i32::try_from(names.len().div_ceil(3)).unwrap_or(1) * 20 + 6;
    let height = rows.len() * ROW.unsigned_abs() as usize + legend.unsigned_abs() as usize + 8;
    let height = u32::try_from(height).unwrap_or(u32::MAX);
    let limit = case.limit.as_ref();
    let us = limit.map(|limit| limit.us_per_connection);
    let inside = canvas::draw(height, |canvas| {
        heads(canvas, &names);
        for (index, row) in rows.iter().enumerate() {
            stack(canvas, legend + i32::try_from(index).unwrap_or(0) * ROW, row, &names, most, us);
        }
    });
    let describe = |row: &Row| {
        let parts = row.parts.iter().map(|(name, us)| format!("{name} {}", figure::time(Some(*us))));
        format!("{}: {}", row.name, parts.collect::<Vec<_>>().join(", "))
    };
    let description = rows.iter().map(describe).collect::<Vec<_>>().join("; ");
    let what = |limit: &Limit| if limit.floor.is_empty() { "bare cryptography" } else { "the limit" };
    let least = limit.map(|limit| format!("; upright line: {}, {}", what(limit), labels::least(limit)));
    let caption = format!("processor time per connection{}", least.unwrap_or_default());
    Drawing { title: title.to_owned(), description, caption, height, inside }
}

fn heads(canvas: &Canvas<'_>, names: &[String]) {
    for (index, name) in names.iter().enumerate() {
        let place = i32::try_from(index).unwrap_or(0);
        let (x, y) = (4 + place % 3 * 136, 10 + place / 3 * 20);
        canvas.bar((x, y - 6), (x + 14, y + 6), series(index), 1.0);
        canvas.text((x + 20, y), AxisSide::Left, INK, &fitted(name, 112));
    }
}

fn stack(canvas: &Canvas<'_>, top: i32, row: &Row, names: &[String], most: f64, limit: Option<f64>) {
    let (left, right) = (4, sheet_width() - 12);
    let text = figure::time(Some(row.per_connection));
    canvas.text(
        (left, top + 10),
        AxisSide::Left,
        INK,
        &fitted(&row.name, right - left - canvas::width(&text) - 12),
    );
    canvas.text((right, top + 10), AxisSide::Right, FAINT, &text);
    let x = |us: f64| left + rounded(f64::from(right - left) * us / most.max(f64::MIN_POSITIVE));
    let mut sum = 0.0;
    for (name, us) in &row.parts {
        let colour = series(names.iter().position(|known| known == name).unwrap_or(0));
        canvas.bar((x(sum), top + 20), (x(sum + us), top + 36), colour, 1.0);
        sum += us;
    }
    if let Some(limit) = limit.filter(|limit| *limit <= most) {
        canvas.line(vec![(x(limit), top + 17), (x(limit), top + 39)], INK, 3);
    }
}
