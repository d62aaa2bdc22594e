//! What rows and columns are, and what tells rows apart that would be the same.

use courser_record::Lab;
use courser_record::lab::{Case, Measure, Table, Value};

use super::{Entry, selected};
use crate::labels;

/// What stands along an edge of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Target,
    Value,
    Client,
    /// A dimension, `case` or `era`.
    OfCase(String),
}

impl Axis {
    fn new(name: &str) -> Self {
        match name {
            "target" => Self::Target,
            "value" => Self::Value,
            "client" => Self::Client,
            other => Self::OfCase(other.to_owned()),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Target => "target",
            Self::Value => "figure",
            Self::Client => "client",
            Self::OfCase(name) => name,
        }
    }

    fn value(&self, lab: &Lab, entry: &Entry<'_>) -> String {
        match self {
            Self::Target => labels::target(lab, entry.target).to_owned(),
            Self::Value => labels::name(&crate::ranking::FigureSpec { client: None, ..entry.figure.clone() }),
            Self::Client => entry.figure.client.clone().unwrap_or_default(),
            Self::OfCase(name) => {
                of_case(entry.case, name).unwrap_or_else(|| crate::figure::UNKNOWN.to_owned())
            }
        }
    }
}

/// What a case has in a dimension; its name as `case`, its era as `era`, what is measured as `measure`.
pub(super) fn of_case(case: &Case, name: &str) -> Option<String> {
    match name {
        "case" => Some(case.id.clone()),
        "era" => Some(labels::era(case.era).to_owned()),
        "measure" => Some(measure(case.measure).to_owned()),
        dimension => case.dimensions.get(dimension).cloned(),
    }
}

/// As suites write it.
fn measure(measure: Measure) -> &'static str {
    match measure {
        Measure::Saturation => "saturation",
        Measure::Staircase => "staircase",
        Measure::Rate => "rate",
        Measure::KeepAlive => "keep_alive",
        Measure::Clients => "clients",
        Measure::InProcess => "in_process",
    }
}

/// Rows and columns of a table, and what is put after a row's name, or a column's, to tell it from the others.
pub(crate) struct Axes {
    pub(super) rows: Axis,
    columns: Axis,
    further_rows: Vec<Axis>,
    further_columns: Vec<Axis>,
}

impl Axes {
    pub(super) fn new(lab: &Lab, table: &Table) -> Self {
        let (rows, columns) = (Axis::new(&table.rows), Axis::new(&table.columns));
        let cases = selected(lab, &table.filter);
        let is_free = |axis: &Axis| *axis != rows && *axis != columns;
        // Only what is needed to tell cases apart: an empty cell says nothing.
        let mut further_rows: Vec<Axis> = Vec::new();
        for axis in dimensions(&cases).into_iter().chain([Axis::OfCase("case".to_owned())]).filter(is_free) {
            if !tells_apart(&cases, &rows, &columns, &further_rows) {
                further_rows.push(axis);
            }
        }
        further_rows.extend([Axis::Client].into_iter().filter(is_free));
        if crate::ranking::targets(lab).len() > 1 {
            further_rows.extend([Axis::Target].into_iter().filter(is_free));
        }
        let has_figures = table.values.contains(&Value::Figure);
        let further_columns = [Axis::Value].into_iter().filter(|axis| has_figures && is_free(axis)).collect();
        Self { rows, columns, further_rows, further_columns }
    }

    /// What the figures in a cell are, unless the heads say it.
    pub(super) fn shows(&self, table: &Table) -> Option<String> {
        let is_in_heads =
            self.rows == Axis::Value || self.columns == Axis::Value || !self.further_columns.is_empty();
        let names = || table.values.iter().map(|value| labels::value(*value)).collect::<Vec<_>>().join(", ");
        (!is_in_heads).then(names)
    }

    pub(super) fn row(&self, lab: &Lab, entry: &Entry<'_>) -> String {
        joined(lab, entry, &self.rows, &self.further_rows)
    }

    pub(super) fn column(&self, lab: &Lab, entry: &Entry<'_>) -> String {
        joined(lab, entry, &self.columns, &self.further_columns)
    }
}

fn joined(lab: &Lab, entry: &Entry<'_>, first: &Axis, further: &[Axis]) -> String {
    let title = |axis: &Axis| match axis {
        // A person reads the title, a filter the name.
        Axis::OfCase(name) if name == "case" => labels::case(lab, &entry.case.id),
        axis => axis.value(lab, entry),
    };
    let all = std::iter::once(first).chain(further).map(title);
    all.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The dimensions in which these cases differ.
fn dimensions(cases: &[&Case]) -> Vec<Axis> {
    let mut names: Vec<&str> =
        cases.iter().flat_map(|case| case.dimensions.keys()).map(String::as_str).collect();
    names.sort_unstable();
    names.dedup();
    names.push("era");
    let differs = |name: &&str| {
        let mut values = cases.iter().map(|case| of_case(case, name));
        let first = values.next();
        values.any(|value| Some(value) != first)
    };
    names.into_iter().filter(differs).map(|name| Axis::OfCase(name.to_owned())).collect()
}

/// Whether no two cases come to stand in the same place.
fn tells_apart(cases: &[&Case], rows: &Axis, columns: &Axis, further: &[Axis]) -> bool {
    let place = |case: &Case| -> Vec<Option<String>> {
        let axes = [rows, columns].into_iter().chain(further);
        let names = axes.filter_map(|axis| match axis {
            Axis::OfCase(name) => Some(name),
            _ => None,
        });
        names.map(|name| of_case(case, name)).collect()
    };
    let mut places: Vec<_> = cases.iter().map(|case| place(case)).collect();
    places.sort();
    places.windows(2).all(|two| two[0] != two[1])
}
