//! docs/limits.md, held to the sources: each row names its test, or that there is none, and what it names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::architecture::{root, sources};

/// The mark of a row without a test.
const NO_TEST: &str = "no test";

#[test]
fn every_row_names_its_test_or_says_that_there_is_none() {
    let page = page();
    let rows: Vec<_> = rows(&page).collect();
    assert!(rows.len() > 60, "only {} rows are found", rows.len());
    let silent: Vec<_> =
        rows.iter().filter(|row| row.len() != 4 || !names_a_test(row[3])).map(|row| row[0]).collect();
    assert!(silent.is_empty(), "rows of other than four cells, or without a word of a test: {silent:#?}");
}

#[test]
fn every_test_that_is_named_is_there() {
    let page = page();
    let named: Vec<_> = quoted(&page).filter_map(|word| word.split_once(".rs::")).collect();
    assert!(named.len() > 90, "only {} tests are named", named.len());
    let missing: Vec<_> = named.iter().filter(|(file, test)| !is_there(file, test)).collect();
    assert!(missing.is_empty(), "no such tests: {missing:#?}");
}

#[test]
fn every_constant_that_is_named_is_there() {
    let page = page();
    let code: String = sources(&root().join("crates")).iter().map(|path| read(path)).collect();
    let is_constant =
        |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let named: BTreeSet<_> = quoted(&page).filter(is_constant).collect();
    assert!(named.len() > 40, "only {} constants are named", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("const {name}:"))).collect();
    assert!(missing.is_empty(), "no such constants: {missing:?}");
}

/// The cells of each row below a heading.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    lines.map(|line| line.split(" | ").collect::<Vec<_>>()).filter(|row| row[0] != "what")
}

fn names_a_test(cell: &str) -> bool {
    cell == NO_TEST || quoted(cell).any(|word| word.contains(".rs::"))
}

/// The text between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a crate has this test in the file of this name, which may lie in `src` and in `tests/it`.
fn is_there(file: &str, test: &str) -> bool {
    let Some((name, file)) = file.split_once('/') else { return false };
    let folder = root().join("crates").join(name);
    ["src", "tests/it"]
        .map(|place| folder.join(place).join(format!("{file}.rs")))
        .iter()
        .any(|path| path.exists() && is_test(&read(path), test))
}

/// Whether a function of this name has an attribute that makes a test of it.
fn is_test(code: &str, name: &str) -> bool {
    let lines: Vec<_> = code.lines().map(str::trim).collect();
    let begin = format!("fn {name}(");
    let begins = lines.iter().position(|line| line.trim_start_matches("async ").starts_with(&begin));
    let Some(place) = begins else { return false };
    lines[..place].iter().rev().take_while(|line| line.starts_with('#')).any(|line| line.contains("test"))
}

fn page() -> String {
    read(&root().join("docs/limits.md"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("the file can be read")
}
