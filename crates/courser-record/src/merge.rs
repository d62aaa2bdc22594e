//! Records of generators that loaded one server together, as one record.
//!
//! Counters and histograms are sums, so the merged record equals that of one generator that made the whole load.
//! Intervals are laid over each other by the wall clock, to the nearest second. What concerns one generator alone (its
//! head-room, its findings, its machine) is kept apart under its label: one that could not keep up spoils the whole,
//! and has to be found.

mod error;
mod sums;

use std::collections::BTreeSet;

use serde_json::Value;

pub use error::MergeError;

use crate::experiment::{Experiment, Share};
use crate::record::{Record, Source};
use crate::run::{Finding, Run, RunTimes, Severity, Verdict};

/// How much of the longest steady window all generators have to have in common before it goes without saying.
const COMMON: f64 = 0.95;

/// Merges the records of generators that ran together, each with its own share of one experiment. Their order does
/// not matter. The tool, command line and time of the result are those of the generator with the first share, and the
/// caller's to replace; rates are over the time from the first steady window's start to the last one's end.
///
/// A generator whose record is not there is a finding that makes the verdict inconclusive: what it did is part of the load.
///
/// # Errors
/// When the records do not belong together: see [`MergeError`].
pub fn merge(mut records: Vec<Record>) -> Result<Record, MergeError> {
    let sources = sources(&mut records)?;
    same_experiment(&records, &sources)?;
    let mut merged = shell(&records[0], &sources);
    for index in 0..records[0].runs.len() {
        let runs: Vec<Part<'_>> =
            records.iter().zip(&sources).map(|(record, source)| (source, &record.runs[index])).collect();
        merged.runs.push(run(&runs)?);
    }
    missing(&sources).into_iter().for_each(|finding| make_inconclusive(&mut merged.runs, &finding));
    merged.sources = sources;
    Ok(merged)
}

/// A run and who made it.
type Part<'a> = (&'a Source, &'a Run);

/// The records in the order of their shares, and what is to be kept of each; each share once.
fn sources(records: &mut [Record]) -> Result<Vec<Source>, MergeError> {
    if records.len() < 2 {
        return Err(MergeError::TooFew(records.len()));
    }
    records.sort_by_key(|record| record.experiment.load.share);
    let mut seen = BTreeSet::new();
    let mut sources = Vec::new();
    for record in records.iter() {
        if !record.sources.is_empty() {
            return Err(MergeError::MergedAlready(record.envelope.machine.name.clone()));
        }
        let share = record.experiment.load.share;
        let share = share.ok_or_else(|| MergeError::NoShare(record.envelope.machine.name.clone()))?;
        if share.k == 0 || share.k > share.n {
            return Err(MergeError::NoSuchShare(share));
        }
        if !seen.insert(share) {
            return Err(MergeError::SameShare(share));
        }
        sources.push(source(record, share));
    }
    Ok(sources)
}

fn source(record: &Record, share: Share) -> Source {
    Source {
        label: format!("{} ({share})", record.envelope.machine.name),
        envelope: record.envelope.clone(),
        share: Some(share),
    }
}

/// Everything but the generator's own part and its own addresses has to be the same, down to the runs.
fn same_experiment(records: &[Record], sources: &[Source]) -> Result<(), MergeError> {
    let (first, asked) = (&records[0], common(&records[0].experiment));
    for (record, source) in records.iter().zip(sources).skip(1) {
        let differs = |field: String, left: String, right: String| MergeError::Differs {
            field,
            left: (sources[0].label.clone(), left),
            right: (source.label.clone(), right),
        };
        if let Some((field, left, right)) = difference("experiment", &asked, &common(&record.experiment)) {
            return Err(differs(field, left, right));
        }
        let labels = |record: &Record| record.runs.iter().map(|run| run.label.clone()).collect::<Vec<_>>();
        let (left, right) = (labels(first), labels(record));
        if left != right {
            return Err(differs("runs".to_owned(), left.join(", "), right.join(", ")));
        }
    }
    Ok(())
}

/// What all generators of an experiment are asked alike.
fn common(experiment: &Experiment) -> Value {
    let mut experiment = experiment.clone();
    experiment.load.share = experiment.load.share.map(|share| Share { k: 0, ..share });
    experiment.sockets.sources.clear();
    serde_json::to_value(experiment).expect("plain fields are always JSON")
}

/// The first field in which two values differ, and what is there.
fn difference(path: &str, left: &Value, right: &Value) -> Option<(String, String, String)> {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => left.iter().find_map(|(name, value)| {
            difference(&format!("{path}.{name}"), value, right.get(name).unwrap_or(&Value::Null))
        }),
        _ => (left != right).then(|| (path.to_owned(), left.to_string(), right.to_string())),
    }
}

fn shell(first: &Record, sources: &[Source]) -> Record {
    let mut merged = first.clone();
    merged.runs.clear();
    merged.found.clear(); // each generator saw its own part only
    merged.experiment.load.share = None;
    let cut: Vec<_> = sources
        .iter()
        .filter_map(|source| Some(format!("{}: {}", source.label, source.envelope.cut.as_ref()?)))
        .collect();
    merged.envelope.cut = (!cut.is_empty()).then(|| cut.join("; "));
    merged
}

