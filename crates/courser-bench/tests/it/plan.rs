//! `plan`: from a sentence to cores, and from cores to what they carry, through real runs.

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
        .args(["plan", question, "--time", "150ms", "--rounds", "1", "--record", model, "--json"])
        .output()
        .unwrap();
    let told = String::from_utf8(run.stderr).unwrap();
    // 3 where the machine was too busy for the fit to predict anything.
    assert!(matches!(run.status.code(), Some(0 | 3)), "{told}");
    let first: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert!(first["answer"]["cores"].as_f64().unwrap() > 0.0, "{first:#}");
    let checks = first["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 3);
    let misfit = first["misfit"].as_f64().unwrap();
    for check in checks {
        let factor = check["measured_us"].as_f64().unwrap() / check["predicted_us"].as_f64().unwrap();
        assert!(check["foreseen"].is_boolean(), "{check:#}");
        assert!(
            factor <= misfit * 1.001 && factor >= 0.999 / misfit,
            "the interval holds {check:#}: {misfit}"
        );
    }
    assert_eq!(told.matches(" of 46, about ").count(), 46, "{told}");
    assert!(told.contains("1 of 46, about ") && told.contains(" s left: "), "{told}");
    let (low, high) = (&first["answer"]["low"], &first["answer"]["high"]);
    let spread = high.as_f64().unwrap() / low.as_f64().unwrap();
    assert!(spread >= misfit * misfit * 0.999, "the interval has the misfit of mixes not seen: {first:#}");
    assert!(!first["waits"].as_array().unwrap().is_empty(), "{first:#}");

    let again = finished(&["plan", question, "--model", model, "--json"]);
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["answer"], first["answer"], "the same model gives the same answer");
    let text = finished(&["plan", "100 new/s, TLS 1.2, P-256", "--model", model]);
    let answer = text.stdout.lines().next().unwrap();
    assert!(answer.contains(" cores ("), "{text:?}");
    assert_eq!(answer.contains("UNRELIABLE"), text.status.code() == Some(3), "{text:?}");
    assert!(text.stdout.contains("RSA-2048 instead of P-256"), "{text:?}");
    assert!(text.stdout.contains("How long responses take"), "{text:?}");
    assert!(text.stdout.contains("foreseen") && text.stdout.contains("off each other"), "{text:?}");

    let cores = first["answer"]["cores"].as_f64().unwrap();
    let reverse = format!("what do {cores} cores carry: 1 new, 4 resumed, 4 KB, RSA-2048");
    let reverse = finished(&["plan", &reverse, "--model", model, "--json"]);
    let reverse: Value = serde_json::from_str(&reverse.stdout).unwrap();
    let new = &reverse["answer"]["carried"]["new"];
    assert!((new["rate"].as_f64().unwrap() - 500.0).abs() < 1.0, "{reverse:#}");
    assert!(new["low"].as_f64().unwrap() < new["high"].as_f64().unwrap(), "{reverse:#}");
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

/// The mixes that an earlier model had not seen were up to 15 % off, and nothing said so.
#[test]
fn an_answer_that_misses_unseen_mixes_is_marked_on_its_first_line() {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/planner/model.json");
    let model = std::fs::read_to_string(model).unwrap();
    let mut model: Value = serde_json::from_str(&model).unwrap();
    // A quarter more than was measured, of mixes that only judge.
    for run in model["runs"].as_array_mut().unwrap().iter_mut().filter(|run| run["unseen"] == true) {
        run["user_us"] = (run["user_us"].as_u64().unwrap() * 3 / 2).into();
    }
    let folder = Folder::new();
    let path = folder.path().join("model.json");
    std::fs::write(&path, model.to_string()).unwrap();
    let run = finished(&["plan", "5000 new/s", "--model", path.to_str().unwrap()]);
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    let answer = run.stdout.lines().next().unwrap();
    assert!(answer.contains("cores (") && answer.contains("UNRELIABLE"), "{answer}");
}
