//! What earlier versions of the formats called things, and what they are called today. The only place that knows the
//! earlier names: a record of an earlier version is renamed here, before anything else looks at it.

use serde_json::{Map, Value, json};

use crate::format::LAB_FORMAT;

/// The objects in question (keys from the document down; lists on the way are walked through), the key that they had
/// and the key that they have.
type Key = (&'static [&'static str], &'static str, &'static str);

/// Keys in records of runs.
const RUN_KEYS: [Key; 2] =
    [(&["runs"], "intervals", "seconds"), (&["runs", "verdict"], "withheld", "inconclusive")];

/// Keys in records of suites, outer ones first: later paths name them as they are then.
const LAB_KEYS: [Key; 7] = [
    (&["targets"], "lane", "preset"),
    (&["cases"], "lane", "era"),
    (&["suite", "tables", "where"], "lane", "era"),
    (&["suite", "charts", "where"], "lane", "era"),
    (&["cells", "blocks"], "stretches", "windows"),
    (&["cells", "blocks"], "drift", "host_noise"),
    (&["cells", "blocks", "windows"], "withheld", "inconclusive"),
];

/// Objects, a key in them, and what its text, or a part of it between commas, was and is.
const VALUES: [(&[&str], &str, &str, &str); 6] = [
    (&["experiment", "tls"], "engine", "foreign", "openssl"),
    (&["cases", "dimensions"], "engine", "foreign", "openssl"),
    (&["cases"], "title", "engine foreign", "engine openssl"),
    (&["cases"], "asked", "engine foreign", "engine openssl"),
    (&["suite", "tables"], "rows", "lane", "era"),
    (&["suite", "tables"], "columns", "lane", "era"),
];

/// Counts of a second that suites' records have since version 3.
const NEW_COUNTS: [&str; 7] =
    ["start_unix_us", "requests", "full", "resumed", "in_flight", "received_bytes", "sent_bytes"];

/// Gives a document of an `earlier` version the names of the present `version`.
pub(crate) fn rename(document: &mut Value, format: &str, earlier: u32, version: u32) {
    if earlier == 1 {
        rename_first(document, if format == LAB_FORMAT { &LAB_KEYS } else { &RUN_KEYS });
    }
    if format == LAB_FORMAT {
        each(document, &["cells", "blocks", "windows", "seconds"], &mut widen);
    }
    each(document, &[], &mut |object| {
        object.insert("version".to_owned(), version.into());
    });
}

/// A second of a suite had a type of its own before version 3.
fn widen(second: &mut Map<String, Value>) {
    let number = second.remove("at").unwrap_or_default();
    let mean = second.remove("mean_us").unwrap_or_default();
    second.insert("second".to_owned(), number);
    second.insert("phase".to_owned(), "steady".into());
    let count = second.get("succeeded").cloned().unwrap_or_default();
    second.insert("response".to_owned(), json!({"count": count, "mean_us": mean}));
    second.extend(NEW_COUNTS.map(|name| (name.to_owned(), 0.into())));
}

fn rename_first(document: &mut Value, keys: &[Key]) {
    for (path, old, new) in keys {
        each(document, path, &mut |object| {
            if let Some(value) = object.remove(*old) {
                object.insert((*new).to_owned(), value);
            }
        });
    }
    for (path, key, old, new) in VALUES {
        each(document, path, &mut |object| {
            if let Some(value) = object.get_mut(key) {
                replace(value, old, new);
            }
        });
    }
}

/// Replaces a text, or each of a list.
fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) => {
            let parts = text.split(", ").map(|part| if part == old { new } else { part });
            *text = parts.collect::<Vec<_>>().join(", ");
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, old, new)),
        _ => {}
    }
}

/// Calls `change` with every object at `path`.
fn each(value: &mut Value, path: &[&str], change: &mut impl FnMut(&mut Map<String, Value>)) {
    match (value, path) {
        (Value::Array(values), _) => values.iter_mut().for_each(|value| each(value, path, change)),
        (Value::Object(object), []) => change(object),
        (Value::Object(object), [first, rest @ ..]) => {
            if let Some(value) = object.get_mut(*first) {
                each(value, rest, change);
            }
        }
        _ => {}
    }
}
