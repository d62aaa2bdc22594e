//! Generators that ran together, as one.

use std::collections::BTreeMap;

use courser_record::{MergeError, Phase, Record, Severity, Share, Verdict, merge, times};
use courser_stats::Histogram;

use crate::sample::{self, Random};

const START: u64 = 1_800_000_000_000_000;

/// Generator `k` of `n` of one experiment, `late_us` after the first, with head-room.
fn part(k: u32, n: u32, late_us: u64) -> Record {
    let mut record = sample::record(7, &mut Random(u64::from(k)), Some(Share { k, n }), START + late_us);
    let run = &mut record.runs[0];
    (run.offered_rate, run.verdict) = (Some(1000.0 / 3.0), Verdict::valid());
    record.envelope.cut = None;
    record
}

#[test]
fn counters_are_sums() {
    let (one, two) = (part(1, 2, 0), part(2, 2, 0));
    let merged = merge(vec![two.clone(), one.clone()]).unwrap();
    let totals = &merged.runs[0].totals;
    assert_eq!((totals.connections.attempted, totals.requests.failed, totals.sessions), (780, 20, 180));
    let completed = totals.completed.unwrap();
    assert_eq!((completed.transactions, completed.connections, completed.full), (702, 680, 160));
    assert_eq!(totals.failures.get(&"reset".to_owned()), 40);
    assert_eq!(
        totals.tickets_received.iter().map(|(n, count)| (*n, *count)).collect::<Vec<_>>(),
        [(0, 20), (2, 700)]
    );
    assert_eq!(totals.handshakes(), one.runs[0].totals.handshakes() + two.runs[0].totals.handshakes());
    assert_eq!(totals.negotiated.len(), 4, "handshakes that are alike are one row");
    assert_eq!(totals.failure_samples.len(), courser_record::FAILURE_SAMPLES);
    assert_eq!(merged.runs[0].offered_rate, Some(2000.0 / 3.0));
    assert_eq!(totals.window_us, 3_000_000);
    let wire = merged.runs[0].wire.as_ref().unwrap();
    assert_eq!((wire.full.handshakes, wire.requests.in_wire_bytes), (180, 720 * 1122));
}

/// A sum over generators of which one does not know is no sum.
#[test]
fn completions_that_one_generator_lacks_are_unknown() {
    let (mut one, two) = (part(1, 2, 0), part(2, 2, 0));
    one.runs[0].totals.completed = None;
    assert_eq!(merge(vec![one, two]).unwrap().runs[0].totals.completed, None);
}

/// As if one histogram had counted every time of both.
#[test]
fn histograms_lose_nothing() {
    let parts = [part(1, 2, 0), part(2, 2, 0)];
    let merged = merge(parts.to_vec()).unwrap();
    let buckets = |record: &Record, name: &str| sum([&record.runs[0].totals.times[name]]);
    for name in times::all() {
        let both = sum(parts.iter().map(|part| &part.runs[0].totals.times[name]));
        assert_eq!(buckets(&merged, name), both, "{name}");
    }
}

fn sum<'a>(histograms: impl IntoIterator<Item = &'a Histogram>) -> BTreeMap<u128, u64> {
    let mut sum = BTreeMap::new();
    for (value, count) in histograms.into_iter().flat_map(Histogram::buckets) {
        *sum.entry(value.as_nanos()).or_default() += count;
    }
    sum
}

#[test]
fn intervals_are_laid_by_the_wall_clock_and_not_by_their_number() {
    let merged = merge(vec![part(1, 2, 0), part(2, 2, 1_100_000)]).unwrap();
    let run = &merged.runs[0];
    let attempted: Vec<_> = run.seconds.iter().map(|interval| interval.attempted).collect();
    assert_eq!(attempted, [130, 260, 260, 260, 260, 260, 130]);
    let steady: Vec<_> = run
        .seconds
        .iter()
        .filter(|interval| interval.phase == Phase::Steady)
        .map(|interval| interval.second)
        .collect();
    assert_eq!(steady, [3, 4], "a second is steady when it is for both");
    assert_eq!(run.seconds[3].response.summary().count, 240);
    assert_eq!(run.seconds[3].start_unix_us, START + 3_000_000);
}

