//! Reports as a person last approved of them. Set `UPDATE_SNAPSHOTS=1` to write them anew.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod browser;
mod controls;
mod diff;
mod labs;
mod pages;
mod ranking;
mod shares;
mod unsupported;

use std::path::Path;
use std::time::Duration;
use std::{env, fs};

use courser_record::times::{self, Moment};
use courser_record::{
    Completions, Finding, Found, IdleMemory, LoadKind, Outcomes, Record, Run, ServerThread, Severity, Share,
    Verdict, merge,
};
use courser_report::text::{self, Style};
use courser_stats::Histogram;

#[test]
fn an_inconclusive_run() {
    hold("inconclusive", &plain(&golden()));
}

#[test]
fn a_closed_loop_is_told_wherever_there_are_times() {
    let mut record = golden();
    (record.experiment.load.kind, record.experiment.load.rate) = (LoadKind::Closed, None);
    record.runs[0].offered_rate = None;
    let plain = |record: &Record| plain(record).split_whitespace().collect::<Vec<_>>().join(" ");
    let (report, told) = (plain(&record), "closed loop: service time under saturation");
    assert!(report.contains(told) && !report.contains("offered: sessions"), "{report}");
    record.runs = vec![record.runs[0].clone(), record.runs[0].clone()];
    assert!(plain(&record).contains(told), "{}", plain(&record));
    assert!(!plain(&golden()).contains(told));
}

#[test]
fn a_valid_run_at_a_rate() {
    hold("valid", &plain(&valid()));
}

#[test]
fn a_search_in_a_narrow_terminal() {
    let mut record = valid();
    let runs = [(500.0, true), (1000.0, false), (750.0, true)]
        .map(|(rate, valid)| trial(&record.runs[0], rate, valid));
    record.runs = runs.to_vec();
    record.found = vec![
        found("avg<100ms,loss<0.1%", Some(750.0), None),
        found(
            "p99<100ms,loss<0.1%",
            None,
            Some("never exceeded up to 1000/s: the search has to see failure above it"),
        ),
    ];
    hold("search", &text::render(&record, Style { colour: false, width: 72 }));
}

#[test]
fn a_staircase_that_stops_keeping_up() {
    let mut record = valid();
    record.experiment.load.kind = LoadKind::Staircase;
    (record.experiment.load.rate, record.experiment.load.rate_to) = (Some(15.0), Some(60.0));
    let step = |(rate, succeeded): (f64, u64)| {
        let mut run = trial(&record.runs[0], rate, rate < 50.0);
        run.totals.connections.succeeded = succeeded;
        let late = format!("client-bound: connections started {rate:.1} ms late (99th percentile)");
        run.findings.push(Finding::new("schedule-lag", Severity::Invalid, late, "give it a core of its own"));
        run
    };
    let runs = [(15.0, 120), (30.0, 240), (45.0, 260), (60.0, 260)].map(step);
    record.runs = runs.to_vec();
    hold("staircase", &plain(&record));
}

#[test]
fn a_staircase_that_serves_less_past_its_maximum() {
    let mut record = valid();
    record.experiment.load.kind = LoadKind::Staircase;
    if let Some(tls) = &mut record.experiment.tls {
        tls.reuse = 1;
    }
    let step = |(offered, served): (f64, u64)| {
        let mut run = trial(&record.runs[0], offered, true);
        run.totals.window_us = 1_000_000;
        run.totals.completed =
            Some(Completions { transactions: served, connections: served, ..Default::default() });
        run
    };
    record.runs = [(100.0, 100), (200.0, 180), (400.0, 90)].map(step).to_vec();
    let shown = plain(&record);
    assert!(shown.contains("past its maximum of 180/s it fell to 90/s where 400/s were offered"), "{shown}");
    assert!(!shown.contains("earlier record"), "{shown}");
}

#[test]
fn idle_connections_and_what_they_hold() {
    let mut record = golden();
    (record.envelope.cut, record.experiment.command) = (None, "idle".to_owned());
    (record.experiment.load.keepalive, record.experiment.load.requests_per_connection) = (false, Some(0));
    let run = &mut record.runs[0];
    run.verdict = Verdict::valid();
    run.totals.requests = Outcomes::default();
    run.findings.clear();
    let server = run.server.as_mut().unwrap();
    server.divide(0);
    server.idle_memory = Some(IdleMemory { connections: 5000, before_bytes: 10 << 20, with_bytes: 60 << 20 });
    let thread =
        |tid: u32, user_us: u64| ServerThread { tid, name: "worker".to_owned(), user_us, system_us: 0 };
    server.threads = (0..9).map(|tid| thread(tid, 9000)).chain([thread(9, 0), thread(10, 0)]).collect();
    hold("idle", &plain(&record));
}

#[test]
fn generators_that_were_merged() {
    let part = |k: u32| {
        let mut part = valid();
        part.envelope.machine.name = format!("generator-{k}");
        part.experiment.load.share = Some(Share { k, n: 3 });
        part.runs[0].offered_rate = Some(2000.0 / 3.0);
        part
    };
    hold("merged", &plain(&merge(vec![part(1), part(2)]).unwrap()));
}

#[test]
fn seconds_stand_below_each_other() {
    let record = golden();
    let lines: String = record.runs[0].seconds.iter().map(|second| text::line(second) + "\n").collect();
    hold("seconds", &lines);
}

