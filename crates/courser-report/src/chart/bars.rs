//! A bar with its interval for each target: a plot for each case, all on one scale.

use courser_record::Lab;
use courser_record::lab::{Case, Cell, Chart, Value};

use super::Drawing;
use super::canvas::{self, AxisSide, Canvas, Point, fitted, rounded, sheet_width};
use super::theme::{FAINT, INK, LINE, series};
use crate::labels;
use crate::ranking::{CellValue, FigureSpec, Kind, cell_value, cells, clients};

/// Height of a bar with the text above it.
const ROW: i32 = 42;

struct Row {
    number: usize,
    name: String,
    found: CellValue,
    value: Value,
}

pub(super) fn draw(lab: &Lab, chart: &Chart, cases: &[&Case]) -> Vec<Drawing> {
    let groups: Vec<(&Case, Vec<Row>)> = cases.iter().map(|case| (*case, rows(lab, chart, case))).collect();
    let ends = groups.iter().flat_map(|(_, rows)| rows).filter_map(|row| row.found.estimate());
    let most = ends.map(|found| found.spread.map_or(found.value, |spread| spread.high.max(found.value)));
    let most = most.fold(0.0, f64::max);
    let one = |(case, rows): &(&Case, Vec<Row>)| plot(chart, &super::titled(chart, case, cases), rows, most);
    groups.iter().filter(|(_, rows)| !rows.is_empty()).map(one).collect()
}

fn rows(lab: &Lab, chart: &Chart, case: &Case) -> Vec<Row> {
    let cells = cells(lab, &case.id).into_iter();
    cells.flat_map(|cell| of_cell(lab, chart, case, cell)).collect()
}

/// One for each kind of client where there are several.
fn of_cell(lab: &Lab, chart: &Chart, case: &Case, cell: &Cell) -> Vec<Row> {
    let clients = match case.measure {
        courser_record::lab::Measure::Clients => clients(lab, &case.id).into_iter().map(Some).collect(),
        _ => vec![None],
    };
    let target = labels::target(lab, &cell.target);
    let row = |client: Option<String>| {
        let name = client.as_ref().map_or(target.to_owned(), |client| format!("{target}, {client}"));
        let found = cell_value(lab, cell, &FigureSpec { client, ..chart.value.into() });
        let value = if matches!(found, CellValue::Inconclusive { computed: Some(_), .. }) {
            Value::TpsOfCpu
        } else {
            chart.value
        };
        Row { number: super::number(lab, &cell.target), name, found, value }
    };
    clients.into_iter().map(row).collect()
}

fn plot(chart: &Chart, title: &str, rows: &[Row], most: f64) -> Drawing {
    let height = u32::try_from(rows.len()).unwrap_or(0) * ROW.unsigned_abs() + 14;
    let inside = canvas::draw(height, |canvas| {
        for (index, row) in rows.iter().enumerate() {
            bar(canvas, i32::try_from(index).unwrap_or(0) * ROW, row, most);
        }
    });
    let describe = |row: &Row| format!("{} {}", row.name, labels::cell_text(chart.value, &row.found));
    let description = rows.iter().map(describe).collect::<Vec<_>>().join("; ");
    let description = format!("{}: {description}", labels::value(chart.value));
    let caption =
        format!("{}; whiskers: 95 % interval, or the range of few blocks", labels::value(chart.value));
    Drawing { title: title.to_owned(), description, caption, height, inside }
}

fn bar(canvas: &Canvas<'_>, top: i32, row: &Row, most: f64) {
    let (left, right) = (4, sheet_width() - 12);
    let text = labels::cell_text(row.value, &row.found);
    let room = right - left - canvas::width(&text) - 12;
    canvas.text((left, top + 10), AxisSide::Left, INK, &fitted(&row.name, room));
    let is_known = row.found.estimate().is_some();
    canvas.text((right, top + 10), AxisSide::Right, if is_known { INK } else { FAINT }, &text);
    canvas.line(vec![(left, top + 28), (right, top + 28)], LINE, 1);
    let Some(found) = row.found.estimate() else { return };
    let x = |value: f64| left + rounded(f64::from(right - left) * value / most.max(f64::MIN_POSITIVE));
    // What was computed is paler than what was measured.
    let opacity = if found.kind == Kind::Computed { 0.45 } else { 1.0 };
    canvas.bar((left, top + 20), (x(found.value), top + 36), series(row.number), opacity);
    if let Some(spread) = found.spread {
        whisker(canvas, (x(spread.low), top + 28), x(spread.high));
    }
}

fn whisker(canvas: &Canvas<'_>, (low, y): Point, high: i32) {
    canvas.line(vec![(low, y), (high, y)], INK, 2);
    for x in [low, high] {
        canvas.line(vec![(x, y - 5), (x, y + 5)], INK, 2);
    }
}
