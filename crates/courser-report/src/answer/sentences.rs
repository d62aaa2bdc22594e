//! The answer in three sentences, each made from the record.

use courser_record::Lab;
use courser_record::lab::{Cell, Era, Value};

use super::lead::Lead;
use super::since::Since;
use super::{rivals, unit_of_cost};
use crate::ranking::{self, FigureSpec, Outcome, Ranking, cell_value, is_response, is_yardstick};
use crate::{figure, labels};

/// What changed, where the time goes, what to choose.
pub(super) fn of_terminators(lab: &Lab, lead: &Lead<'_>, since: Option<&Since>) -> Vec<String> {
    [Some(changed(lab, since)), time(lab, lead), choice(lab, lead)].into_iter().flatten().collect()
}

pub(super) fn changed(lab: &Lab, since: Option<&Since>) -> String {
    match since {
        Some(since) => since.sentence(),
        None if lab.suite.source.starts_with("none") => {
            "No published experiment stands beside this one.".to_owned()
        }
        None => "The published experiment has no figure that this record has too.".to_owned(),
    }
}

/// Of the first: sampled where it was, else the kernel's share and bare cryptography.
fn time(lab: &Lab, lead: &Lead<'_>) -> Option<String> {
    let first = rivals(&lead.ranking).first().copied()?;
    let cell = lab.cell(&lead.case.id, first)?;
    let of = |value: Value| {
        let spec = FigureSpec { client: lead.ranking.client.clone(), ..value.into() };
        cell_value(lab, cell, &spec).estimate().map(|found| found.value)
    };
    let spent = format!(
        "Of {}'s {} a {}",
        labels::short_target(lab, first),
        figure::time(Some(of(Value::Cpu)?)),
        unit_of_cost(lead.case)
    );
    if let Some([library, kernel, program]) = sampled(cell) {
        return Some(format!(
            "{spent}, the TLS library takes {library}, the kernel {kernel}, the program {program}."
        ));
    }
    let rest = labels::whole_percent;
    // The kernel's part is measured, its floor included.
    let cryptography =
        lead.case.limit.as_ref().and_then(|limit| {
            Some(of(Value::LimitShare)? * limit.cryptography_us() / limit.us_per_connection)
        });
    let Some(kernel) = of(Value::KernelShare) else {
        return cryptography.filter(|limit| *limit <= 1.0).map(|limit| {
            let least = rest(limit);
            format!("{spent}, {least} is bare cryptography; blocks this short do not tell kernel and program apart.")
        });
    };
    Some(match cryptography {
        Some(limit) if limit + kernel <= 1.0 => format!(
            "{spent}, {} is bare cryptography, {} the kernel, {} the rest of library and program.",
            rest(limit),
            rest(kernel),
            rest(1.0 - limit - kernel)
        ),
        _ => format!(
            "{spent}, {} is the kernel, {} library and program (not sampled).",
            rest(kernel),
            rest(1.0 - kernel)
        ),
    })
}

/// Library, kernel, program; `None` where it was not sampled.
fn sampled(cell: &Cell) -> Option<[String; 3]> {
    let profile = cell.profile.as_ref().filter(|profile| profile.samples > 0)?;
    let all = profile.classes.values().sum();
    let of = |names: &[&str]| {
        let named = profile.classes.iter().filter(|(name, _)| names.contains(&name.to_lowercase().as_str()));
        labels::whole_percent(figure::share(named.map(|(_, count)| count).sum(), all).unwrap_or(0.0))
    };
    Some([of(&["crypto", "tls"]), of(&["kernel"]), of(&["proxy", "memory", "other"])])
}

/// Who is first in how many cases, and by how much in the one that leads.
pub(super) fn choice(lab: &Lab, lead: &Lead<'_>) -> Option<String> {
    let Some(pair) = lead.ranking.closest() else {
        return rivals(&lead.ranking)
            .first()
            .map(|only| format!("Nothing to choose: only {} has figures.", labels::short_target(lab, only)));
    };
    let (name, next) = (labels::short_target(lab, &pair.ahead), labels::short_target(lab, &pair.behind));
    Some(match pair.outcome {
        Outcome::Ahead { factor, low, high } => format!(
            "Choose {name} to {}: {}of {next}, the next here, by {} times ({}).",
            aim(lead),
            cases(lab, &pair.ahead, lead),
            labels::factor(factor),
            labels::factor_range(low, high)
        ),
        Outcome::NotSeen { min_detectable } => format!(
            "Choose {name} or {next} by other things: no difference seen; {} would have been.",
            labels::detectable(min_detectable)
        ),
        Outcome::TooFew { rounds } => format!(
            "{name} is first here, but not beyond doubt after {}: run the suite with more rounds.",
            labels::counted(rounds, "round")
        ),
        Outcome::NotCompared(why) => {
            format!("Choose {name} or {next} by other things: here {}.", labels::why(why))
        }
    })
}