#[test]
fn colours_come_only_when_they_are_asked_for() {
    let record = golden();
    let coloured = text::render(&record, Style { colour: true, ..Style::default() });
    assert!(coloured.starts_with("\x1b[1;31mINCONCLUSIVE"), "{coloured}");
    let mut stripped = String::new();
    for part in coloured.split('\x1b') {
        stripped.push_str(
            part.strip_prefix('[').and_then(|code| code.split_once('m')).map_or(part, |(_, text)| text),
        );
    }
    assert_eq!(stripped, plain(&record));
}

#[test]
fn a_percentile_without_its_samples_is_a_dash() {
    let report = plain(&golden());
    let row = report.lines().find(|line| line.contains("response, intended start")).unwrap();
    assert!(
        row.contains(" 221 ") && row.matches(" -").count() == 2,
        "221 samples support p90 and not p99: {row}"
    );
}

#[test]
fn a_record_with_nothing_in_it_is_told() {
    let mut record = golden();
    (record.runs, record.envelope.cut) = (Vec::new(), None);
    assert!(plain(&record).starts_with("INCONCLUSIVE  nothing was measured\n"));
}

/// What fuzzing made of records: the largest numbers, nothing at all, names out of nowhere.
#[test]
fn any_record_has_a_report() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/record");
    let texts = fs::read_dir(corpus).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let reports: Vec<_> = texts.filter_map(|text| Some(plain(&Record::from_json(text).ok()?))).collect();
    assert!(reports.len() > 3, "{}", reports.len());
    assert!(reports.iter().all(|report| report.starts_with("VALID") || report.starts_with("INCONCLUSIVE")));
}

/// The first record of all; the tests of courser-record keep it.
fn golden() -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../courser-record/tests/fixtures/record-v1.json");
    Record::from_json(fs::read(path).unwrap()).unwrap()
}

/// As if it had been 2000 sessions a second, and the generator had kept up.
fn valid() -> Record {
    let mut record = golden();
    record.envelope.cut = None;
    record.experiment.load.kind = LoadKind::Sessions;
    record.experiment.load.rate = Some(2000.0);
    let run = &mut record.runs[0];
    run.offered_rate = Some(2000.0);
    run.verdict = Verdict::valid();
    run.findings.truncate(1);
    run.totals.failures = Default::default();
    run.totals.failure_samples.clear();
    run.totals.times = [
        (times::RESPONSE_INTENDED, 900, 12),
        (times::RESPONSE_ACTUAL, 880, 11),
        (times::SCHEDULE_LAG, 3, 1),
        (times::name(Moment::Connect, false), 60, 1),
        (times::name(Moment::Handshake, false), 600, 4),
        ("zero_rtt_refused", 100, 1), // a name of a later program
    ]
    .map(|(name, least, step)| (name.to_owned(), spread(least, step)))
    .into_iter()
    .collect();
    record
}

/// Ten thousand durations from `least` microseconds on, the longer the rarer.
fn spread(least: u64, step: u64) -> Histogram {
    let mut histogram = Histogram::default();
    (1..=10_000).for_each(|n| histogram.record(Duration::from_micros(least + step * (10_000 / n))));
    histogram
}

#[test]
fn a_bracket_is_an_answer() {
    let mut record = valid();
    let note = "kept at 50/s, broken at 150/s; the time was up before more was known (--budget)";
    let bracket = Found { rate_low: Some(50.0), rate_high: Some(150.0), ..found("avg<1s", None, Some(note)) };
    record.found = vec![bracket];
    let shown = plain(&record);
    assert!(shown.contains("avg<1s: between 50/s and 150/s; kept at 50/s, broken at 150/s;"), "{shown}");
    assert!(!shown.contains("no rate"), "{shown}");
}

#[test]
fn a_rule_that_no_trial_broke_has_a_rate_all_the_same() {
    let mut record = valid();
    let at_least = Found { rate_low: Some(200.0), ..found("avg<1s", None, Some("never exceeded")) };
    let below = Found { rate_high: Some(20.0), ..found("avg<1us", None, Some("broken at 20/s already")) };
    record.found = vec![at_least, below];
    let shown = plain(&record);
    assert!(shown.contains("avg<1s: at least 200/s; never exceeded"), "{shown}");
    assert!(shown.contains("avg<1us: below 20/s; broken"), "{shown}");
}

fn found(rule: &str, rate: Option<f64>, note: Option<&str>) -> Found {
    let (rate_low, rate_high) = (rate.map(|rate| rate * 0.975), rate.map(|rate| rate * 1.025));
    Found { rule: rule.to_owned(), rate, rate_low, rate_high, note: note.map(str::to_owned) }
}

fn trial(run: &Run, rate: f64, valid: bool) -> Run {
    let verdict =
        if valid { Verdict::valid() } else { Verdict::inconclusive("client-bound: core 1 was 93 % busy") };
    let mut run = Run { label: format!("{rate:.0}/s"), offered_rate: Some(rate), verdict, ..run.clone() };
    run.totals.times.retain(|name, _| name == times::RESPONSE_INTENDED);
    run
}

fn plain(record: &Record) -> String {
    text::render(record, Style::default())
}

/// Holds a report to the one that was kept.
fn hold(name: &str, shown: &str) {
    let file = if name.contains('.') { name.to_owned() } else { format!("{name}.txt") };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(file);
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, shown).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == shown,
        "{name} is out of date; look at the difference, then run `UPDATE_SNAPSHOTS=1 cargo test -p courser-report`\n\
         --- now:\n{shown}\n--- kept:\n{kept}"
    );
}
