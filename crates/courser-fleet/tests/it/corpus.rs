//! What fuzzing has found, run again. Every input once, and any bytes at all.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use crate::exercise;

#[test]
fn the_fleet_message_corpus_holds() {
    run("fleet_message", exercise::fleet_message);
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
