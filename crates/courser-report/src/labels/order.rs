//! The order of a case, in a sentence.

use courser_record::Lab;
use courser_record::lab::Value;
use courser_stats::number::float;

use crate::ranking::{Outcome, Pair, Ranking};
use crate::{figure, labels};

/// `courser is ahead of haproxy by a factor of 1.80 (1.60 to 2.00); no difference seen between …`, and what it goes by.
pub fn order(lab: &Lab, ranking: &Ranking) -> String {
    let steps: Vec<String> = neighbours(ranking).map(|pair| step(lab, pair)).collect();
    match (steps.is_empty(), ranking.places.first()) {
        (false, _) => format!("{}.{}", steps.join("; "), basis(lab, ranking)),
        (true, Some(only)) => format!("only {} has a figure.", labels::target(lab, &only.target)),
        (true, None) => "nothing to compare.".to_owned(),
    }
}

/// Each with the next.
fn neighbours(ranking: &Ranking) -> impl Iterator<Item = &Pair> {
    ranking.places.windows(2).filter_map(|two| ranking.pair(&two[0].target, &two[1].target))
}

fn step(lab: &Lab, pair: &Pair) -> String {
    let (ahead, behind) = (labels::target(lab, &pair.ahead), labels::target(lab, &pair.behind));
    match pair.outcome {
        Outcome::Ahead { .. } => {
            let least = pair.min_detectable.map(|least| format!(", detectable from {}", detectable(least)));
            format!("{ahead} is ahead of {behind} {}{}", by(pair.outcome), least.unwrap_or_default())
        }
        Outcome::NotSeen { min_detectable } => format!(
            "no difference seen between {ahead} and {behind}; the minimum detectable one was {}",
            detectable(min_detectable)
        ),
        Outcome::TooFew { rounds } => {
            format!("no verdict between {ahead} and {behind} from {}", labels::counted(rounds, "round"))
        }
    }
}

/// A difference that would have been seen: in percent, and as a factor where that says more.
pub(super) fn detectable(difference: f64) -> String {
    if difference > 1.0 {
        format!("a factor of {:.1}", 1.0 + difference)
    } else {
        figure::percent(Some(difference))
    }
}

/// `by a factor of 1.80 (1.60 to 2.00)`; small differences in percent.
pub(super) fn by(outcome: Outcome) -> String {
    let Outcome::Ahead { factor, low, high } = outcome else { return String::new() };
    if factor < 1.2 {
        let percent = |factor: f64| format!("{:.1}", (factor - 1.0) * 100.0);
        return format!("by {} % ({} to {} %)", percent(factor), percent(low), percent(high));
    }
    format!("by a factor of {} ({} to {})", times(factor), times(low), times(high))
}

fn times(factor: f64) -> String {
    figure::number(Some((factor * 1000.0).round() / 1000.0))
}

/// `1.62 to 1.80`, or `1.62` where both read alike.
pub(super) fn range(low: f64, high: f64) -> String {
    let (low, high) = (times(low), times(high));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Whether all served what was offered to all, within 5 %; else what each served.
fn at_rates(lab: &Lab, ranking: &Ranking) -> String {
    let rates: Vec<f64> =
        ranking.places.iter().filter_map(|place| rate(lab, ranking, &place.target)).collect();
    let (low, high) =
        rates.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
    if rates.is_empty() || low >= 0.95 * high {
        return "all had the same rate".to_owned();
    }
    format!("rates differed, from {} to {}/s", figure::number(Some(low)), figure::number(Some(high)))
}

fn rate(lab: &Lab, ranking: &Ranking, target: &str) -> Option<f64> {
    let cell = lab.cell(&ranking.case, target)?;
    let windows = cell.blocks.iter().flat_map(|block| &block.windows);
    let ours = windows.filter(|window| ranking.client.as_ref().is_none_or(|client| *client == window.label));
    let (served, us) = ours
        .fold((0, 0), |(served, us), window| (served + window.served().transactions, us + window.window_us));
    (us > 0).then(|| float(served) * 1e6 / float(us))
}

fn basis(lab: &Lab, ranking: &Ranking) -> String {
    match (&ranking.basis.instead_of_rate, ranking.basis.value) {
        (Some(reason), _) => {
            // The rest of it is in the notes of the tables.
            let reason = reason.split("; ").next().unwrap_or_default();
            format!(" By processor time per connection, since a rate is inconclusive ({reason}).")
        }
        (None, Value::Cpu) => format!(" By processor time per connection: {}.", at_rates(lab, ranking)),
        (None, Value::MaxTpsAvg100ms) => {
            " By the highest rate with an average response below 100 ms.".to_owned()
        }
        (None, value) => format!(" By {}.", labels::value(value)),
    }
}
