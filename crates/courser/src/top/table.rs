//! Tables of text in columns, and bars and lines of characters.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// A column's heading, and whether it has numbers, which stand at the right.
pub(super) type Column = (&'static str, bool);

/// The heading and the rows, two columns in from the left.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>]) -> Vec<Line<'static>> {
    let heading = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let all: Vec<&Vec<String>> = std::iter::once(&heading).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| columns_of(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &&Vec<String>| {
        let cells = row.iter().zip(&widths).zip(columns).map(|((cell, width), (_, is_number))| {
            let pad = " ".repeat(width - columns_of(cell));
            if *is_number { format!("{pad}{cell}") } else { format!("{cell}{pad}") }
        });
        format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    let mut lines: Vec<_> = all.iter().map(|row| Line::raw(line(row))).collect();
    lines[0] = std::mem::take(&mut lines[0]).style(soft());
    lines
}

/// What stands beside figures.
pub(super) fn soft() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Columns of the terminal.
pub(super) fn columns_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// Lines of at most so many columns, cut between words.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the start");
        if line.is_empty() {
            word.clone_into(line);
        } else if columns_of(line) + 1 + columns_of(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A bar that is full at 1.
pub(super) fn bar(share: f64, width: usize) -> String {
    let full = (0..width).filter(|cell| ratio(*cell, width) < share - 1e-9).count();
    format!("{}{}", "█".repeat(full), "·".repeat(width - full))
}

/// The highest of each group of values as a column, the oldest at the left; full at the highest of all.
pub(super) fn sparkline(newest_first: &[f64], width: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = newest_first.iter().copied().fold(0.0, f64::max);
    let group = newest_first.len().div_ceil(width.max(1)).max(1);
    let height = |values: &[f64]| {
        let value = values.iter().copied().fold(0.0, f64::max);
        let steps =
            (1..HEIGHTS.len()).filter(|step| most > 0.0 && value / most > ratio(*step, HEIGHTS.len()));
        HEIGHTS[steps.count()]
    };
    newest_first.chunks(group).rev().map(height).collect()
}

#[expect(clippy::cast_precision_loss, reason = "both are columns of a terminal")]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_lines_are_as_long_as_what_they_stand_for() {
        assert_eq!([0.0, 0.5, 1.0].map(|share| bar(share, 4)), ["····", "██··", "████"]);
        assert_eq!(sparkline(&[8.0, 4.0, 1.0, 0.0], 4), "▁▁▄█");
        assert_eq!(sparkline(&[0.0, 8.0, 1.0, 0.0], 2), "▁█");
        assert_eq!(sparkline(&[], 10), "");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
    }
}
