//! Records as earlier programs wrote them: a run against courser on a busy machine, and a part of a suite.
//! Every later program has to read them; the files stay as they are.

use std::path::Path;

use courser_record::lab::Era;
use courser_record::{Lab, LoadKind, Phase, Record, Share, times};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::sample::{self, Random};

fn golden() -> String {
    fixture("record-v1")
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_first_record_is_read_for_ever() {
    let record = Record::from_json(golden()).unwrap();
    assert_eq!(record.experiment.load.kind, LoadKind::Sessions);
    let run = &record.runs[0];
    assert_eq!((run.totals.connections.failed, run.totals.handshakes()), (1, 222));
    let response = &run.totals.times[times::RESPONSE_INTENDED];
    assert_eq!((response.count(), response.max().unwrap().as_nanos()), (221, 197_394_431));
    assert_eq!(run.seconds[1].response.unpack().count(), 121);
}

#[test]
fn the_first_record_of_a_suite_is_read_for_ever() {
    let lab = Lab::from_json(fixture("lab-v1")).unwrap();
    let case = lab.case("as-published").unwrap();
    assert_eq!((case.era, &*case.dimensions["engine"]), (Era::Historic, "openssl"));
    assert!(lab.targets.iter().all(|target| target.preset == "tuned"));
    assert_eq!(lab.suite.tables[0].filter["era"], ["modern"]);
    let block = &lab.cell("as-published", "haproxy").unwrap().blocks[0];
    assert!(block.host_noise.speed.is_some() && block.windows[0].inconclusive.is_some(), "{block:?}");
}

/// They had a type of their own, with other names, until version 3.
#[test]
fn seconds_of_a_suite_s_earlier_records_are_read() {
    let mut value: Value =
        serde_json::from_str(&Lab::from_json(fixture("lab-v1")).unwrap().to_json()).unwrap();
    value["version"] = 2.into();
    let cell =
        value["cells"].as_array().unwrap().iter().position(|cell| cell["blocks"][0].is_object()).unwrap();
    value["cells"][cell]["blocks"][0]["windows"][0]["seconds"] =
        json!([{"at": 3, "attempted": 9, "succeeded": 7, "failed": 2, "mean_us": 41.5}]);
    let lab = Lab::from_json(value.to_string()).unwrap();
    let second = &lab.cells[cell].blocks[0].windows[0].seconds[0];
    assert_eq!((second.second, second.attempted, second.succeeded, second.failed), (3, 9, 7, 2));
    assert_eq!((second.phase, second.response.mean_us), (Phase::Steady, Some(41.5)));
}

/// Names aside, which are replaced here as text.
#[test]
fn nothing_of_the_first_records_is_lost_when_they_are_written_again() {
    let run = Record::from_json(golden()).unwrap().to_json();
    let lab = Lab::from_json(fixture("lab-v1")).unwrap().to_json();
    for (name, version, written) in [("record-v1", 2, run), ("lab-v1", 3, lab)] {
        let mut earlier = fixture(name).replacen("\"version\": 1", &format!("\"version\": {version}"), 1);
        let targets = earlier.find("\"targets\"").unwrap_or(0);
        let cases = earlier.find("\"cases\"").unwrap_or(0);
        earlier.replace_range(targets..cases, &earlier[targets..cases].replace("\"lane\"", "\"preset\""));
        for (old, new) in [
            ("\"intervals\":", "\"seconds\":"),
            ("\"withheld\":", "\"inconclusive\":"),
            ("\"lane\":", "\"era\":"),
            ("\"stretches\":", "\"windows\":"),
            ("\"drift\":", "\"host_noise\":"),
            ("\"engine\": \"foreign\"", "\"engine\": \"openssl\""),
            (", engine foreign", ", engine openssl"),
        ] {
            earlier = earlier.replace(old, new);
        }
        let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(lost("", &parse(&earlier), &parse(&written)), Vec::<String>::new());
    }
}

/// Paths at which `written` does not have what `kept` has; more it may have.
fn lost(path: &str, kept: &Value, written: &Value) -> Vec<String> {
    match (kept, written) {
        (Value::Object(kept), Value::Object(written)) => kept
            .iter()
            .flat_map(|(name, value)| {
                lost(&format!("{path}.{name}"), value, written.get(name).unwrap_or(&Value::Null))
            })
            .collect(),
        (Value::Array(kept), Value::Array(written)) if kept.len() == written.len() => {
            kept.iter().zip(written).flat_map(|(kept, written)| lost(path, kept, written)).collect()
        }
        _ => (kept != written).then(|| path.to_owned()).into_iter().collect(),
    }
}

#[test]
fn fields_of_a_later_program_are_passed_over() {
    let mut value: Value = serde_json::from_str(&golden()).unwrap();
    value["weather"] = "rain".into();
    value["runs"][0]["totals"]["luck"] = 7.into();
    assert_eq!(Record::from_json(value.to_string()).unwrap(), Record::from_json(golden()).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whatever_is_in_a_record_comes_back(asked: u64, seed: u64, share: bool) {
        let share = share.then_some(Share { k: 1, n: 2 });
        let record = sample::record(asked, &mut Random(seed), share, 1_800_000_000_000_000);
        prop_assert_eq!(&Record::from_json(record.to_json()).unwrap(), &record);
    }
}
