//! The tables of a suite, laid out as they were published: what stands in which row and column.

mod axis;
mod published;

use std::collections::BTreeMap;

use courser_record::Lab;
use courser_record::lab::{Case, Table, Value};

use crate::labels;
use crate::ranking::{self, CellValue, FigureSpec};

pub use published::{Apart, beside};

/// A table that is ready to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Its heading.
    pub title: String,
    /// What rows are.
    pub corner: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Ours.
    pub rows: Vec<Row>,
    /// Those that were published, under the same columns; empty when they have none in common.
    pub published: Vec<(String, Vec<String>)>,
    /// Who published them, when, on what, in which unit.
    pub source: Option<String>,
    /// Published figures that have no column in common with ours.
    pub apart: Option<Apart>,
    /// What stands in a cell, where that is not in the heads.
    pub shows: Option<String>,
    /// Why figures are missing: what a cell's note points to, counted from 1.
    pub notes: Vec<String>,
}

/// A row of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is about.
    pub label: String,
    /// For each column what stands in it, one for each value of the table; nothing where nothing was asked for.
    pub cells: Vec<Vec<Slot>>,
}

/// What stands in a row and a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// Case and target.
    pub case: String,
    /// See `case`.
    pub target: String,
    /// What is shown.
    pub figure: FigureSpec,
    /// What it is counted in.
    pub unit: String,
    /// What there is.
    pub value: CellValue,
    /// Number of the note that says why there is no figure, or what is not right with it.
    pub note: Option<usize>,
    /// The share of its cores that the target was held to; `None` for all of them.
    pub share: Option<f64>,
    /// The rate of all of its cores by its processor time, of a rate with a share of them.
    pub by_cpu: Option<f64>,
}

impl Slot {
    /// The figure, or the word for why there is none.
    pub fn text(&self) -> String {
        let text = match self.figure.value {
            Value::Figure => labels::figure_text(&self.unit, &self.value),
            value => labels::cell_text(value, &self.value),
        };
        match self.share {
            Some(share) => text + &labels::of_share(self.figure.value, &self.value, share, self.by_cpu),
            None => text,
        }
    }

    /// How far the figure may be off.
    pub fn spread(&self) -> Option<String> {
        let estimate = self.value.estimate();
        match (&self.value, self.figure.value) {
            (value, Value::Figure) => labels::figure_spread(&self.unit, value),
            (CellValue::Inconclusive { computed: Some(_), .. }, _) => {
                labels::spread(Value::TpsOfCpu, estimate?)
            }
            (_, asked) => labels::spread(asked, estimate?),
        }
    }
}

/// The tables of a suite that have rows of ours: the quick variant leaves cases out.
pub fn grids(lab: &Lab) -> Vec<Grid> {
    lab.suite.tables.iter().map(|table| grid(lab, table)).filter(|grid| !grid.rows.is_empty()).collect()
}

/// A table of a suite, with the published figures under the same columns.
pub fn grid(lab: &Lab, table: &Table) -> Grid {
    let axes = axis::Axes::new(lab, table);
    let entries = entries(lab, table);
    let mut grid = Grid {
        title: table.title.clone(),
        corner: axes.rows.name().to_owned(),
        columns: Vec::new(),
        rows: Vec::new(),
        published: Vec::new(),
        source: None,
        apart: None,
        shows: axes.shows(table),
        notes: Vec::new(),
    };
    for entry in &entries {
        grid.put(lab, entry, axes.row(lab, entry), axes.column(lab, entry));
    }
    for row in &mut grid.rows {
        row.cells.resize(grid.columns.len(), Vec::new());
    }
    beside(&mut grid, table);
    grid
}

/// What is shown of a case and a target.
pub(crate) struct Entry<'a> {
    pub(crate) case: &'a Case,
    pub(crate) target: &'a str,
    pub(crate) figure: FigureSpec,
}

/// All entries of a table, case by case.
fn entries<'a>(lab: &'a Lab, table: &Table) -> Vec<Entry<'a>> {
    let cases = selected(lab, &table.filter);
    let figures: Vec<String> = cases.iter().flat_map(|case| ranking::figures(lab, &case.id)).collect();
    let figures = ranking::distinct(figures.iter());
    let of_case = |case: &'a Case| {
        let specs = requested_figures(lab, table, case, &figures);
        let targets_shown = table.filter.get("target");
        let is_selected =
            move |name: &str| targets_shown.is_none_or(|names| names.iter().any(|shown| shown == name));
        let has_cell = move |name: &str| is_selected(name) && lab.cell(&case.id, name).is_some();
        let targets = ranking::targets(lab).into_iter().filter(move |target| has_cell(target));
        let entry = move |target: &'a str, spec: &FigureSpec| Entry { case, target, figure: spec.clone() };
        targets.flat_map(move |target| specs.iter().map(|spec| entry(target, spec)).collect::<Vec<_>>())
    };
    cases.into_iter().flat_map(of_case).collect()
}