#[test]
fn windows_that_hardly_meet_are_a_warning() {
    let ids = |late_us| {
        let merged = merge(vec![part(1, 2, 0), part(2, 2, late_us)]).unwrap();
        assert_eq!(merged.runs[0].totals.window_us, 3_000_000 + late_us);
        merged.runs[0].findings.iter().map(|finding| finding.id.clone()).collect::<Vec<_>>()
    };
    assert!(!ids(50_000).contains(&"windows-apart".to_owned()));
    assert!(ids(2_000_000).contains(&"windows-apart".to_owned()));
}

#[test]
fn what_concerns_one_generator_keeps_its_name() {
    let (one, mut two) = (part(1, 2, 0), part(2, 2, 0));
    two.runs[0].verdict = Verdict::inconclusive("core 3 was 99 % busy");
    two.envelope.cut = Some("Ctrl-C".into());
    let merged = merge(vec![one, two]).unwrap();
    let run = &merged.runs[0];
    let label = Some("generator-2 (2/2)".to_owned());
    assert_eq!(run.generators.iter().filter(|generator| generator.source == label).count(), 1);
    assert_eq!(run.findings.iter().filter(|finding| finding.source == label).count(), 3);
    assert_eq!(run.verdict, Verdict::inconclusive("generator-2 (2/2): core 3 was 99 % busy"));
    assert_eq!(merged.envelope.cut.as_deref(), Some("generator-2 (2/2): Ctrl-C"));
    assert_eq!(
        merged.sources.iter().map(|source| source.envelope.machine.name.as_str()).collect::<Vec<_>>(),
        ["generator-1", "generator-2"]
    );
    assert_eq!((merged.experiment.load.share, run.generators.len()), (None, 2));
}

#[test]
fn the_servers_time_is_divided_by_the_connections_of_all() {
    let (one, mut two) = (part(1, 2, 0), part(2, 2, 0));
    two.runs[0].server = None;
    let merged = merge(vec![one, two]).unwrap();
    let server = merged.runs[0].server.as_ref().unwrap();
    assert_eq!(
        (server.connections, server.user_us_per_connection),
        (680, Some(server.user_us as f64 / 680.0))
    );
    assert!(merged.is_valid());
}

#[test]
fn a_missing_generator_makes_the_merged_run_inconclusive() {
    let merged = merge(vec![part(1, 3, 0), part(3, 3, 0)]).unwrap();
    let run = &merged.runs[0];
    assert_eq!(
        run.verdict.inconclusive.as_deref(),
        Some("1 of 3 generators' records are not here, the first one 2/3")
    );
    assert!(run.findings.iter().any(|f| f.id == "share-missing" && f.severity == Severity::Invalid));
}

#[test]
fn what_does_not_belong_together_is_refused_by_name() {
    let told = |records: Vec<Record>| merge(records).unwrap_err().to_string();
    let two = |change: fn(&mut Record)| {
        let mut other = part(2, 2, 0);
        change(&mut other);
        told(vec![part(1, 2, 0), other])
    };
    assert_eq!(
        two(|other| other.experiment.phases.steady_us += 1),
        "not the same experiment: experiment.phases.steady_us is 3000000 on generator-1 (1/2), and 3000001 on \
         generator-2 (2/2)"
    );
    assert!(
        two(|other| other.experiment.load.share = Some(Share { k: 2, n: 3 }))
            .contains("experiment.load.share.n is 2")
    );
    assert!(
        two(|other| other.experiment.load.share = Some(Share { k: 1, n: 2 }))
            .starts_with("two records of share 1/2")
    );
    assert!(
        two(|other| other.experiment.load.share = Some(Share { k: 3, n: 2 }))
            .starts_with("there is no share 3/2")
    );
    assert!(two(|other| other.experiment.load.share = None).contains("--share 1/2"));
    assert!(two(|other| other.runs.clear()).contains("runs is load on generator-1"));
    assert!(two(|other| other.runs[0].window = Default::default()).contains("has measured nothing"));
    assert_eq!(merge(vec![part(1, 2, 0)]), Err(MergeError::TooFew(1)));
    let merged = merge(vec![part(1, 2, 0), part(2, 2, 0)]).unwrap();
    assert!(told(vec![merged, part(2, 2, 0)]).contains("merge the generators' own records"));
}

#[test]
fn generators_that_ran_one_after_the_other_did_not_run_together() {
    let error = merge(vec![part(2, 2, 0), part(1, 2, 3_000_000)]).unwrap_err();
    assert!(
        error.to_string().starts_with("run load: generator-2 (2/2) had ended before generator-1 (1/2) began")
    );
}
