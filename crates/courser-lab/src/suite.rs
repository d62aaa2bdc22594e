//! A suite: a published experiment as data. A file says what is swept over, how it is measured and how the answer is
//! laid out; reading it gives every case spelled out. Those of `suites/` are built into the program.

mod case;
mod checks;
mod field;
mod file;
mod values;

use std::fs;
use std::path::Path;

use courser_record::lab::{LeftOut, Published, SuiteNotes, Table};
use serde::Deserialize;

pub use case::{Backend, CaseSpec, ClientKind, Crowd, Requests, Resume, Transport, clients};

use crate::error::Error;
use file::{File, TableFile};

/// The suites of the program, in the order of `--help`.
const BUILT_IN: [(&str, &str); 15] = [
    ("capacity", include_str!("../../../suites/capacity.toml")),
    ("reuse-and-key-size", include_str!("../../../suites/reuse-and-key-size.toml")),
    ("offload", include_str!("../../../suites/offload.toml")),
    ("handshake-flood", include_str!("../../../suites/handshake-flood.toml")),
    ("continuous", include_str!("../../../suites/continuous.toml")),
    ("platforms", include_str!("../../../suites/platforms.toml")),
    ("latency", include_str!("../../../suites/latency.toml")),
    ("overheads", include_str!("../../../suites/overheads.toml")),
    ("primitives", include_str!("../../../suites/primitives.toml")),
    ("two-certificates", include_str!("../../../suites/two-certificates.toml")),
    ("fleet", include_str!("../../../suites/fleet.toml")),
    ("sticky", include_str!("../../../suites/sticky.toml")),
    ("overload", include_str!("../../../suites/overload.toml")),
    ("a-a", include_str!("../../../suites/a-a.toml")),
    ("compare", include_str!("../../../suites/compare.toml")),
];

/// What was published, by the suite's name.
const PUBLISHED: [(&str, &str); 9] = [
    ("capacity", include_str!("../../../record/published/capacity.toml")),
    ("reuse-and-key-size", include_str!("../../../record/published/reuse-and-key-size.toml")),
    ("offload", include_str!("../../../record/published/offload.toml")),
    ("handshake-flood", include_str!("../../../record/published/handshake-flood.toml")),
    ("continuous", include_str!("../../../record/published/continuous.toml")),
    ("platforms", include_str!("../../../record/published/platforms.toml")),
    ("overheads", include_str!("../../../record/published/overheads.toml")),
    ("primitives", include_str!("../../../record/published/primitives.toml")),
    ("fleet", include_str!("../../../record/published/fleet.toml")),
];

/// A suite, as it was read.
#[derive(Clone, Debug)]
pub struct Suite {
    /// What the record says of it.
    pub notes: SuiteNotes,
    /// Targets when nobody names others.
    pub targets: Vec<String>,
    /// Every case, in order.
    pub cases: Vec<CaseSpec>,
}

/// Names of the built-in suites.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

impl Suite {
    /// A built-in suite by its name, or the one in a file.
    ///
    /// # Errors
    /// When there is none, or the file is wrong: with its line and column.
    pub fn find(name: &str, quick: bool) -> Result<Self, Error> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Self::read(text, quick).map_err(|why| Error::input(format!("{name}: {why}")));
        }
        if !Path::new(name).exists() && !name.ends_with(".toml") {
            let nearest = names().min_by_key(|known| strsim::damerau_levenshtein(known, name));
            let nearest = nearest.unwrap_or_default();
            let known: Vec<&str> = names().collect();
            let why = format!(
                "no suite is called {name:?}: did you mean {nearest}? There are {}",
                known.join(", ")
            );
            return Err(Error::input(why));
        }
        let text = fs::read_to_string(name).map_err(|why| Error::input(format!("{name}: {why}")))?;
        Self::read(&text, quick).map_err(|why| Error::input(format!("{name}: {why}")))
    }

    /// # Errors
    /// What is wrong, with line and column where it has one.
    pub fn read(text: &str, quick: bool) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|why| why.to_string())?;
        let published = published(&file.name)?;
        let mut cases = Vec::new();
        for group in &file.group {
            cases.extend(case::expand(group, quick)?);
        }
        if let Some(twice) = twice(&cases) {
            return Err(format!("two cases are called {twice}: give their groups different ids"));
        }
        let tables =
            file.table.into_iter().map(|table| self::table(table, &published)).collect::<Result<_, _>>()?;
        let left_out =
            file.left_out.into_iter().map(|row| LeftOut { row: row.row, reason: row.reason }).collect();
        let notes = SuiteNotes {
            title: if file.title.is_empty() { file.name.clone() } else { file.title },
            name: file.name,
            source: tidy(&file.source),
            question: tidy(&file.question),
            analysis: tidy(&file.analysis),
            tables,
            charts: file.chart.into_iter().map(Into::into).collect(),
            left_out,
        };
        Ok(Self { notes, targets: file.targets, cases })
    }
}

fn twice(cases: &[CaseSpec]) -> Option<&str> {
    let again = |(index, case): &(usize, &CaseSpec)| cases[..*index].iter().any(|other| other.id == case.id);
    cases.iter().enumerate().find(again).map(|(_, case)| case.id.as_str())
}

/// A paragraph, however its lines were broken.
fn tidy(text: &str) -> String {
    let paragraphs = text.trim().split("\n\n");
    let one = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
    paragraphs.map(one).collect::<Vec<_>>().join("\n\n")
}

