//! The schema that others read records by: made from the types, so that the words are theirs, and kept beside them.

use std::path::Path;
use std::{env, fs};

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::record::{FORMAT, Record, VERSION};

/// Set it to 1 to write the schema anew.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

#[test]
fn the_committed_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/record-v1.schema.json");
    let made = format!("{:#}\n", schema());
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept == made, "look at what changes, then run `{UPDATE}=1 cargo test -p courser-record`: {made}");
}

/// What a reader takes: optional fields may be missing, and further ones are allowed.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Record>().to_value();
    schema["title"] = json!("A record of courser-bench");
    schema["properties"]["format"]["const"] = json!(FORMAT);
    schema["properties"]["version"]["const"] = json!(VERSION);
    plain(&mut schema);
    schema
}

/// Formats such as `uint64` are the generator's own, and links lead nowhere from here.
fn plain(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.get("type").is_some_and(|kind| kind != "object") {
                fields.remove("format");
            }
            fields.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        Value::String(text) => *text = text.replace("[`", "`").replace("`]", "`"),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
