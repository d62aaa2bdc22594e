//! `compare`: two targets until the difference is known, or records of suites against each other.

use std::path::Path;

use courser_lab::comparing::{self, Compared, LimitVerdict};
use courser_lab::record_file::read_lab;
use courser_record::Lab;
use courser_report::diff;

use crate::cli::CompareArgs;
use crate::deliver;
use crate::exit::{self, Ended, Failure};
use crate::progress::ComparisonProgress;
use crate::units;

pub(crate) fn compare(args: &CompareArgs) -> Result<Ended, Failure> {
    if let Some(baseline) = &args.baseline {
        return platforms(baseline, args);
    }
    let [a, b] = args.what.as_slice() else {
        return Err(Failure::usage(
            "compare takes two targets or two records; with --baseline any number of records",
        ));
    };
    match (is_record(a), is_record(b)) {
        (true, true) => records(Path::new(a), Path::new(b), args),
        (false, false) => targets(a, b, args),
        _ => Err(Failure::usage(format!("{a} and {b}: one is a record and the other is none"))),
    }
}

fn is_record(text: &str) -> bool {
    Path::new(text).extension().is_some_and(|extension| extension == "json")
}

fn targets(a: &str, b: &str, args: &CompareArgs) -> Result<Ended, Failure> {
    let mut progress = ComparisonProgress::new(args.quiet);
    let Compared { state, ended, limit } =
        comparing::compare(&args.options(), [a, b], &exit::interrupt()?, &mut progress)?;
    if args.json {
        deliver::print(&state.lab.to_json());
    } else {
        let verdicts = state.lab.findings.iter().filter(|finding| finding.id.starts_with("comparison"));
        for verdict in verdicts {
            deliver::print(&format!("{}\n", verdict.text));
        }
    }
    state.kept()?;
    notice!("record: {}", state.path().display());
    match (ended.into(), limit) {
        (Ended::Well, Some(LimitVerdict::Exceeded)) => Ok(Ended::Worse),
        (Ended::Well, Some(LimitVerdict::Unknown)) => {
            notice!(
                "warning: the blocks vary too much to know of every case whether the limit is kept: more --time, or longer blocks (--seconds)"
            );
            Ok(Ended::Well)
        }
        (ended, _) => Ok(ended),
    }
}

/// Before and after, as a Markdown table; the exit code says whether anything is worse than allowed.
fn records(before: &Path, after: &Path, args: &CompareArgs) -> Result<Ended, Failure> {
    let diff = diff::compare(&read_lab(before)?, &read_lab(after)?);
    for warning in &diff.warnings {
        notice!("warning: {warning}");
    }
    deliver::print(&diff::markdown(&diff, [&name(before), &name(after)]));
    let Some(limit) = args.fail_above else { return Ok(Ended::Well) };
    let worse = diff.worse_than(limit);
    let blind = diff.lines.iter().filter(|line| line.cannot_detect(limit)).count();
    if blind > 0 {
        notice!(
            "warning: {blind} of {} figures vary too much to show a change of {}: more --rounds in both records",
            diff.lines.len(),
            units::format_percent(limit)
        );
    }
    for line in &worse {
        notice!("worse: {} of {}: {}", line.case, line.target, line.change());
    }
    if diff.lines.is_empty() {
        return Err(Failure::usage("the two records have no case and target in common"));
    }
    Ok(if worse.is_empty() { Ended::Well } else { Ended::Worse })
}

/// Several records against one, as losses in percent.
fn platforms(baseline: &Path, args: &CompareArgs) -> Result<Ended, Failure> {
    if args.what.is_empty() {
        return Err(Failure::usage("--baseline needs records to compare with it"));
    }
    let first = read_lab(baseline)?;
    let others = args.what.iter().map(|path| read_lab(Path::new(path))).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = args.what.iter().map(|path| name(Path::new(path))).collect();
    let others: Vec<(&str, &Lab)> = names.iter().map(String::as_str).zip(&others).collect();
    deliver::print(&diff::losses((&name(baseline), &first), &others));
    Ok(Ended::Well)
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
