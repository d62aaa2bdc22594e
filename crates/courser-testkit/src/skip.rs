//! Prints that a machine lacks what a test needs. May not go through `print!`: the test harness holds back what a
//! test that passes has printed, and so would a skip never be seen.

use std::fmt::Display;
use std::io::Write;
use std::thread;

/// Set to 1 where everything is installed, as in continuous integration: then a skip is a failure.
const NO_SKIPS: &str = "COURSER_NO_SKIPS";

/// What a skip begins with.
const SKIPPED: &str = "skipped: ";

/// Prints on the terminal that the calling test ends here, and why.
///
/// # Panics
/// When `COURSER_NO_SKIPS` is 1.
#[track_caller]
pub fn skip(why: impl Display) {
    leave_out(&why);
    assert!(std::env::var_os(NO_SKIPS).is_none_or(|value| value != "1"), "{why}: and {NO_SKIPS} is 1");
}

/// As [`skip`], for what may be missing on any machine: never a failure.
pub fn leave_out(why: impl Display) {
    let thread = thread::current();
    terminal(&format!("{SKIPPED}{why} ({})", thread.name().unwrap_or("in a thread")));
}

/// Prints what a test printed that was run by another one: its skips on the terminal, all else for the harness.
pub(crate) fn forward(printed: &str) {
    for line in printed.lines() {
        if line.starts_with(SKIPPED) { terminal(line) } else { println!("{line}") }
    }
}

fn terminal(line: &str) {
    // A standard error may be closed.
    let _ = writeln!(std::io::stderr(), "{line}");
}
