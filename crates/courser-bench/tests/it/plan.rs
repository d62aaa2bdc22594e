//! `plan`: from a sentence to cores, through real runs.

use std::path::Path;
use std::process::Command;

use courser_testkit::{Folder, skip};
use serde_json::Value;

use crate::support::finished;

/// Times on a busy machine say little; that the question is understood, measured and answered is another matter.
#[test]
fn a_question_is_answered_and_the_next_one_from_the_same_model() {
    if !Path::new(env!("CARGO_BIN_EXE_courser-bench")).with_file_name("courser").exists() {
        skip("courser, which is planned for, is not built (cargo build -p courser)");
        return;
    }
    let folder = Folder::new();
    let model = folder.path().join("model.json");
    let model = model.to_str().unwrap();
    let question = "cores for 500 new/s, 2000 resumed/s, 4 KB, RSA-2048";
    // Longer than other runs here may take.
    let mut command = Command::new(env!("CARGO_BIN_EXE_courser-bench"));
    let run = command
        .args(["plan", question, "--time", "400ms", "--rounds", "1", "--record", model, "--json"])
        .output()
        .unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    // 3 where the machine was too busy for the fit to predict anything.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{told}");
    let first: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(first["answer"]["cores"].as_f64().unwrap() > 0.0, "{first:#}");
    assert_eq!(first["checks"].as_array().unwrap().len(), 3);
    assert_eq!(told.matches(" of 19: ").count(), 19, "{told}");

    let again = finished(&["plan", question, "--model", model, "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["answer"], first["answer"], "the same model gives the same answer");
    let text = finished(&["plan", "100 new/s, TLS 1.2, P-256", "--model", model]);
    assert!(text.stdout.contains(" cores ("), "{text:?}");
    assert!(text.stdout.contains("RSA-2048 instead of P-256"), "{text:?}");
}

#[test]
fn what_is_not_understood_costs_no_measuring() {
    let run = finished(&["plan", "5000 nwe/s"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert_eq!(run.stderr, "error: character 6: 5000 nwe/s: not understood; did you mean new/s?");
    let run = finished(&["plan", "5 new/s", "--model", "/nonexistent/model.json"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(run.stderr.contains("/nonexistent/model.json"), "{run:?}");
    let run = finished(&["plan", "5 new/s", "--target", "nobody"]);
    assert_eq!(run.status.code(), Some(2), "{run:?}");
}
