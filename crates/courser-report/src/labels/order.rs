//! The order of a case, in a sentence.

use courser_record::Lab;
use courser_record::lab::Value;

use crate::ranking::{NotCompared, Outcome, Pair, Ranking, is_response, value_of};
use crate::{figure, labels};

/// `courser is ahead of haproxy by a factor of 1.80 (1.60 to 2.00); no difference seen between …`, and what it goes by.
pub fn order(lab: &Lab, ranking: &Ranking) -> String {
    let steps: Vec<String> = neighbours(ranking).map(|pair| step(lab, pair)).collect();
    if let Some(why) = not_compared(ranking) {
        return format!("not compared: {why}.");
    }
    match (steps.is_empty(), ranking.places.first()) {
        (false, _) => format!("{}.{}{}", steps.join("; "), basis(lab, ranking), inconclusive(lab, ranking)),
        (true, Some(only)) => format!("only {} has a figure.", labels::target(lab, &only.target)),
        (true, None) => "nothing to compare.".to_owned(),
    }
}

/// Each with the next.
fn neighbours(ranking: &Ranking) -> impl Iterator<Item = &Pair> {
    ranking.places.windows(2).filter_map(|two| ranking.pair(&two[0].target, &two[1].target))
}

/// Why none of the targets is compared with another.
fn not_compared(ranking: &Ranking) -> Option<&'static str> {
    let mut whys = ranking.pairs.iter().map(|pair| match pair.outcome {
        Outcome::NotCompared(why) => Some(why),
        _ => None,
    });
    let first = whys.next()??;
    whys.all(|why| why == Some(first)).then(|| why(first))
}

/// Why two targets are not compared.
pub fn why(why: NotCompared) -> &'static str {
    match why {
        NotCompared::AllServed => "each target serves practically all clients",
        NotCompared::NoSpread => "values do not differ from round to round",
    }
}

/// Those that may be anywhere in the order.
fn inconclusive(lab: &Lab, ranking: &Ranking) -> String {
    let one = |(target, reason): &(String, String)| {
        let reason = reason.split("; ").next().unwrap_or_default();
        format!(" Inconclusive of {}: {reason}.", labels::target(lab, target))
    };
    // A rate is replaced by processor time, with the reason.
    ranking.inconclusive.iter().map(one).collect()
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
        Outcome::NotCompared(why) => format!("{ahead} and {behind} are not compared: {}", self::why(why)),
    }
}

/// A difference that would have been seen: in percent, and as a factor where that says more.
pub fn detectable(difference: f64) -> String {
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
    format!("by a factor of {} ({} to {})", self::factor(factor), self::factor(low), self::factor(high))
}

/// `1.62`, `12.5`, `430`: three digits.
pub fn factor(factor: f64) -> String {
    figure::number(Some((factor * 1000.0).round() / 1000.0))
}

/// `1.62 to 1.80`, or `1.62` where both read alike.
pub fn factor_range(low: f64, high: f64) -> String {
    let (low, high) = (factor(low), factor(high));
    if low == high { low } else { format!("{low} to {high}") }
}

fn basis(lab: &Lab, ranking: &Ranking) -> String {
    match (&ranking.basis.instead_of_rate, ranking.basis.value) {
        (Some(reason), _) => {
            // The rest of it is in the notes of the tables.
            let reason = reason.split("; ").next().unwrap_or_default();
            format!(" By processor time per connection, since a rate is inconclusive ({reason}).")
        }
        (None, Value::Cpu) => format!(" By processor time per connection{}.", carried(lab, ranking)),
        (None, Value::MaxTpsAvg100ms) => {
            " By the highest rate with an average response below 100 ms.".to_owned()
        }
        (None, value) if is_response(value) => {
            format!(" By {}{}.", labels::value(value), carried(lab, ranking))
        }
        (None, _) => format!(" By {}.", labels::name(&ranking.basis.spec(None))),
    }
}

/// What each carried of the rate on offer, as it was counted: one that carried less is not cheaper for it.
fn carried(lab: &Lab, ranking: &Ranking) -> String {
    let rate = |target: &str| {
        value_of(lab, &ranking.case, target, &Value::Tps.into()).estimate().map(|found| found.value)
    };
    let all: Vec<(&str, f64)> = ranking
        .places
        .iter()
        .filter_map(|place| Some((labels::target(lab, &place.target), rate(&place.target)?)))
        .collect();
    let most = all.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    if all.iter().all(|(_, rate)| *rate >= 0.95 * most) {
        return format!(" at {}", figure::rate(Some(most.round())));
    }
    let each: Vec<String> =
        all.iter().map(|(name, rate)| format!("{name} {}", figure::rate(Some(rate.round())))).collect();
    format!(", of rates that differ: {}", labels::list(&each))
}
