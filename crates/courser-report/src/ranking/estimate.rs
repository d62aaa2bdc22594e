//! A figure and how sure it is.

use courser_stats::confidence;

use super::block_value::{BlockValue, Kind, Spread};

/// What blocks say together: their median.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The median of the blocks, in the unit of [`crate::labels::unit`].
    pub value: f64,
    /// How far it may be off; `None` of a single block.
    pub spread: Option<Spread>,
    /// Blocks that it rests on.
    pub blocks: usize,
    /// Blocks that were measured.
    pub of: usize,
    /// What kind of figure it is.
    pub kind: Kind,
}

/// `None` where no block has a value. A block that gives only a lower bound counts as that: the median of all is a bound as
/// soon as it would be another if the bounds were higher.
pub(super) fn of(reads: &[BlockValue], seed: u64) -> Option<Estimate> {
    let number = |read: &BlockValue| match read {
        BlockValue::Value { value, .. } | BlockValue::AtLeast(value, _) => Some(*value),
        _ => None,
    };
    let values: Vec<f64> = reads.iter().filter_map(number).collect();
    let bounds = reads.iter().filter(|read| matches!(read, BlockValue::AtLeast(..))).count();
    let raised = |read: &BlockValue| match read {
        BlockValue::AtLeast(..) => Some(f64::INFINITY),
        other => number(other),
    };
    let is_bound = median(&values) < median(&reads.iter().filter_map(raised).collect::<Vec<_>>());
    let known = reads.iter().filter_map(BlockValue::known).map(|(_, kind)| kind).max();
    let kind = if is_bound { Kind::AtLeast } else { known? };
    let own = match reads {
        [BlockValue::Value { spread, .. }] => *spread,
        _ => None,
    };
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // How much higher a bound's true value is, no interval knows.
    let open = |spread: Spread| Spread {
        high: if bounds > 0 { spread.high.max(highest) } else { spread.high },
        ..spread
    };
    let spread = own.or_else(|| spread(&values, seed)).map(open);
    Some(Estimate { value: median(&values), spread, blocks: values.len(), of: reads.len(), kind })
}

fn spread(values: &[f64], seed: u64) -> Option<Spread> {
    let range = || Spread {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        is_interval: false,
    };
    match confidence::median(values, seed) {
        Some(found) => Some(Spread { low: found.low, high: found.high, is_interval: true }),
        None => (values.len() > 1).then(range),
    }
}

/// The median of some values; 0 of none.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[odd / 2],
        even => f64::midpoint(sorted[even / 2 - 1], sorted[even / 2]),
    }
}
