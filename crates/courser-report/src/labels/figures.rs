//! Figures of libraries: each has a unit of its own; repeats of earlier records followed each other within a second.

use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{Measure, Value};

use crate::figure;
use crate::ranking::{CellValue, Estimate, FigureSpec, value_of};

/// A figure in its unit: seconds as a time of a fitting size.
fn amount(unit: &str, value: f64) -> String {
    match unit {
        "s" => figure::time(Some(value * 1e6)),
        _ => figure::number(Some(value)),
    }
}

/// What stands in a cell.
pub fn figure_text(unit: &str, value: &CellValue) -> String {
    match value {
        CellValue::Value(found) => amount(unit, found.value),
        other => super::cell_text(Value::Figure, other),
    }
}

/// Its interval of several passes, else what its repeats within one range over; a single measurement says so.
pub fn figure_spread(unit: &str, value: &CellValue) -> Option<String> {
    let CellValue::Value(Estimate { spread, blocks, .. }) = value else { return None };
    let what = if *blocks > 1 { "" } else { "repeats " };
    Some(spread.map_or("not repeated".to_owned(), |spread| {
        let (low, high) = (amount(unit, spread.low), amount(unit, spread.high));
        if low == high { format!("{what}{low}") } else { format!("{what}{}", super::range(&low, &high)) }
    }))
}

/// What a figure is called beside others: `sign`; a block size with its unit.
pub fn figure_name(name: &str, unit: &str) -> String {
    match unit {
        "1000 bytes/s" if name.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("{name} B at a time, 1000 bytes/s")
        }
        "s" => name.to_owned(),
        unit => format!("{name}, {unit}"),
    }
}

/// How far rows of a library differ that should not: the same connection with a kilobyte more.
fn drift(lab: &Lab) -> Option<f64> {
    let figure = |case: &str, target: &str, name: &str| {
        let spec = FigureSpec { figure: Some(name.to_owned()), ..Value::Figure.into() };
        value_of(lab, case, target, &spec).estimate().map(|found| found.value)
    };
    let mut ratios: BTreeMap<(&str, &str, &str), f64> = BTreeMap::new();
    for cell in &lab.cells {
        for kind in ["each", "reused"] {
            let of = |size: &str| figure(&cell.case, &cell.target, &format!("{size} {kind}"));
            if let Some((one, more)) = of("1 B").zip(of("1024 B")) {
                ratios.insert((&cell.case, &cell.target, kind), (more / one).max(one / more));
            }
        }
    }
    ratios.into_values().filter(|ratio| ratio.is_finite()).reduce(f64::max)
}

/// What repeats of libraries' figures say, and what they do not; `None` without such figures.
pub fn repeats(lab: &Lab) -> Option<String> {
    let in_process = lab.cases.iter().any(|case| case.measure == Measure::InProcess);
    let drift = drift(lab).filter(|drift| *drift > 1.1).map(|drift| {
        format!(
            " Here a kilobyte more, which costs next to nothing, changed a row by a factor of up to {}.",
            super::factor(drift)
        )
    });
    let passes = lab.cells.iter().map(|cell| cell.blocks.len()).max().unwrap_or(0);
    let how = if passes > 1 {
        format!(
            "Each figure is the median of {passes} passes over all rows, and its interval has what the machine did between them."
        )
    } else {
        "Repeats followed each other within a row: what the machine did from one row to the next is not in them."
            .to_owned()
    };
    in_process.then(|| format!("{how}{}", drift.unwrap_or_default()))
}
