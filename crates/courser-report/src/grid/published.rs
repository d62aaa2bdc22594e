//! Published figures beside ours: under the same columns where they have one in common.

use courser_record::lab::{Published, Table};

use super::Grid;
use crate::figure::UNKNOWN;

/// Published figures in a table of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Labels and cells.
    pub rows: Vec<(String, Vec<String>)>,
}

/// Puts a table's published figures into its grid.
pub fn beside(grid: &mut Grid, table: &Table) {
    let Some(published) = &table.published else { return };
    let unit = Some(&published.unit).filter(|unit| !unit.is_empty()).map(|unit| format!(" (in {unit})"));
    grid.source = Some(format!("{}{}", published.source, unit.unwrap_or_default()));
    let is_shared = |name: &String| grid.columns.iter().any(|ours| same(ours, name));
    if !published.columns.iter().any(is_shared) {
        grid.apart = Some(apart(published));
        return;
    }
    let places = shared_columns(grid, published);
    let row = |row: &courser_record::lab::PublishedRow| {
        let mut cells = vec![String::new(); grid.columns.len()];
        places.iter().zip(&row.cells).for_each(|(place, cell)| cells[*place].clone_from(cell));
        (row.label.clone(), cells)
    };
    grid.published = published.rows.iter().map(row).collect();
}

/// Which column each published one is. One that we have not comes after the published one before it.
fn shared_columns(grid: &mut Grid, published: &Published) -> Vec<usize> {
    let mut last = grid.columns.len();
    let mut names = Vec::new();
    for name in &published.columns {
        match grid.columns.iter().position(|ours| same(ours, name)) {
            // Of two that would be the same one of ours, the first is.
            Some(place) if !names.contains(&grid.columns[place]) => last = place,
            _ => {
                last = (last + 1).min(grid.columns.len());
                grid.columns.insert(last, name.clone());
                grid.rows.iter_mut().for_each(|row| row.cells.insert(last, Vec::new()));
            }
        }
        names.push(grid.columns[last].clone());
    }
    let place = |name: &String| grid.columns.iter().position(|ours| ours == name);
    names.iter().filter_map(place).collect()
}

fn apart(published: &Published) -> Apart {
    let row = |row: &courser_record::lab::PublishedRow| {
        let mut cells = row.cells.clone();
        cells.resize(published.columns.len(), UNKNOWN.to_owned());
        (row.label.clone(), cells)
    };
    Apart { columns: published.columns.clone(), rows: published.rows.iter().map(row).collect() }
}

/// Whether a published column is one of ours: the same name, or the same with a version after it or a word before it.
fn same(ours: &str, published: &str) -> bool {
    let (ours, published) = (ours.to_lowercase(), published.to_lowercase());
    published == ours
        || published.strip_prefix(&ours).is_some_and(|rest| rest.starts_with(' '))
        || published.strip_suffix(&ours).is_some_and(|rest| rest.ends_with(' '))
}
