//! What the targets of a case are ranked by.

use courser_record::Lab;
use courser_record::lab::{Case, Cell, CellState, Measure, Value};

use super::block_value::Kind;
use super::estimate::Estimate;
use super::share::{self, Shares};
use super::{CellValue, FigureSpec, cell_value};

/// What a ranking goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// A rate, processor time, a response time, a share of those who came.
    pub value: Value,
    /// The figure's name, with [`Value::Figure`].
    pub figure: Option<String>,
    /// Why it is not the rate; `None` where it is, or where the rate was given.
    pub instead_of_rate: Option<String>,
}

impl Basis {
    fn of(value: Value) -> Self {
        Self { value, figure: None, instead_of_rate: None }
    }

    /// The figure itself.
    pub fn spec(&self, client: Option<String>) -> FigureSpec {
        FigureSpec { figure: self.figure.clone(), client, ..self.value.into() }
    }
}

/// Whether it is how long clients wait.
pub(crate) fn is_response(value: Value) -> bool {
    matches!(value, Value::Mean | Value::P50 | Value::P99)
}

/// Whether less of it is better.
pub(crate) fn is_cost(value: Value) -> bool {
    is_response(value) || matches!(value, Value::Cpu | Value::Memory)
}

/// A rate where every target has one that holds; else processor time, if that is known of all that were measured.
pub(super) fn basis(lab: &Lab, case: &Case, client: Option<&str>, cells: &[&Cell]) -> Basis {
    let rate = match case.measure {
        Measure::Staircase => Value::MaxTpsAvg100ms,
        // More clients come than can be served: of whom are most served? The rate is that of what was offered to each.
        Measure::Rate if share::is_asked(case) => {
            let figure = Some(Shares::of(case, cells).name().to_owned());
            return Basis { figure, ..Basis::of(Value::Figure) };
        }
        // Each is offered a part of what it can carry itself: how long do its clients wait?
        Measure::Rate if case.dimensions.contains_key("capacity") && !is_held(cells) => {
            return Basis::of(waits(lab, cells));
        }
        Measure::Rate => return Basis::of(Value::Cpu),
        _ => Value::Tps,
    };
    let spec = |value: Value| FigureSpec { client: client.map(str::to_owned), ..value.into() };
    let done = || cells.iter().filter(|cell| cell.state == CellState::Done || !cell.blocks.is_empty());
    // Of a block that is too short processor time says as little.
    let is_short =
        |cell: &&&Cell| matches!(cell_value(lab, cell, &spec(Value::Cpu)), CellValue::Inconclusive { .. });
    let inconclusive =
        done().filter(|cell| !is_short(cell)).find_map(|cell| match cell_value(lab, cell, &spec(rate)) {
            CellValue::Inconclusive { reason, .. } => Some(format!("of {}: {reason}", cell.target)),
            CellValue::Value(Estimate { kind: Kind::AtLeast, .. }) if rate == Value::Tps => {
                Some(format!("of {}: only a lower bound is known", cell.target))
            }
            _ => None,
        });
    let has_cpu = |cell: &&&Cell| matches!(cell_value(lab, cell, &spec(Value::Cpu)), CellValue::Value(_));
    let usable = done().filter(has_cpu).count() > 1;
    match inconclusive.filter(|_| usable) {
        Some(reason) => Basis { instead_of_rate: Some(reason), ..Basis::of(Value::Cpu) },
        None => Basis::of(rate),
    }
}

/// Whether response times have waits for the next period of a share in them.
fn is_held(cells: &[&Cell]) -> bool {
    cells.iter().any(|cell| cell.server_share.is_some())
}

/// The highest percentile that the samples of all targets support.
fn waits(lab: &Lab, cells: &[&Cell]) -> Value {
    let mut measured = cells.iter().filter(|cell| !cell.blocks.is_empty());
    let is_known = |cell: &&Cell| !matches!(cell_value(lab, cell, &Value::P99.into()), CellValue::Unknown);
    if measured.all(is_known) { Value::P99 } else { Value::P50 }
}
