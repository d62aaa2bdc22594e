//! A test that skips is seen to, and fails where nothing may be skipped.

use std::process::Command;

use courser_testkit::{Finished, Process, leave_out, skip};

/// Set in the copy of this program whose skips are looked at.
const TRIAL: &str = "COURSER_TEST_SKIPS";

#[test]
fn a_skip_is_seen_although_the_harness_holds_back_what_a_test_prints() {
    let run = trial("skips", "0");
    assert!(run.status.success(), "{run:?}");
    assert!(run.stderr.contains("skipped: nothing is installed (skip::skipping)"), "{run:?}");
}

#[test]
fn a_skip_fails_where_nothing_may_be_skipped() {
    let run = trial("skips", "1");
    assert!(!run.status.success() && run.stdout.contains("nothing is installed"), "{run:?}");
}

#[test]
fn what_may_be_missing_anywhere_is_left_out_everywhere() {
    let run = trial("leaves out", "1");
    assert!(run.status.success() && run.stderr.contains("skipped: no such engine"), "{run:?}");
}

/// Runs the test below as the harness runs every test.
fn trial(what: &str, no_skips: &str) -> Finished {
    let mut command = Command::new(std::env::current_exe().expect("a test has a program"));
    let command = command.args(["--exact", "skip::skipping"]).env(TRIAL, what);
    // The name of a test is that of its thread, and alone it would have none.
    Process::start(command.args(["--test-threads", "2"]).env("COURSER_NO_SKIPS", no_skips)).finish()
}

/// Runs by itself too, and does nothing then.
#[test]
fn skipping() {
    match std::env::var(TRIAL).as_deref() {
        Ok("skips") => skip("nothing is installed"),
        Ok(_) => leave_out("no such engine"),
        Err(_) => {}
    }
}