/// What the first is first at.
fn aim(lead: &Lead<'_>) -> &'static str {
    match lead.ranking.basis.value {
        _ if ranking::is_asked(lead.case) => "serve most",
        value if is_response(value) => "wait least",
        _ => "spend least",
    }
}

/// In how many of the cases of today it is ahead of all others, beyond doubt.
fn cases(lab: &Lab, target: &str, lead: &Lead<'_>) -> String {
    let is_modern = |ranking: &&Ranking| {
        ranking.preset == lead.ranking.preset
            && lab.case(&ranking.case).is_some_and(|case| case.era == Era::Modern)
    };
    let all: Vec<&Ranking> =
        lead.all.iter().filter(is_modern).filter(|ranking| rivals(ranking).len() > 1).collect();
    let is_known = |ranking: &&&Ranking| {
        let is_compared =
            |pair: &ranking::Pair| matches!(pair.outcome, Outcome::Ahead { .. } | Outcome::NotSeen { .. });
        ranking.pairs.iter().any(is_compared)
    };
    let wins = |ranking: &&&Ranking| {
        let others =
            ranking.places.iter().filter(|place| place.target != target && !is_yardstick(&place.target));
        !ranking.is_open()
            && others.map(|place| ranking.pair(target, &place.target)).all(|pair| {
                pair.is_some_and(|pair| pair.ahead == target && matches!(pair.outcome, Outcome::Ahead { .. }))
            })
    };
    match (all.iter().filter(wins).count(), all.iter().filter(is_known).count()) {
        (0, _) | (_, 1) => "ahead ".to_owned(),
        (wins, count) => format!("ahead of all in {wins} of {count} cases, "),
    }
}

/// `courser, × 2.6 ahead of hitch`.
pub(super) fn first(lab: &Lab, ranking: &Ranking) -> Option<String> {
    let pair = ranking.closest()?;
    let (name, next) = (titled(lab, &pair.ahead), titled(lab, &pair.behind));
    Some(match pair.outcome {
        Outcome::Ahead { factor, .. } => format!("{name}, ×\u{a0}{} ahead of {next}", labels::factor(factor)),
        Outcome::NotSeen { .. } => format!("{name} and {next}: no difference seen"),
        Outcome::TooFew { rounds: 0 | 1 } => format!("{name}, not repeated"),
        Outcome::TooFew { rounds } => format!("{name}, not beyond doubt after {rounds} rounds"),
        Outcome::NotCompared(_) => format!("{name} and {next}: not compared"),
    })
}

/// The title of a target; in quotation marks where it has a comma.
fn titled(lab: &Lab, name: &str) -> String {
    match labels::target(lab, name) {
        title if title.contains(',') => format!("“{title}”"),
        title => title.to_owned(),
    }
}

/// The same for libraries without a network.
pub(super) fn of_libraries(lab: &Lab, ratios: &[(String, f64)], since: Option<&Since>) -> Vec<String> {
    let mut sentences = vec![
        changed(lab, since),
        if ranking::targets(lab).contains(&"kernel") {
            "All of the libraries' figures is their own time; the kernel's are reads and writes without TLS: no connection \
             is cheaper than both together."
        } else {
            "All of it is the library's time: there is no network, kernel or program in these figures."
        }
        .to_owned(),
    ];
    let (low, high) = ratios
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), (_, ratio)| (low.min(*ratio), high.max(*ratio)));
    if let (true, [first, second, ..]) = (low.is_finite(), ranking::targets(lab).as_slice()) {
        let (first, second) = (labels::short_target(lab, first), labels::short_target(lab, second));
        sentences.push(if low > 1.0 {
            format!(
                "Choose {first}: {} times as fast as {second} in these operations.",
                labels::factor_range(low, high)
            )
        } else if high < 1.0 {
            format!("Choose {second}: {first} is {} times as fast as it.", labels::factor_range(low, high))
        } else {
            format!(
                "Choose by the operation: {first} is {} times as fast as {second}.",
                labels::factor_range(low, high)
            )
        });
    }
    sentences
}