fn table(file: TableFile, published: &[PublishedTable]) -> Result<Table, String> {
    let found = file.published.as_ref().map(|id| {
        let found = published.iter().find(|table| table.id == *id);
        found.map(|table| table.figures.clone()).ok_or_else(|| format!("nothing published is called {id}"))
    });
    Ok(Table {
        id: file.id,
        title: file.title,
        rows: file.rows,
        columns: file.columns,
        filter: file.filter,
        values: file.values,
        published: found.transpose()?,
    })
}

#[derive(Deserialize)]
struct PublishedFile {
    table: Vec<PublishedTable>,
}

#[derive(Deserialize)]
struct PublishedTable {
    id: String,
    #[serde(flatten)]
    figures: PublishedFigures,
}

/// As [`Published`], with TOML's habit of singular names for arrays of tables.
#[derive(Deserialize)]
struct PublishedFigures {
    source: String,
    unit: String,
    columns: Vec<String>,
    row: Vec<courser_record::lab::PublishedRow>,
}

impl PublishedFigures {
    fn clone(&self) -> Published {
        Published {
            source: self.source.clone(),
            unit: self.unit.clone(),
            columns: self.columns.clone(),
            rows: self.row.clone(),
        }
    }
}

fn published(suite: &str) -> Result<Vec<PublishedTable>, String> {
    let Some((_, text)) = PUBLISHED.iter().find(|(name, _)| *name == suite) else { return Ok(Vec::new()) };
    let file: PublishedFile = toml::from_str(text).map_err(|why| format!("published figures: {why}"))?;
    Ok(file.table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_of_the_program_can_be_read_in_both_variants() {
        for (name, text) in BUILT_IN {
            for quick in [true, false] {
                let suite = Suite::read(text, quick).unwrap_or_else(|why| panic!("{name}: {why}"));
                assert_eq!(suite.notes.name, name);
                assert!(!suite.notes.analysis.is_empty() && !suite.notes.question.is_empty(), "{name}");
                assert!(!suite.cases.is_empty(), "{name} has no case (quick: {quick})");
            }
        }
    }

    /// The first block of TOML behind a heading of the page on suites.
    fn documented(heading: &str) -> &'static str {
        let page = include_str!("../../../docs/lab.md");
        let (_, after) = page.split_once(heading).unwrap_or_else(|| panic!("no heading {heading}"));
        after.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block of TOML")
    }

    #[test]
    fn the_documented_suite_has_every_field_and_can_be_read() {
        let text = documented("## A suite of your own");
        for quick in [true, false] {
            let suite = Suite::read(text, quick).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(suite.cases.len(), if quick { 2 } else { 4 });
        }
        // What is refused names every field that there is.
        for section in ["[[group]]\nno-such", "[[group]]\n[group.case]\nno-such"] {
            let why = Suite::read(&format!("name = 'x'\n{section} = 1\n"), true).unwrap_err();
            let fields: Vec<&str> = why.split('`').skip(3).step_by(2).collect();
            let is_missing = |name: &&&str| {
                !text.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{name} =")))
            };
            let missing: Vec<&&str> = fields.iter().filter(is_missing).collect();
            let known = ["case", "quick-case", "quick_case"];
            assert!(
                fields.len() > 10 && missing.iter().all(|name| known.contains(*name)),
                "not documented: {missing:?}"
            );
        }
    }

    /// The like-for-like rival of a program that forwards bytes.
    #[test]
    fn nginx_stream_is_measured_wherever_nginx_is() {
        for (name, text) in BUILT_IN {
            let suite = Suite::read(text, false).unwrap();
            let groups = suite.cases.iter().filter_map(|case| case.targets.as_ref());
            for targets in groups.chain([&suite.targets]) {
                let has = |target: &str| targets.iter().any(|name| name == target);
                assert!(has("nginx-stream") || !has("nginx"), "{name}: {targets:?}");
            }
        }
    }

    #[test]
    fn a_suite_needs_no_prose() {
        let text = "name = 'x'\n[[group]]\nid = 'a'\nmeasure = 'saturation'\n";
        let suite = Suite::read(text, false).unwrap();
        assert_eq!((suite.notes.title.as_str(), suite.cases.len()), ("x", 1));
    }

    #[test]
    fn the_documented_target_file_can_be_read() {
        let folder = courser_testkit::Folder::new();
        folder.write("mine.toml", documented("## Programs and configurations of your own"));
        crate::target::Definition::read(&folder.join("mine.toml")).unwrap_or_else(|why| panic!("{why}"));
    }

    #[test]
    fn a_typo_is_told_with_its_place() {
        let text = BUILT_IN[0].1.replacen("measure =", "mesure =", 1);
        let error = Suite::read(&text, true).unwrap_err();
        assert!(error.contains("line ") && error.contains("column ") && error.contains("mesure"), "{error}");
    }

    #[test]
    fn quick_cases_are_some_of_the_full_ones() {
        for (name, text) in BUILT_IN {
            let ids = |quick| -> Vec<String> {
                Suite::read(text, quick).unwrap().cases.into_iter().map(|case| case.id).collect()
            };
            let full = ids(false);
            for id in ids(true) {
                assert!(full.contains(&id), "{name}: {id} is not among {full:?}");
            }
        }
    }
}
