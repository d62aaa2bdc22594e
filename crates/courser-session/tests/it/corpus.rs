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
fn the_fleet_message_corpus_holds() {
    run("fleet_message", exercise::fleet_message);
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

/// Messages of any type with little in them, as a peer that is broken or hostile could send.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let content = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..100),
        prop::collection::vec(0_u8..3, 0..100),
        prop::collection::vec(Just(0xff_u8), 0..100),
    ];
    let message = (0_u8..13, content).prop_map(|(kind, content)| {
        let len = u16::try_from(content.len()).unwrap_or(u16::MAX);
        [&[kind][..], &len.to_be_bytes(), &content].concat()
    });
    prop::collection::vec(message, 0..20).prop_map(|messages| messages.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn messages_of_any_content_hold(bytes in messages()) {
        exercise::fleet_message(&bytes);
    }
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