fn run(parts: &[Part<'_>]) -> Result<Run, MergeError> {
    let window = window(parts)?;
    let mut totals = sums::totals(parts);
    totals.window_us = window.steady_end_unix_us.saturating_sub(window.steady_start_unix_us);
    let (server, twice) = sums::server(parts, totals.connections_served());
    let mut findings = findings(parts);
    findings.extend(twice);
    findings.extend(apart(parts));
    Ok(Run {
        label: parts[0].1.label.clone(),
        offered_rate: parts.iter().map(|(_, run)| run.offered_rate).sum(),
        window,
        totals,
        seconds: sums::seconds(parts),
        server,
        generators: parts.iter().flat_map(generators).collect(),
        wire: sums::wire(parts),
        findings,
        verdict: verdict(parts),
    })
}

/// From the first start to the last end, when there is a time at which all were in their steady windows.
fn window(parts: &[Part<'_>]) -> Result<RunTimes, MergeError> {
    let windows = || parts.iter().map(|(_, run)| run.window);
    for (source, run) in parts {
        if run.window.steady_end_unix_us <= run.window.steady_start_unix_us {
            return Err(MergeError::NoWindow { run: run.label.clone(), label: source.label.clone() });
        }
        let other = parts
            .iter()
            .find(|(_, other)| run.window.steady_end_unix_us <= other.window.steady_start_unix_us);
        if let Some((other, _)) = other {
            return Err(MergeError::NotTogether {
                run: run.label.clone(),
                ended: source.label.clone(),
                began: other.label.clone(),
            });
        }
    }
    let first = |time: fn(&RunTimes) -> u64| windows().map(|window| time(&window)).min().unwrap_or(0);
    let last = |time: fn(&RunTimes) -> u64| windows().map(|window| time(&window)).max().unwrap_or(0);
    Ok(RunTimes {
        start_unix_us: first(|window| window.start_unix_us),
        steady_start_unix_us: first(|window| window.steady_start_unix_us),
        steady_end_unix_us: last(|window| window.steady_end_unix_us),
        end_unix_us: last(|window| window.end_unix_us),
    })
}

/// A warning when the steady windows have less in common than a reader would think.
fn apart(parts: &[Part<'_>]) -> Option<Finding> {
    let starts = || parts.iter().map(|(_, run)| run.window.steady_start_unix_us);
    let ends = || parts.iter().map(|(_, run)| run.window.steady_end_unix_us);
    let common = ends().min()?.saturating_sub(starts().max()?);
    let whole = ends().max()?.saturating_sub(starts().min()?);
    let share = crate::usage::ratio(common, whole)?;
    (share < COMMON).then(|| {
        Finding::new(
            "windows-apart",
            Severity::Warning,
            format!(
                "the generators' steady windows have only {:.0} % of their time in common",
                share * 100.0
            ),
            "set the machines' clocks (NTP), and start all with the same --start-at",
        )
    })
}

fn findings(parts: &[Part<'_>]) -> Vec<Finding> {
    let of = |(source, run): &Part<'_>| {
        let label = source.label.clone();
        let own = move |finding: &Finding| Finding { source: Some(label.clone()), ..finding.clone() };
        run.findings.iter().map(own).collect::<Vec<_>>()
    };
    parts.iter().flat_map(of).collect()
}

fn generators((source, run): &Part<'_>) -> Vec<crate::usage::GeneratorUsage> {
    let mut generators = run.generators.clone();
    generators.iter_mut().for_each(|generator| generator.source = Some(source.label.clone()));
    generators
}

/// All have to hold.
fn verdict(parts: &[Part<'_>]) -> Verdict {
    let reasons: Vec<_> = parts
        .iter()
        .filter(|(_, run)| !run.verdict.valid)
        .map(|(source, run)| {
            let reason = run.verdict.inconclusive.as_deref().unwrap_or("no reason given");
            format!("{}: {reason}", source.label)
        })
        .collect();
    if reasons.is_empty() { Verdict::valid() } else { Verdict::inconclusive(reasons.join("; ")) }
}

/// Which shares are not there.
fn missing(sources: &[Source]) -> Option<Finding> {
    let n = sources.first()?.share?.n;
    let there: BTreeSet<u32> = sources.iter().filter_map(|source| Some(source.share?.k)).collect();
    let missing = u64::from(n).saturating_sub(there.len() as u64);
    (missing > 0).then(|| {
        let first = (1..=n).find(|k| !there.contains(k)).unwrap_or(n);
        Finding::new(
            "share-missing",
            Severity::Invalid,
            format!("{missing} of {n} generators' records are not here, the first one {first}/{n}"),
            "merge the records of all generators; if one did not run, repeat the measurement",
        )
    })
}

fn make_inconclusive(runs: &mut [Run], finding: &Finding) {
    for run in runs {
        run.findings.push(finding.clone());
        let reasons = [run.verdict.inconclusive.take(), Some(finding.text.clone())];
        run.verdict = Verdict::inconclusive(reasons.into_iter().flatten().collect::<Vec<_>>().join("; "));
    }
}
