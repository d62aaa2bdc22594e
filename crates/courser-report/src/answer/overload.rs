//! The answer of a suite whose clients leave: who still serves them at the highest load that was offered.

use courser_record::Lab;
use courser_record::lab::{Case, ChartKind, Value};

use super::lead::Lead;
use super::{Answer, Row, absent, behind, figure_cell, noun, rate_cell, rivals, sentences, titled};
use crate::ranking::{FigureSpec, value_of};
use crate::{chart, labels};

/// The figure that says how much of what it can a target serves, as the lab names it.
const OF_CAPACITY: &str = "goodput of capacity";

/// Whether clients of a case leave when they are not served in time.
pub(super) fn is_about(case: &Case) -> bool {
    case.dimensions.contains_key("patience")
}

/// What a case offers, percent of what a target can serve.
pub(super) fn offered(case: &Case) -> Option<u32> {
    case.dimensions.get("capacity")?.strip_suffix(" %")?.parse().ok().filter(|_| is_about(case))
}

pub(super) fn answer(lab: &Lab, lead: &Lead<'_>) -> Option<Answer> {
    let (case, ranking) = (lead.case, &lead.ranking);
    let places = rivals(ranking);
    let first = *places.first()?;
    let row = |target: &&str| {
        let cells = vec![
            rate_cell(lab, case, target, None),
            (of_capacity(lab, case, target), None),
            figure_cell(lab, &case.id, target, Value::P99, None),
            behind(ranking, first, target),
        ];
        Row { name: labels::short_target(lab, target).to_owned(), cells }
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
        sentences: sentences::of_overload(lab, lead),
        since: None,
        first: sentences::first(lab, ranking),
    })
}

/// How much of what it can a target serves, in a case.
pub(super) fn of_capacity(lab: &Lab, case: &Case, target: &str) -> String {
    let spec = FigureSpec { figure: Some(OF_CAPACITY.to_owned()), ..Value::Figure.into() };
    let found = value_of(lab, &case.id, target, &spec);
    let text = labels::figure_text("%", &found);
    if found.estimate().is_some() { format!("{text} %") } else { text }
}
