//! The answer of a suite that asks how long clients wait, of a server with a part of the load that it can carry.

use courser_record::Lab;
use courser_record::lab::{Case, Value};

use super::lead::Lead;
use super::sentences::{changed, choice, first};
use super::{Answer, Row, absent, behind, figure_cell, inconclusive, noun, plotted, rate, rivals, titled};
use crate::ranking::{CellValue, Ranking, is_yardstick, value_of};
use crate::{chart, figure, labels};

/// What is shown of each case: p99 is a dash where the samples do not support it.
const SHOWN: [(Value, &str); 2] = [(Value::P50, "median"), (Value::P99, "p99")];

pub(super) fn answer(lab: &Lab, lead: &Lead<'_>) -> Option<Answer> {
    let (case, ranking) = (lead.case, &lead.ranking);
    let best = *rivals(ranking).first()?;
    let targets = shown(lead);
    let columns = || lead.columns.iter().flat_map(|column| SHOWN.map(|of| (column, of)));
    let head = |((_, name), (_, what)): (&(Ranking, String), (Value, &str))| match name.as_str() {
        "" => format!("{what} response"),
        name => format!("{what} response at {name}"),
    };
    let mut heads: Vec<String> = columns().map(head).collect();
    heads.push(format!("behind the first by {}", by(lead)));
    let row = |target: &&str| {
        let of = |((other, _), (value, _)): (&(Ranking, String), (Value, &str))| {
            figure_cell(lab, &other.case, target, value, None)
        };
        let mut cells: Vec<_> = columns().map(of).collect();
        cells.push(behind(ranking, best, target));
        Row { name: labels::long_target(lab, target), cells }
    };
    let mut rows: Vec<Row> = targets.iter().map(row).collect();
    let is_new = |row: &Row| !rows.iter().any(|known| known.name == row.name);
    let others: Vec<Row> = absent(lab, case, ranking, heads.len()).into_iter().filter(is_new).collect();
    rows.extend(others);
    Some(Answer {
        title: title(lab, lead),
        rows,
        heads,
        notes: notes(lab, lead),
        plot: chart::costs(&plotted(lab, lead, Value::P50), "median response"),
        sentences: [Some(changed(lab, None)), waits(lab, lead, best), choice(lab, lead)]
            .into_iter()
            .flatten()
            .collect(),
        since: None,
        first: first(lab, ranking),
    })
}

/// In the order of the case that leads, then those whose figures are inconclusive in it.
fn shown<'a>(lead: &'a Lead<'_>) -> Vec<&'a str> {
    let inconclusive = lead.ranking.inconclusive.iter().map(|(target, _)| target.as_str());
    rivals(&lead.ranking).into_iter().chain(inconclusive.filter(|target| !is_yardstick(target))).collect()
}

/// What all columns have in common; the heads say what they have not.
fn title(lab: &Lab, lead: &Lead<'_>) -> String {
    match labels::common(lab) {
        common if lead.columns.len() > 1 && !common.is_empty() => common,
        _ => titled(lab, lead),
    }
}

/// `median response at 50 %`: what the order goes by.
fn by(lead: &Lead<'_>) -> String {
    let value = labels::value(lead.ranking.basis.value);
    match at(lead) {
        "" => value.to_owned(),
        at => format!("{value} at {at}"),
    }
}

/// The column of the case that leads.
fn at<'a>(lead: &'a Lead<'_>) -> &'a str {
    let own = lead.columns.iter().find(|(ranking, _)| ranking.case == lead.case.id);
    own.map_or("", |(_, name)| name)
}

/// How long clients of the first wait.
fn waits(lab: &Lab, lead: &Lead<'_>, best: &str) -> Option<String> {
    let of = |value: Value| match value_of(lab, &lead.case.id, best, &value.into()) {
        CellValue::Value(found) => Some(figure::time(Some(found.value))),
        _ => None,
    };
    let most = of(Value::P99).map(|p99| format!(", one in a hundred for over {p99}")).unwrap_or_default();
    let load = lead.case.dimensions.get("capacity")?;
    Some(format!(
        "At {load} of its capacity half of {}'s clients wait for over {}{most}.",
        labels::short_target(lab, best),
        of(Value::P50)?
    ))
}

/// What each had to do, and whose figures are inconclusive.
fn notes(lab: &Lab, lead: &Lead<'_>) -> Vec<String> {
    let carried = |case: &Case| {
        let of = |target: &&str| {
            let (rate, _) = rate(lab, case, target, None)?;
            Some(format!("{} {}/s", labels::short_target(lab, target), figure::number(Some(rate.round()))))
        };
        shown(lead).iter().filter_map(of).collect::<Vec<_>>().join(", ")
    };
    let load = |(ranking, name): &(Ranking, String)| {
        let carried = carried(lab.case(&ranking.case)?);
        Some(if name.is_empty() { carried } else { format!("{name}: {carried}") })
    };
    let loads: Vec<String> = lead.columns.iter().filter_map(load).collect();
    let what = noun(lead.case);
    let offered = format!(
        "Each target has a part of what it can carry itself. So many {what} a second and core were served: {}.",
        loads.join("; ")
    );
    let why = |(ranking, name): &(Ranking, String)| {
        let at = |note: String| if name.is_empty() { note } else { format!("{name}: {note}") };
        inconclusive(lab, ranking).into_iter().map(at).collect::<Vec<_>>()
    };
    std::iter::once(offered).chain(lead.columns.iter().flat_map(why)).collect()
}
