//! `report`: records of suites as a page, Markdown, CSV, plots or text.

use std::fs;
use std::path::{Path, PathBuf};

use courser_lab::record_file::{self, read_lab};
use courser_record::Lab;
use courser_record::lab::Value;
use courser_report::ranking::{Compared, Precision, compared};
use courser_report::{chart, csv, html, lab_text, markdown};
use serde_json::json;

use crate::cli::ReportArgs;
use crate::deliver;
use crate::exit::{Ended, Failure};

/// Writes what was asked for, and names it; text to standard output where nothing was.
pub(crate) fn report(args: &ReportArgs) -> Result<Ended, Failure> {
    let labs = args.files.iter().map(|path| read_lab(path)).collect::<Result<Vec<_>, _>>()?;
    save(args.output.as_deref(), || html::render(&labs))?;
    save(args.markdown.as_deref(), || markdown::render(&labs))?;
    save(args.csv.as_deref(), || csv::render(&labs))?;
    if let Some(folder) = &args.svg {
        plots(folder, &labs)?;
    }
    if let Some(folder) = &args.index {
        index(folder, &args.files, &labs)?;
    }
    if args.pairs {
        deliver::print(&pairs(&args.files, &labs, args.json));
    } else if args.json {
        deliver::print(&whole(&labs));
    } else if [&args.output, &args.markdown, &args.csv, &args.svg, &args.index]
        .iter()
        .all(|path| path.is_none())
    {
        deliver::print(&lab_text::render(&labs, deliver::style()));
    }
    Ok(Ended::Well)
}

fn save(path: Option<&Path>, text: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    record_file::write(path, &text())?;
    notice!("{}", path.display());
    Ok(())
}

/// A page for each record, and one over all.
fn index(folder: &Path, paths: &[PathBuf], labs: &[Lab]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::system(folder.display(), error))?;
    let names: Vec<String> = paths.iter().map(|path| page_name(path)).collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) || name == "index.html" {
            return Err(Failure::usage(format!("two pages would be called {name}: rename a record")));
        }
    }
    for (name, lab) in names.iter().zip(labs) {
        save(Some(&folder.join(name)), || html::render(std::slice::from_ref(lab)))?;
    }
    let pages: Vec<html::Page<'_>> =
        names.iter().zip(labs).map(|(file, lab)| html::Page { lab, file }).collect();
    save(Some(&folder.join("index.html")), || html::index(&pages))
}

/// `capacity.html` for `record/capacity.json`: a name that a link can have.
fn page_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let plain = |char: char| if char.is_ascii_alphanumeric() || "-_.".contains(char) { char } else { '-' };
    format!("{}.html", stem.chars().map(plain).collect::<String>())
}

/// Every plot of every suite, numbered in the order of the page; suites of the same name are numbered too.
fn plots(folder: &Path, labs: &[Lab]) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::system(folder.display(), error))?;
    for (index, lab) in labs.iter().enumerate() {
        let again = labs[..index].iter().filter(|other| other.suite.name == lab.suite.name).count();
        let prefix =
            if again == 0 { lab.suite.name.clone() } else { format!("{}-{}", lab.suite.name, again + 1) };
        for (number, (title, svg)) in drawn(lab).into_iter().enumerate() {
            save(Some(&file_name(folder, &prefix, number + 1, &title)), || svg)?;
        }
    }
    Ok(())
}

/// Headings and files.
fn drawn(lab: &Lab) -> Vec<(String, String)> {
    let drawings = lab.suite.charts.iter().flat_map(|chart| chart::drawings(lab, chart));
    let mut all: Vec<_> = drawings.map(|drawing| (drawing.title.clone(), drawing.file())).collect();
    all.extend(chart::flames(lab).into_iter().map(|(title, svg)| (format!("flame graph {title}"), svg)));
    all
}

/// `capacity-01-staircase-courser.svg`: a name that no record can choose.
fn file_name(folder: &Path, suite: &str, number: usize, title: &str) -> PathBuf {
    let plain = |text: &str| {
        let words = text.split(|char: char| !char.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("-").to_lowercase()
    };
    let name: String = format!("{}-{number:02}-{}", plain(suite), plain(title)).chars().take(100).collect();
    folder.join(format!("{name}.svg"))
}

/// Every two targets by processor time per connection, and what all of it comes to.
fn pairs(paths: &[PathBuf], labs: &[Lab], as_json: bool) -> String {
    let each = paths.iter().zip(labs);
    let all: Vec<(&PathBuf, Compared)> = each
        .flat_map(|(path, lab)| compared(lab, Value::Cpu).into_iter().map(move |one| (path, one)))
        .collect();
    let sum = Precision::of(all.iter().map(|(_, one)| one));
    if as_json {
        let pairs: Vec<_> = all.iter().map(|(path, one)| pair_json(path, one)).collect();
        let Precision { count, different, median_min_detectable } = sum;
        let sum = json!({
            "count": count, "different": different, "median_min_detectable": median_min_detectable,
            "pairs": pairs,
        });
        return format!("{sum:#}\n");
    }
    let lines: String = all.iter().map(|(path, one)| pair_line(path, one)).collect();
    format!(
        "{lines}{} of {} called different; median minimum detectable difference: {:.1} %\n",
        sum.different,
        sum.count,
        100.0 * sum.median_min_detectable
    )
}

fn pair_line(path: &Path, Compared { case, first, second, contrast }: &Compared) -> String {
    let word = if contrast.is_different() { "different" } else { "no difference seen" };
    format!(
        "{}: {case}: {second} over {first} {:.3} ({:.3} to {:.3}), detectable {:.1} %: {word}\n",
        path.display(),
        contrast.ratio,
        contrast.interval.low,
        contrast.interval.high,
        100.0 * contrast.min_detectable
    )
}

fn pair_json(path: &Path, Compared { case, first, second, contrast }: &Compared) -> serde_json::Value {
    json!({
        "record": path, "case": case, "first": first, "second": second, "ratio": contrast.ratio,
        "low": contrast.interval.low, "high": contrast.interval.high,
        "min_detectable": contrast.min_detectable, "different": contrast.is_different(),
    })
}

fn whole(labs: &[Lab]) -> String {
    let all: Vec<String> = labs.iter().map(|lab| lab.to_json().trim_end().to_owned()).collect();
    format!("[{}]\n", all.join(",\n"))
}