/// What a table asks of a case, in its order; of a case without figures those that others have.
fn requested_figures(lab: &Lab, table: &Table, case: &Case, figures: &[String]) -> Vec<FigureSpec> {
    let known = ranking::figure_specs(lab, &case.id);
    let of_value = |value: &Value| {
        let found: Vec<FigureSpec> = known.iter().filter(|spec| spec.value == *value).cloned().collect();
        let named = |name: &String| FigureSpec { figure: Some(name.clone()), ..Value::Figure.into() };
        match (found.is_empty(), value) {
            (false, _) => found,
            (true, Value::Figure) if !figures.is_empty() => figures.iter().map(named).collect(),
            (true, value) => vec![FigureSpec::from(*value)],
        }
    };
    table.values.iter().flat_map(of_value).collect()
}

/// The cases that a filter lets through. Which targets are shown of them is decided elsewhere.
pub(crate) fn selected<'a>(lab: &'a Lab, filter: &BTreeMap<String, Vec<String>>) -> Vec<&'a Case> {
    let passes = |case: &&Case| {
        filter.iter().all(|(name, allowed)| {
            name == "target"
                || allowed.is_empty()
                || axis::of_case(case, name).is_some_and(|value| allowed.contains(&value))
        })
    };
    lab.cases.iter().filter(passes).collect()
}

/// A row as plain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is about.
    pub label: String,
    /// One for each column: `8,005 / 84.9 us`, `cannot [1]`, nothing.
    pub cells: Vec<String>,
}

impl Grid {
    /// Our rows as plain text, without intervals.
    pub fn lines(&self) -> Vec<Line> {
        let slot = |slot: &Slot| match slot.note {
            Some(note) => format!("{} [{note}]", slot.text()),
            None => slot.text(),
        };
        let cell = |slots: &Vec<Slot>| slots.iter().map(slot).collect::<Vec<_>>().join(" / ");
        let line = |row: &Row| Line { label: row.label.clone(), cells: row.cells.iter().map(cell).collect() };
        self.rows.iter().map(line).collect()
    }

    fn put(&mut self, lab: &Lab, entry: &Entry<'_>, row: String, column: String) {
        let column = index_or_push(&mut self.columns, column);
        let row = match self.rows.iter().position(|known| known.label == row) {
            Some(row) => row,
            None => {
                self.rows.push(Row { label: row, cells: Vec::new() });
                self.rows.len() - 1
            }
        };
        let value = ranking::value_of(lab, &entry.case.id, entry.target, &entry.figure);
        let absent = value.reason().map(|reason| format!("{}: {reason}", value.word()));
        let note = absent.or_else(|| caution(lab, entry, &value));
        let note = note.map(|note| index_or_push(&mut self.notes, note) + 1);
        let cells = &mut self.rows[row].cells;
        if cells.len() <= column {
            cells.resize(column + 1, Vec::new());
        }
        // One word is enough where none of the figures is there for the same reason.
        let repeats = |slot: &Slot| value.estimate().is_none() && slot.value == value;
        if cells[column].iter().any(repeats) {
            return;
        }
        let (case, target) = (entry.case.id.clone(), entry.target.to_owned());
        let (figure, unit) = (entry.figure.clone(), labels::unit(lab, &entry.figure));
        let share = ranking::share(lab, &case, &target);
        let of_cpu = FigureSpec { value: Value::TpsOfCpu, ..figure.clone() };
        let by_cpu = share.filter(|_| figure.value == Value::Tps);
        let by_cpu = by_cpu.and_then(|_| {
            ranking::value_of(lab, &case, &target, &of_cpu).estimate().map(|found| found.value)
        });
        cells[column].push(Slot { case, target, figure, unit, value, note, share, by_cpu });
    }
}

/// What a reader has to know of a figure that is there.
fn caution(lab: &Lab, entry: &Entry<'_>, value: &CellValue) -> Option<String> {
    let found = value.estimate()?;
    match entry.figure.value {
        Value::LimitShare if found.value >= 1.0 => Some(labels::ABOVE_LIMIT.to_owned()),
        Value::MaxTps => lab.cell(&entry.case.id, entry.target)?.blocks.iter().find_map(labels::fall),
        Value::Cpu | Value::TpsOfCpu => {
            lab.cell(&entry.case.id, entry.target).and_then(labels::mostly_failed)
        }
        _ => None,
    }
}

fn index_or_push(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}
