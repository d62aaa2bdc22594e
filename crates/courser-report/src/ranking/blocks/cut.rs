//! Closed loops that were too short: what the ends of a block cut is then no small part of it.
//!
//! A server's processor time goes into handshakes, and is divided by connections that ended. Where hardly more ended than
//! clients are open at a time, most of the work was for connections that are not among them, and the other way round.

use courser_record::lab::{Block, Case, Cell, Measure};
use courser_stats::number::{float, length};

use super::{Sum, chosen};
use crate::figure::count;
use crate::ranking::FigureSpec;

/// Clients of a closed loop, where a case does not say (docs/lab.md).
const CLIENTS: u32 = 64;

/// Connections that each client has to end in a block, on average.
const TURNS: f64 = 2.0;

/// How far connections may be off the handshakes of the same time.
const APART: f64 = 0.15;

/// Why processor time per connection and rates of a block say nothing: it was shorter than its connections need. `None` where
/// it was not, and where it is no closed loop with a handshake for each connection.
pub(super) fn cut(case: &Case, cell: &Cell, block: &Block, spec: &FigureSpec) -> Option<String> {
    let windows = chosen(case, block, spec);
    let is_loop = is_loop_of_handshakes(case) && windows.iter().all(|window| window.offered_tps.is_none());
    if !is_loop || windows.is_empty() {
        return None;
    }
    too_few(case, cell, spec).or_else(|| apart(&Sum::of(&windows)))
}

fn is_loop_of_handshakes(case: &Case) -> bool {
    let is_loop = matches!(case.measure, Measure::Saturation | Measure::Clients | Measure::Staircase);
    is_loop && case.dimensions.get("requests").is_none_or(|requests| requests != "keep-alive")
}

/// By the blocks together: one by one, those of a target that is near the limit would be kept for being fast.
fn too_few(case: &Case, cell: &Cell, spec: &FigureSpec) -> Option<String> {
    let sums: Vec<Sum> = cell.blocks.iter().map(|block| Sum::of(&chosen(case, block, spec))).collect();
    let clients =
        case.dimensions.get("connections").and_then(|clients| clients.parse().ok()).unwrap_or(CLIENTS);
    let ended = sums.iter().map(|sum| sum.served.connections).fold(0_u64, u64::saturating_add);
    // What failed came to an end too.
    let turned = sums.iter().map(|sum| float(sum.served.connections.saturating_add(sum.failed))).sum::<f64>();
    (turned < TURNS * f64::from(clients) * length(sums.len())).then(|| {
        let each = ended / sums.len().max(1) as u64;
        format!("too short: of {clients} clients at a time {} connections ended in a block", count(each))
    })
}

/// Connections that failed may have made a handshake or not.
fn apart(sum: &Sum) -> Option<String> {
    let (connections, failed) = (float(sum.served.connections), float(sum.failed));
    let made = sum.served.full.saturating_add(sum.served.resumed);
    let handshakes = float(made);
    let is_apart =
        handshakes * (1.0 + APART) < connections || handshakes * (1.0 - APART) > connections + failed;
    // The way without TLS has none.
    (made > 0 && is_apart).then(|| {
        format!(
            "too short: {} connections ended while {} handshakes were made",
            count(sum.served.connections),
            count(made)
        )
    })
}
