//! Suites without a network: a cell for each case and library, of a block for each pass over all rows.
//!
//! A machine drifts from row to row more than within one. Repeats that follow each other do not see that; passes do.

use courser_record::lab::{Block, Case, CellState, Measure, TargetNotes, WindowResult};

use super::state::State;
use crate::in_process::{self, Row};
use crate::measure::Interrupt;
use crate::progress::Progress;

/// The suite whose cases are both ends of TLS; the other one has bare operations.
const OVERHEADS: &str = "overheads";

/// Measures all rows of the suite pass by pass, and keeps each pass; of a record that has some, those that are left. An interrupt
/// ends it after the pass that is under way.
pub(crate) fn run(quick: bool, interrupt: &Interrupt, state: &mut State, progress: &mut impl Progress) {
    let is_overheads = state.lab.suite.name == OVERHEADS;
    let passes =
        if is_overheads { in_process::OVERHEADS_PASSES } else { in_process::primitives_passes(quick) };
    let done = state.lab.cells.iter().flat_map(|cell| &cell.blocks).map(|block| block.round + 1).max();
    for pass in done.unwrap_or(0)..passes {
        if interrupt.came() {
            return;
        }
        let mut progress = |done: usize, of: usize, what: &str| {
            let (before, all) = (of * pass as usize, of * passes as usize);
            progress.part(before + done, all, &format!("{what}, pass {} of {passes}", pass + 1));
        };
        let rows = if is_overheads {
            in_process::overheads(quick, &mut progress)
        } else {
            in_process::primitives(quick, &mut progress)
        };
        rows.into_iter().for_each(|row| note(row, pass, state));
        state.keep();
    }
}

fn note(row: Row, pass: u32, state: &mut State) {
    if state.lab.case(&row.case).is_none() {
        state.lab.cases.push(Case {
            id: row.case.clone(),
            title: row.title,
            era: row.era,
            dimensions: row.dimensions,
            measure: Measure::InProcess,
            asked: Vec::new(),
            limit: None,
            control: None,
        });
    }
    if !state.lab.targets.iter().any(|known| known.name == row.target) {
        let is_protocol = state.lab.suite.name == OVERHEADS;
        state.lab.targets.push(library(&row.target, is_protocol));
    }
    let cell = state.cell(&row.case, &row.target);
    match row.result {
        Ok(figures) => {
            let window = WindowResult { figures, ..WindowResult::default() };
            cell.blocks.push(Block { round: pass, windows: vec![window], ..Block::default() });
            (cell.state, cell.reason) = (CellState::Done, None);
        }
        Err(why) => (cell.state, cell.reason) = (CellState::Cannot, Some(why)),
    }
}

/// A library; where whole connections are measured, with what makes the protocol of it.
fn library(name: &str, is_protocol: bool) -> TargetNotes {
    let (version, note) = in_process::library(name);
    let title = match name {
        "aws-lc-rs" if is_protocol => "rustls on aws-lc-rs",
        _ => name,
    };
    TargetNotes { name: name.to_owned(), title: title.to_owned(), version, note, ..TargetNotes::default() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use courser_record::lab::{Era, Figure};

    use super::*;
    use crate::state::About;
    use crate::suite::Suite;

    /// A row that takes so long in a pass, as precise as repeats that follow each other are.
    fn row(value: f64) -> Row {
        let figure = Figure {
            name: "1 B each".into(),
            unit: "s per 1000 connections".into(),
            value,
            low: Some(value),
            high: Some(value),
        };
        Row {
            case: "tls-13".into(),
            title: "TLS 1.3".into(),
            era: Era::Modern,
            dimensions: BTreeMap::new(),
            target: "aws-lc-rs".into(),
            result: Ok(vec![figure]),
        }
    }

    #[test]
    fn each_pass_over_the_rows_is_a_block() {
        let folder = courser_testkit::Folder::new();
        let suite = Suite::find(OVERHEADS, true).unwrap();
        let about = About { suite: &suite, seed: 1, quick: true, rtt: None, notice: |_| {} };
        let mut state = State::new(folder.join("record.json"), &about).unwrap();
        let drifting = [0.1, 0.18, 0.12];
        (0..).zip(drifting).for_each(|(pass, value)| note(row(value), pass, &mut state));
        let cell = state.lab.cell("tls-13", "aws-lc-rs").unwrap();
        let seen = cell.blocks.iter().map(|block| (block.round, block.windows[0].figures[0].value));
        assert_eq!(seen.collect::<Vec<_>>(), [(0, 0.1), (1, 0.18), (2, 0.12)]);
        assert_eq!(state.lab.targets[0].title, "rustls on aws-lc-rs", "it makes no handshake by itself");
    }
}
