//! The answer of a suite whose clients leave: who still serves them at the highest load that was offered.

use courser_record::Lab;
use courser_record::lab::{Case, ChartKind, Value};

use super::lead::Lead;
use super::sentences::{changed, choice, first};
use super::{Answer, Row, absent, behind, figure_cell, noun, rate_cell, rivals, titled};
use crate::ranking::{self, FigureSpec, Shares, value_of};
use crate::{chart, labels};

pub(super) fn answer(lab: &Lab, lead: &Lead<'_>) -> Option<Answer> {
    let (case, ranking) = (lead.case, &lead.ranking);
    let places = rivals(ranking);
    let best = *places.first()?;
    let row = |target: &&str| {
        let cells = vec![
            rate_cell(lab, case, target, None),
            (of_capacity(lab, case, target), None),
            figure_cell(lab, &case.id, target, Value::P99, None),
            behind(ranking, best, target),
        ];
        Row { name: labels::long_target(lab, target), cells }
    };
    let heads = [
        &format!("{}/s per core", noun(case)),
        "of its capacity",
        "99th percentile of those served",
        "behind the first",
    ];
    let mut rows: Vec<Row> = places.iter().map(row).collect();
    rows.extend(absent(lab, case, ranking, heads.len()));
    // The suite's first curve: how many are served of how many come.
    let curves = lab.suite.charts.iter().filter(|chart| chart.kind == ChartKind::Curve);
    Some(Answer {
        title: titled(lab, lead),
        heads: heads.map(str::to_owned).to_vec(),
        rows,
        notes: Vec::new(),
        plot: curves.flat_map(|chart| chart::drawings(lab, chart)).next(),
        sentences: sentences(lab, lead),
        since: None,
        first: first(lab, ranking),
    })
}

/// What changed, how much of what they can the first and the last serve at the highest load, what to choose.
fn sentences(lab: &Lab, lead: &Lead<'_>) -> Vec<String> {
    [Some(changed(lab, None)), beyond(lab, lead), choice(lab, lead)].into_iter().flatten().collect()
}

fn beyond(lab: &Lab, lead: &Lead<'_>) -> Option<String> {
    let places = rivals(&lead.ranking);
    let [first, .., last] = places.as_slice() else { return None };
    let of = |target: &str| {
        format!("{} serves {}", labels::short_target(lab, target), of_capacity(lab, lead.case, target))
    };
    let offered = ranking::offered(lead.case)?;
    Some(format!("At {offered} % of its capacity {} of it; {}.", of(first), of(last)))
}

/// How much of what it can a target serves, in a case.
fn of_capacity(lab: &Lab, case: &Case, target: &str) -> String {
    let spec = FigureSpec { figure: Some(Shares::Goodput.name().to_owned()), ..Value::Figure.into() };
    let found = value_of(lab, &case.id, target, &spec);
    let text = labels::figure_text("%", &found);
    if found.estimate().is_some() { format!("{text} %") } else { text }
}
