//! What fuzzing has found, run again. Every input once, and any bytes at all.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::exercise;

#[test]
fn the_fleet_key_corpus_holds() {
    run("fleet_key", exercise::fleet_key);
}

#[test]
fn the_fleet_state_corpus_holds() {
    run("fleet_state", exercise::fleet_state);
}

#[test]
fn the_vault_corpus_holds() {
    run("vault", exercise::vault);
}

fn run(target: &str, exercise: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        exercise(&fs::read(path).unwrap());
        files += 1;
    }
    assert!(files > 5, "{target} has {files} inputs");
}

/// Lines that are nearly right: names as they are, any values.
fn lines() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "format",
        "fleet",
        "epoch-seconds",
        "origin",
        "secret",
        "epoch",
        "past",
        "previous-message-secret",
    ]);
    let value = prop_oneof![
        Just("courser-fleet-key-1".to_owned()),
        Just("courser-fleet-state-1".to_owned()),
        any::<u64>().prop_map(|number| number.to_string()),
        (60_u64..604_800).prop_map(|number| number.to_string()),
        "[0-9a-f]{16}|[0-9a-f]{64}|[0-9]{1,3} [0-9a-f]{96} [0-9a-f]{96}",
        "\\PC{0,20}",
    ];
    prop::collection::vec((name, value), 0..12)
        .prop_map(|lines| lines.iter().map(|(name, value)| format!("{name} = {value}\n")).collect())
}

proptest! {
    #[test]
    fn texts_that_are_nearly_right_hold(text in lines()) {
        exercise::fleet_key(text.as_bytes());
        exercise::fleet_state(text.as_bytes());
    }

    #[test]
    fn any_bytes_hold(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise::fleet_key(&bytes);
        exercise::fleet_state(&bytes);
        exercise::vault(&bytes);
    }
}
