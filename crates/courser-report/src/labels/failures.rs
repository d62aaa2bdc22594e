//! Cells in which many transactions failed: their processor time is shared by the few that did not.

use courser_record::lab::Cell;
use courser_stats::number::float;

use crate::ranking::steps;

/// From this share on a figure per success is marked.
const MANY: f64 = 0.05;

/// `97 % of its transactions failed: their processor time is in the figure`; `None` where few did.
pub fn mostly_failed(cell: &Cell) -> Option<String> {
    // The steps of a staircase are meant to fail in the end.
    let is_staircase = cell.blocks.iter().any(|block| block.windows.len() > 1 && steps(block).len() > 1);
    let windows = || {
        cell.blocks
            .iter()
            .flat_map(|block| &block.windows)
            .filter(|window| !is_staircase || window.offered_tps.is_none())
    };
    let sum = |of: fn(&courser_record::lab::WindowResult) -> u64| {
        windows().map(|window| float(of(window))).sum::<f64>()
    };
    let (attempted, failed) = (sum(|window| window.attempted), sum(|window| window.failed));
    let succeeded = windows().map(|window| window.succeeded).sum::<u64>();
    if succeeded == 0
        && !cell.blocks.is_empty()
        && !cell.blocks.iter().all(|block| block.windows.iter().all(|window| !window.figures.is_empty()))
    {
        return Some("no transaction succeeded: what it shows is no speed".to_owned());
    }
    let share = failed / attempted.max(failed).max(1.0);
    (share > MANY).then(|| {
        format!(
            "{} of its transactions failed: their processor time is in the figure",
            super::whole_percent(share)
        )
    })
}
