//! Suites without a network: a cell for each case and library, of one block.

use courser_record::lab::{Block, Case, CellState, Measure, TargetNotes, WindowResult};

use super::state::State;
use crate::in_process::{self, Row};
use crate::progress::Progress;

/// The suite whose cases are both ends of TLS; the other one has bare operations.
const OVERHEADS: &str = "overheads";

/// Measures all rows of the suite, and notes them; of a record that has them nothing is left to do.
pub(crate) fn run(quick: bool, state: &mut State, progress: &mut impl Progress) {
    if !state.lab.cells.is_empty() {
        return;
    }
    let mut progress = |done: usize, of: usize, what: &str| progress.part(done, of, what);
    let rows = match state.lab.suite.name.as_str() {
        OVERHEADS => in_process::overheads(quick, &mut progress),
        _ => in_process::primitives(quick, &mut progress),
    };
    for row in rows {
        note(row, state);
    }
}

fn note(row: Row, state: &mut State) {
    if state.lab.case(&row.case).is_none() {
        state.lab.cases.push(Case {
            id: row.case.clone(),
            title: row.title,
            era: row.era,
            dimensions: row.dimensions,
            measure: Measure::InProcess,
            asked: Vec::new(),
            limit: None,
        });
    }
    if !state.lab.targets.iter().any(|known| known.name == row.target) {
        state.lab.targets.push(library(&row.target));
    }
    let cell = state.cell(&row.case, &row.target);
    match row.result {
        Ok(figures) => {
            let window = WindowResult { figures, ..WindowResult::default() };
            cell.blocks = vec![Block { windows: vec![window], ..Block::default() }];
            (cell.state, cell.reason) = (CellState::Done, None);
        }
        Err(why) => (cell.state, cell.reason) = (CellState::Cannot, Some(why)),
    }
}

fn library(name: &str) -> TargetNotes {
    let (version, note) = in_process::library(name);
    TargetNotes { name: name.to_owned(), title: name.to_owned(), version, note, ..TargetNotes::default() }
}
