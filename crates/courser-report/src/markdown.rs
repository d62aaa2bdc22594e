//! The report as Markdown: what a pull request or a README shows.

use courser_record::Lab;
use courser_record::lab::CellState;

use crate::grid::{Apart, Grid, grids};
use crate::labels;
use crate::ranking::rankings;

/// These records, suite after suite in the order given.
pub fn render(labs: &[Lab]) -> String {
    let mut text = String::new();
    for warning in labels::across(labs) {
        text.push_str(&format!("> **Caution:** {}\n\n", escaped(&warning)));
    }
    text + &labs.iter().map(suite).collect::<Vec<_>>().join("\n")
}

fn suite(lab: &Lab) -> String {
    let mut text = format!("# {}\n\n", escaped(&lab.suite.title));
    if let Some(cut) = labels::cut(lab) {
        text.push_str(&format!("> **Caution:** {}\n\n", escaped(&cut)));
    }
    for sentence in crate::answer::answer(lab).iter().flat_map(|answer| &answer.sentences) {
        text.push_str(&format!("- {}\n", escaped(sentence)));
    }
    text.push('\n');
    let verdict = labels::verdict(lab);
    for sentence in &verdict.sentences {
        text.push_str(&format!("**{}**\n\n", escaped(sentence)));
    }
    if !verdict.cautions.is_empty() {
        text.push_str(&format!("{}\n\n", escaped(&verdict.cautions.join(" "))));
    }
    if let Some(caution) = labels::control_caution(lab) {
        text.push_str(&format!("{}\n\n", escaped(&caution)));
    }
    text.push_str(&format!("*{}*\n\n", escaped(&lab.suite.question)));
    text.push_str(&format!("{}\n\n{}\n\n", escaped(&lab.suite.source), escaped(&labels::byline(lab))));
    for paragraph in labels::without_figures(&lab.suite.analysis) {
        text.push_str(&format!("{}\n\n", escaped(paragraph)));
    }
    text.push_str(&orders(lab));
    text.push_str(&findings(lab));
    let tables: Vec<String> = grids(lab).iter().map(table).collect();
    text.push_str(&tables.concat());
    if !tables.is_empty() {
        text.push_str(&format!("{}\n\n", labels::MARKS));
    }
    if let Some(note) = labels::share_note(lab) {
        text.push_str(&format!("{note}\n\n"));
    }
    text + &control(lab) + &missing(lab)
}

/// What a client that does all the work says of each case.
fn control(lab: &Lab) -> String {
    let rows = labels::control_rows(lab);
    if rows.is_empty() {
        return String::new();
    }
    let [case, columns @ ..] = labels::CONTROL_HEADS.map(str::to_owned);
    let lines = rows.iter().map(|cells| row(&cells[0], &cells[1..])).collect::<String>();
    format!("## Control of the client\n\n{}{lines}\n{}\n\n", head(&case, &columns), labels::CONTROL)
}

fn orders(lab: &Lab) -> String {
    let rankings = rankings(lab);
    let line = |ranking| {
        format!(
            "- **{}:** {}\n",
            escaped(&labels::ranking_title(lab, ranking)),
            escaped(&labels::order(lab, ranking))
        )
    };
    let lines: String = rankings.iter().map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("## Case by case\n\n{}{lines}\n{}\n\n", common(lab), labels::HOW_SURE)
    }
}

fn common(lab: &Lab) -> String {
    let common = labels::common(lab);
    if common.is_empty() { common } else { format!("All cases: {}.\n\n", escaped(&common)) }
}

fn findings(lab: &Lab) -> String {
    let line = |finding: &labels::Concern| {
        format!("- **{}:** {}\n", escaped(&finding.about), escaped(&finding.text()))
    };
    let lines: String = labels::findings(lab).iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("## Caution\n\n{lines}\n") }
}

fn table(grid: &Grid) -> String {
    let mut text = format!("## {}\n\n", escaped(&grid.title));
    if let Some(shows) = &grid.shows {
        text.push_str(&format!("In each cell: {}.\n\n", escaped(shows)));
    }
    text.push_str(&head(&grid.corner, &grid.columns));
    for line in grid.lines() {
        text.push_str(&row(&line.label, &line.cells));
    }
    for (label, cells) in &grid.published {
        text.push_str(&row(&format!("{label} (published)"), cells));
    }
    text.push('\n');
    if let Some(source) = &grid.source {
        text.push_str(&format!("Published: {}.\n\n", escaped(source)));
    }
    if let Some(apart) = &grid.apart {
        text.push_str(&set_apart(apart));
    }
    for (index, note) in grid.notes.iter().enumerate() {
        text.push_str(&format!("{}. {}\n", index + 1, escaped(note)));
    }
    if grid.notes.is_empty() { text } else { text + "\n" }
}

fn set_apart(apart: &Apart) -> String {
    let rows: String = apart.rows.iter().map(|(label, cells)| row(label, cells)).collect();
    format!("{}{rows}\n", head("", &apart.columns))
}

fn head(corner: &str, columns: &[String]) -> String {
    format!("{}|---|{}\n", row(corner, columns), "--:|".repeat(columns.len()))
}

fn row(label: &str, cells: &[String]) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {} |", escaped(cell))).collect();
    format!("| {} |{cells}\n", escaped(label))
}

fn missing(lab: &Lab) -> String {
    let mut lines = Vec::new();
    for (state, word) in
        [(CellState::Failed, "failed"), (CellState::Cannot, "cannot"), (CellState::Pending, "not measured")]
    {
        let cells = lab.cells.iter().filter(|cell| cell.state == state);
        lines.extend(
            labels::grouped(lab, cells).into_iter().map(|(who, why)| (format!("{who} ({word})"), why)),
        );
    }
    lines.extend(
        lab.suite.left_out.iter().map(|left| (format!("{} (left out)", left.row), left.reason.clone())),
    );
    let line = |(who, why): &(String, String)| format!("- {}: {}\n", escaped(who), escaped(why));
    let lines: String = lines.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("## What is missing, and why\n\n{lines}") }
}

/// Text that stays text: on one line, without what Markdown or HTML would read as theirs.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for char in text.trim().chars() {
        match char {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' => escaped.extend(['\\', char]),
            char if char.is_control() => escaped.push(' '),
            char => escaped.push(char),
        }
    }
    escaped
}
