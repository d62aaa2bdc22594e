//! What other people's JSON Schema validator says about records, with the schema that is committed.

use std::path::Path;
use std::process::Command;

use courser_record::lab::LAB_SCHEMA;
use courser_record::{Lab, Record, SCHEMA};
use courser_testkit::{Folder, require, skip};
use serde_json::Value;

use crate::sample::{self, Random};

#[test]
fn records_are_as_the_schema_says_down_to_the_last_field() {
    let records = (0..8).map(|seed| sample::record(seed, &mut Random(seed), None, 1_800_000_000_000_000));
    let texts: Vec<_> = records.map(|record| record.to_json()).collect();
    for complaints in complaints(&closed(SCHEMA), &texts) {
        assert_eq!(complaints, Vec::<String>::new());
    }
}

#[test]
fn earlier_records_are_as_the_schema_says_once_they_are_written_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let run = Record::from_json(std::fs::read(folder.join("record-v1.json")).unwrap()).unwrap().to_json();
    let lab = Lab::from_json(std::fs::read(folder.join("lab-v1.json")).unwrap()).unwrap().to_json();
    for complaints in complaints(SCHEMA, &[run]).into_iter().chain(complaints(LAB_SCHEMA, &[lab])) {
        assert_eq!(complaints, Vec::<String>::new());
    }
}

#[test]
fn what_is_no_record_is_not_as_the_schema_says() {
    let record = sample::record(1, &mut Random(1), None, 1_800_000_000_000_000).to_json();
    let with = |pointer: &str, value: Value| {
        let mut changed: Value = serde_json::from_str(&record).unwrap();
        *changed.pointer_mut(pointer).unwrap() = value;
        changed.to_string()
    };
    let bad = [
        with("/version", 3.into()),
        with("/format", "hyperfine".into()),
        with("/runs/0/totals/connections/failed", (-1).into()),
        with("/runs/0/totals/tickets_received", serde_json::json!({"many": 1})),
        with("/runs/0/seconds/0/phase", "lunch".into()),
        with("/experiment/load", Value::Null),
    ];
    for text in &bad {
        assert!(Record::from_json(text).is_err(), "the reader agrees");
    }
    for complaints in complaints(SCHEMA, &bad) {
        assert_eq!(complaints.len(), 1, "{complaints:?}");
    }
}

/// The schema without its leniency: what it does not name may not be there, and what it names has to be.
fn closed(schema: &str) -> String {
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    close(&mut schema);
    schema.to_string()
}

fn close(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                let names = properties.keys().cloned().map(Value::String).collect();
                fields.insert("required".into(), Value::Array(names));
                fields.insert("additionalProperties".into(), false.into());
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

/// What is wrong with each text, by Python's jsonschema; nothing at all, with the reason printed, where it is not
/// installed.
fn complaints(schema: &str, texts: &[String]) -> Vec<Vec<String>> {
    let Some(python) = require("python3") else { return Vec::new() };
    let folder = Folder::new();
    let schema = folder.write("schema.json", schema);
    let files = (0..).zip(texts).map(|(index, text): (u32, _)| folder.write(&format!("{index}.json"), text));
    let mut command = Command::new(python);
    command.arg("-c").arg(include_str!("judges/schema.py")).arg(schema).args(files);
    let output = command.output().unwrap();
    if output.status.code() == Some(77) {
        skip("python3 has no jsonschema (scripts/install.sh installs it)");
        return Vec::new();
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let complaints: Vec<Vec<String>> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(complaints.len(), texts.len());
    complaints
}
