//! A suite for a terminal: the verdict, case by case, the tables.

use courser_record::lab::CellState;
use courser_record::{Lab, Severity};

use crate::grid::{Grid, grids};
use crate::labels;
use crate::layout::{Page, Style, Tone};
use crate::ranking::rankings;

/// These records, suite after suite in the order given.
pub fn render(labs: &[Lab], style: Style) -> String {
    let mut page = Page::new(style);
    for warning in labels::across(labs) {
        page.paragraph(Tone::Warning, "CAUTION  ", &warning);
    }
    for lab in labs {
        suite(&mut page, lab);
    }
    page.finish()
}

fn suite(page: &mut Page, lab: &Lab) {
    page.heading(&lab.suite.title);
    if let Some(cut) = labels::cut(lab) {
        page.paragraph(Tone::Warning, "  ", &cut);
    }
    for sentence in crate::answer::answer(lab).iter().flat_map(|answer| &answer.sentences) {
        page.paragraph(Tone::Plain, "  ", sentence);
    }
    let verdict = labels::verdict(lab);
    verdict.sentences.iter().for_each(|sentence| page.paragraph(Tone::Good, "  ", sentence));
    verdict.cautions.iter().for_each(|caution| page.paragraph(Tone::Warning, "  ", caution));
    if let Some(caution) = labels::control_caution(lab) {
        page.paragraph(Tone::Warning, "  ", &caution);
    }
    page.paragraph(Tone::Plain, "  ", &labels::byline(lab));
    orders(page, lab);
    for finding in labels::findings(lab).iter().filter(|finding| finding.severity > Severity::Note) {
        page.paragraph(Tone::Warning, "  ", &format!("{}: {}", finding.about, finding.text()));
    }
    for grid in &grids(lab) {
        table(page, grid);
    }
    if let Some(note) = labels::share_note(lab) {
        page.paragraph(Tone::Plain, "  ", &note);
    }
    control(page, lab);
    missing(page, lab);
}

fn orders(page: &mut Page, lab: &Lab) {
    let rankings = rankings(lab);
    if rankings.is_empty() {
        return;
    }
    page.heading("Case by case");
    let common = labels::common(lab);
    if !common.is_empty() {
        page.paragraph(Tone::Plain, "  all cases: ", &common);
    }
    for ranking in &rankings {
        page.paragraph(
            Tone::Plain,
            "  ",
            &format!("{}: {}", labels::ranking_title(lab, ranking), labels::order(lab, ranking)),
        );
    }
}

fn table(page: &mut Page, grid: &Grid) {
    page.heading(&grid.title);
    if let Some(shows) = &grid.shows {
        page.paragraph(Tone::Plain, "  ", &format!("in each cell: {shows}"));
    }
    let head = std::iter::once(grid.corner.clone()).chain(grid.columns.iter().cloned());
    let mut rows = vec![head.collect::<Vec<_>>()];
    rows.extend(grid.lines().into_iter().map(|line| std::iter::once(line.label).chain(line.cells).collect()));
    let published = grid.published.iter();
    rows.extend(published.map(|(label, cells)| {
        std::iter::once(format!("{label} (published)")).chain(cells.iter().cloned()).collect()
    }));
    page.table(&rows);
    if let Some(source) = grid.source.as_ref().filter(|_| grid.apart.is_none()) {
        page.paragraph(Tone::Plain, "  published: ", source);
    }
    for (index, note) in grid.notes.iter().enumerate() {
        page.paragraph(Tone::Plain, &format!("  [{}] ", index + 1), note);
    }
}

/// What a client that does all the work says of each case.
fn control(page: &mut Page, lab: &Lab) {
    let rows = labels::control_rows(lab);
    if rows.is_empty() {
        return;
    }
    page.heading("Control of the client");
    let head = labels::CONTROL_HEADS.map(str::to_owned).to_vec();
    page.table(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    page.paragraph(Tone::Plain, "  ", labels::CONTROL);
}

fn missing(page: &mut Page, lab: &Lab) {
    let cells = |state: CellState| lab.cells.iter().filter(move |cell| cell.state == state);
    for (state, word) in [(CellState::Failed, "failed"), (CellState::Cannot, "cannot")] {
        for (who, why) in labels::grouped(lab, cells(state)) {
            page.paragraph(Tone::Warning, &format!("  {word}: "), &format!("{who}: {why}"));
        }
    }
}
