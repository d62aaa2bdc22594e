//! What changed since the published experiment: a figure of it, per core, and ours beside it.

use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{Case, Measure, Value};
use serde::Deserialize;

use super::rate;
use crate::ranking::{FigureSpec, cells, is_yardstick, value_of};
use crate::{figure, grid, labels};

/// The published figures, as the repository has them.
const PUBLISHED: &str = include_str!("../../../../record/published/since.toml");

#[derive(Deserialize)]
struct File {
    since: Vec<Published>,
}

/// A figure that was published.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The suite's name.
    pub suite: String,
    /// When it was measured.
    pub year: u32,
    /// What made it.
    pub program: String,
    /// What is counted: a rate, or seconds.
    pub unit: String,
    /// Under which conditions, in a few words.
    pub under: String,
    /// Where it stands: the table in the suite's file of published figures.
    pub table: String,
    /// See `table`.
    pub row: String,
    /// See `table`.
    pub column: String,
    /// As it was printed.
    pub printed: String,
    /// The number.
    pub figure: f64,
    /// How many cores made it.
    pub cores: f64,
    ours: Vec<BTreeMap<String, String>>,
}

/// All of them.
///
/// # Panics
/// When the file in the repository cannot be read, which a test sees.
pub fn published() -> Vec<Published> {
    toml::from_str::<File>(PUBLISHED).expect("it is part of the program").since
}

/// The published figure and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Since {
    /// When it was measured.
    pub year: u32,
    /// What made it.
    pub program: String,
    /// What is counted.
    pub unit: String,
    /// Under which conditions it was made.
    pub under: String,
    /// The published figure, per core.
    pub then: f64,
    /// Whose ours is.
    pub target: String,
    /// Under which conditions ours was made.
    pub here: String,
    /// Ours, per core.
    pub now: f64,
}

impl Since {
    /// How many times as much, or as fast.
    pub fn factor(&self) -> f64 {
        if self.is_time() { self.then / self.now } else { self.now / self.then }
    }

    /// Whether less is better.
    pub fn is_time(&self) -> bool {
        self.unit.starts_with("s")
    }

    /// A figure with its unit: `1,500 transactions/s`, `24.3 us`.
    pub fn amount(&self, value: f64) -> String {
        match self.unit.as_str() {
            "s" => figure::time(Some(value * 1e6)),
            "s per 1000 connections" => figure::time(Some(value * 1e3)),
            unit => format!("{} {unit}", figure::number(Some(value.round()))),
        }
    }

    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        let per_core = if self.is_time() { "" } else { " per core" };
        format!(
            "{}: {}, {}{per_core} ({}). Here: {}, {} ({}): {}.",
            self.year,
            self.program,
            self.amount(self.then),
            self.under,
            self.target,
            self.amount(self.now).replace(&format!(" {}", self.unit), ""),
            self.here,
            times(self.factor()),
        )
    }
}

/// `2.9 times that`, `0.6 of that`.
fn times(factor: f64) -> String {
    if factor < 1.0 {
        format!("{} of that", labels::factor(factor))
    } else {
        format!("{} times that", labels::factor(factor))
    }
}

/// The published figure of a suite and the best of ours that stands beside it; `None` where either is missing. `lead`: the
/// case that leads.
pub(super) fn since(lab: &Lab, lead: Option<&Case>) -> Option<Since> {
    let published = published().into_iter().find(|published| published.suite == lab.suite.name)?;
    let (case, target, now) =
        published.ours.iter().find_map(|ours| best(lab, lead, ours, &published.unit))?;
    Some(Since {
        year: published.year,
        then: published.figure / published.cores,
        program: published.program,
        unit: published.unit,
        under: published.under,
        here: conditions(case),
        target,
        now,
    })
}

fn best<'a>(
    lab: &'a Lab,
    lead: Option<&'a Case>,
    ours: &BTreeMap<String, String>,
    unit: &str,
) -> Option<(&'a Case, String, f64)> {
    let filter: BTreeMap<String, Vec<String>> = ours
        .iter()
        .filter(|(name, _)| *name != "figure")
        .map(|(name, value)| (name.clone(), vec![value.clone()]))
        .collect();
    let cases = if filter.is_empty() { Vec::from_iter(lead) } else { grid::selected(lab, &filter) };
    let is_time = unit.starts_with("s");
    let of_case = |case: &'a Case| {
        let of_cell = |cell: &courser_record::lab::Cell| {
            let value = match case.measure {
                Measure::InProcess => {
                    let spec = FigureSpec { figure: ours.get("figure").cloned(), ..Value::Figure.into() };
                    value_of(lab, &case.id, &cell.target, &spec).estimate()?.value
                }
                _ => rate(lab, case, &cell.target, None)?.0,
            };
            Some((labels::target(lab, &cell.target).to_owned(), value))
        };
        let rivals = cells(lab, &case.id).into_iter().filter(|cell| !is_yardstick(&cell.target));
        let better = |a: &(String, f64), b: &(String, f64)| {
            let order = a.1.total_cmp(&b.1);
            if is_time { order.reverse() } else { order }
        };
        rivals.filter_map(of_cell).max_by(better).map(|(target, value)| (case, target, value))
    };
    cases.into_iter().find_map(of_case)
}

/// Key, object and version of a case, as far as it has them: `ECDSA P-256, TLS 1.3`.
fn conditions(case: &Case) -> String {
    let of = |name: &str| case.dimensions.get(name).cloned();
    let key = of("key").map(|key| if key == "P-256" { "ECDSA P-256".to_owned() } else { key });
    let version =
        of("version").map(|version| if version == "clear" { "in clear".to_owned() } else { version });
    let parts = [key, version].into_iter().flatten().collect::<Vec<_>>().join(", ");
    if parts.is_empty() || case.measure == Measure::InProcess { case.title.clone() } else { parts }
}
