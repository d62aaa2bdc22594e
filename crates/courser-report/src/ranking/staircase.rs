//! How high a staircase goes under a rule.

use courser_record::lab::{Block, Value, WindowResult};
use courser_stats::number::{float, whole};

use super::block_value::{BlockValue, Kind};
use crate::figure::count;

/// What a step has to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Average response time below this, microseconds.
    pub mean_us: Option<f64>,
    /// Share of transactions that failed below this.
    pub loss: Option<f64>,
}

impl Rule {
    /// That of Vincent Bernat's comparison of 2011: an average under 100 ms, a loss under 0.1 %.
    pub const BERNAT: Self = Self { mean_us: Some(100_000.0), loss: Some(0.001) };

    /// The rule behind a value; `None` where there is no staircase in it.
    pub fn of(value: Value) -> Option<Self> {
        Some(match value {
            Value::MaxTps => Self { mean_us: None, loss: None },
            Value::MaxTpsAvg100ms => Self { mean_us: Some(100_000.0), loss: None },
            Value::MaxTpsAvg500ms => Self { mean_us: Some(500_000.0), loss: None },
            Value::MaxTpsLoss => Self { mean_us: None, loss: Some(0.0001) },
            Value::MaxTpsRule => Self::BERNAT,
            _ => return None,
        })
    }

    fn holds(&self, step: &WindowResult) -> bool {
        let mean = step.response.summary().mean_us;
        let quick = self.mean_us.is_none_or(|limit| mean.is_some_and(|mean| mean < limit));
        let loss = float(step.failed) / float(step.attempted.max(1));
        quick && self.loss.is_none_or(|limit| loss < limit) && step.succeeded > 0
    }

    /// Transactions that a limit on losses needs before it can be confirmed: three over the limit.
    fn needs(&self) -> u64 {
        self.loss.map_or(0, |limit| whole((3.0 / limit).ceil()))
    }
}

/// The steps of a staircase, without the short saturation before them.
pub(crate) fn steps(block: &Block) -> Vec<&WindowResult> {
    let mut steps: Vec<_> = block.windows.iter().filter(|window| window.offered_tps.is_some()).collect();
    steps.sort_by(|a, b| a.offered_tps.unwrap_or(0.0).total_cmp(&b.offered_tps.unwrap_or(0.0)));
    steps
}

/// The highest rate that was served under a rule. At least that where nothing was seen to break it higher up.
pub(super) fn highest(block: &Block, rule: Rule) -> BlockValue {
    let steps = steps(block);
    let usable: Vec<&WindowResult> =
        steps.iter().copied().filter(|step| step.inconclusive.is_none()).collect();
    // Steps that the generator held back carried at least what they carried.
    let bound = bound(&steps, rule);
    let Some(best) = highest_of(&usable, rule) else {
        let reason = steps.iter().find_map(|step| step.inconclusive.clone());
        return match (bound, reason) {
            (Some(bound), _) => bound,
            (None, Some(reason)) if usable.is_empty() => BlockValue::Inconclusive(reason),
            _ => BlockValue::measured((!usable.is_empty()).then_some(0.0)),
        };
    };
    if let Some(BlockValue::AtLeast(value, reason)) = bound
        && value > rate(best)
    {
        return BlockValue::AtLeast(value, reason);
    }
    let seen = seen_up_to(&usable, best);
    if seen < rule.needs() {
        let needs = count(rule.needs());
        return BlockValue::Inconclusive(format!(
            "a loss limit needs {needs} transactions to be confirmed, and there were {}",
            count(seen)
        ));
    }
    let exceeded = usable.iter().any(|step| step.offered_tps > best.offered_tps && gives_way(step, rule));
    let kind = if exceeded || falls_short(best) { Kind::Measured } else { Kind::AtLeast };
    BlockValue::of_kind(Some(rate(best)), kind)
}

/// The highest rate among the steps that keep a rule although the generator was the limit.
fn bound(steps: &[&WindowResult], rule: Rule) -> Option<BlockValue> {
    let is_bound = |step: &&WindowResult| {
        let reason = step.inconclusive.clone().unwrap_or_default();
        matches!(BlockValue::bounded(Some(rate(step)), reason), BlockValue::AtLeast(..))
    };
    let held_back: Vec<&WindowResult> = steps.iter().copied().filter(is_bound).collect();
    let best = highest_of(&held_back, rule).filter(|best| seen_up_to(steps, best) >= rule.needs())?;
    Some(BlockValue::bounded(Some(rate(best)), best.inconclusive.clone()?))
}

/// What a staircase served at most, and at the highest rate that was offered, where that is less by more than 5 %:
/// beyond its maximum a server may serve less, since what it begins and cannot end costs it time.
pub(crate) fn fall(block: &Block) -> Option<(f64, &WindowResult)> {
    let steps = steps(block);
    let most = steps.iter().map(|step| rate(step)).fold(0.0, f64::max);
    let last = *steps.last()?;
    (rate(last) < 0.95 * most).then_some((most, last))
}

/// The highest step that keeps the rule of 2011, else the lowest of all.
pub(super) fn best(block: &Block) -> Option<&WindowResult> {
    let steps = steps(block);
    highest_of(&steps, Rule::BERNAT).or_else(|| steps.first().copied())
}

fn highest_of<'a>(steps: &[&'a WindowResult], rule: Rule) -> Option<&'a WindowResult> {
    let holding = steps.iter().copied().filter(|step| rule.holds(step));
    holding.max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

fn seen_up_to(steps: &[&WindowResult], best: &WindowResult) -> u64 {
    let below = steps.iter().filter(|step| step.offered_tps <= best.offered_tps);
    below.fold(0_u64, |sum, step| sum.saturating_add(step.attempted))
}

fn gives_way(step: &WindowResult, rule: Rule) -> bool {
    !rule.holds(step) || falls_short(step)
}

/// As RFC 9411, section 7, judges a rate: more than 5 % below what was offered.
fn falls_short(step: &WindowResult) -> bool {
    step.offered_tps.is_some_and(|offered| rate(step) < 0.95 * offered)
}

/// What was served in a step, transactions a second.
pub(crate) fn rate(step: &WindowResult) -> f64 {
    float(step.served().transactions) * 1e6 / float(step.window_us.max(1))
}
