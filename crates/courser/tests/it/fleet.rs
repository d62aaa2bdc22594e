//! Sessions that survive: on other hosts, and over a restart.

mod churn;
mod hosts;
mod keys;
mod names;
mod restart;
mod segment;
mod store;
mod traffic;

use std::path::{Path, PathBuf};
use std::process::Command;

use courser_testkit::{Finished, Process};

/// The program with these arguments, run to its end.
fn courser(arguments: &[&str]) -> Finished {
    Process::start(Command::new(env!("CARGO_BIN_EXE_courser")).args(arguments)).finish()
}

/// A new fleet's key.
pub(crate) fn keygen(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let made = courser(&["fleet", "keygen", "--out", file.to_str().unwrap()]);
    assert!(made.status.success(), "{made:?}");
    file
}
