//! What is read in clients' certificates: OpenSSL made those of the corpus.

mod exercise;

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn the_common_name_is_the_first_and_without_control_characters() {
    let names = [
        ("leaf-ec", Some("alice")),
        ("leaf-rsa", Some("bob")),
        ("two-names", Some("first")),
        ("utf8", Some("Zoë Ω")),
        ("no-name", None),
        ("control", None),
        ("cut", None),
    ];
    for (file, name) in names {
        let der = fs::read(corpus().join(file).with_extension("bin")).expect("it is committed");
        assert_eq!(exercise::client_certificate(&der).as_deref(), name, "{file}");
    }
}

/// Each byte of each certificate set to the values that lengths and tags go wrong by.
#[test]
fn a_certificate_with_a_wrong_byte_breaks_nothing() {
    for file in fs::read_dir(corpus()).expect("the corpus is committed") {
        let whole = fs::read(file.expect("a file").path()).expect("readable");
        for at in 0..whole.len() {
            for wrong in [0, 0x7f, 0x80, 0xff, whole[at] ^ 1] {
                let mut der = whole.clone();
                der[at] = wrong;
                exercise::client_certificate(&der);
            }
            exercise::client_certificate(&whole[..at]);
        }
    }
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/client_certificate")
}
