//! The documents, held to the repository: what they link to and name is there, the way in stays short, pictures are up to
//! date, and every close reason has a remedy.

#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_testkit::skip;

use crate::architecture::{root, sources, string_literals};
use crate::retired_words::documents;

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for page in documents() {
        let text = fs::read_to_string(&page).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            if !path.exists() || !heading.is_empty() && !headings(&path).contains(&heading.to_owned()) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere: {broken:#?}");
}

#[test]
fn every_source_file_that_a_document_names_is_there() {
    let files: Vec<_> = ["crates", "fuzz"].iter().flat_map(|folder| files(&root().join(folder))).collect();
    let is_there = |name: &str| files.iter().any(|path| Path::new(path).ends_with(name));
    let mut missing = Vec::new();
    for page in documents() {
        let text = fs::read_to_string(&page).unwrap();
        let named = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let named = named.filter(|word| word.ends_with(".rs") && !word.contains([' ', '*']));
        let not_there = named.filter(|word| !is_there(word));
        missing.extend(not_there.map(|word| format!("{}: {word}", page.display())));
    }
    assert!(missing.is_empty(), "no such files: {missing:#?}");
}

#[test]
fn the_table_of_ten_seconds_names_files_that_are_there() {
    let page = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, rest) = page.split_once("## Find the file in ten seconds").unwrap();
    let rows = rest.split("\n## ").next().unwrap().lines().filter(|line| line.starts_with("| ")).skip(1);
    let files: Vec<_> =
        rows.flat_map(|row| row.rsplit("| ").next().unwrap().split('`').skip(1).step_by(2))
            .map(|name| {
                if name.starts_with("targets/") {
                    root().join(name)
                } else {
                    root().join("crates").join(name)
                }
            })
            .collect();
    assert!(files.len() > 15, "only {} files are found", files.len());
    let missing: Vec<_> = files.iter().filter(|path| !path.exists()).collect();
    assert!(missing.is_empty(), "no such files: {missing:#?}");
}

#[test]
fn readme_stays_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 140, "README.md is read in a minute, at most 140 lines; it has {lines}");
}

#[test]
fn every_close_reason_has_a_remedy() {
    let page = fs::read_to_string(root().join("docs/life-of-a-connection.md")).unwrap();
    let (_, rest) = page.split_once("## How it ended").unwrap();
    let table = rest.split_once("<!-- /").unwrap().0;
    let reasons: Vec<_> =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).skip(1).collect();
    assert!(reasons.len() > 20, "only {reasons:?} are found");
    let remedies = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let missing: Vec<_> = reasons.iter().filter(|name| !remedies.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/operations.md says nothing of {missing:?}");
}

#[test]
fn the_pictures_are_as_their_text_says() {
    match Command::new("python3").arg(root().join("scripts/pictures.py")).arg("--check").output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => skip(format_args!("python3 draws the pictures: {error}")),
    }
}

/// The anchors of a page's headings, as GitHub makes them: the second of a name ends in `-1`.
fn headings(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_default();
    let mut plain: Vec<String> = Vec::new();
    let mut anchor = |line: &str| {
        let heading = line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        let anchor: String =
            heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect();
        let earlier = plain.iter().filter(|other| **other == anchor).count();
        plain.push(anchor.clone());
        if earlier == 0 { anchor } else { format!("{anchor}-{earlier}") }
    };
    text.lines().filter(|line| line.starts_with('#')).map(&mut anchor).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let deeper = |path: std::path::PathBuf| match path.is_dir() {
        true if path.ends_with("target") => Vec::new(),
        true => files(&path),
        false => vec![path.to_string_lossy().into_owned()],
    };
    entries.flat_map(deeper).collect()
}

#[test]
fn every_event_line_of_the_operations_page_is_one_that_the_program_writes() {
    let page = fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let program = [
        "courser",
        "courser-acme",
        "courser-health",
        "courser-proxy",
        "courser-sharing",
        "courser-store",
        "courser-telemetry",
    ];
    let sources = program.iter().flat_map(|name| sources(&root().join("crates").join(name).join("src")));
    let texts: Vec<_> =
        sources.flat_map(|path| string_literals(&fs::read_to_string(path).unwrap())).collect();
    let mut checked = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let symptom = row.split(" | ").next().unwrap();
        let quoted = symptom.split('`').skip(1).step_by(2).filter(|quote| quote.contains(' '));
        for quote in quoted {
            let line = quote.replace("Too many open files", "…").replace("connection log", "…");
            let is_written = |text: &String| {
                let mut parts = line.split('…').filter(|part| !part.trim().is_empty());
                parts.try_fold(text.as_str(), |rest, part| Some(rest.split_once(part)?.1)).is_some()
            };
            assert!(texts.iter().any(is_written), "no part of the program writes `{quote}`");
            checked += 1;
        }
    }
    assert!(checked >= 10, "{checked}");
}
