//! The schema that others read records by: made from the types, so that the words are theirs, and kept beside them.

use std::path::Path;
use std::{env, fs};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::format::{FORMAT, LAB_FORMAT, LAB_VERSION, VERSION};
use crate::lab::Lab;
use crate::record::Record;

/// Set it to 1 to write the schema anew.
const UPDATE: &str = "UPDATE_SNAPSHOTS";

#[test]
fn the_committed_schema_is_that_of_the_types() {
    check("record-v2", &schema::<Record>("A record of courser-bench", FORMAT, VERSION));
}

#[test]
fn the_committed_schema_of_suites_is_that_of_the_types() {
    check("lab-v3", &schema::<Lab>("A suite's record of courser-bench", LAB_FORMAT, LAB_VERSION));
}

fn check(name: &str, schema: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{name}.schema.json"));
    let made = format!("{schema:#}\n");
    if env::var_os(UPDATE).is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept == made, "look at what changes, then run `{UPDATE}=1 cargo test -p courser-record`: {made}");
}

/// What a reader takes: optional fields may be missing, and further ones are allowed.
fn schema<T: JsonSchema>(title: &str, format: &str, version: u32) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = json!(title);
    schema["properties"]["format"]["const"] = json!(format);
    schema["properties"]["version"]["const"] = json!(version);
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
