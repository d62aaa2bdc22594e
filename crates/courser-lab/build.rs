//! The commit that the program is built from, for its records: `git describe --always --dirty`.
//!
//! In debug builds there is none: it would have to be looked up, and this crate be built, after every change to any file.
//! Whoever builds from an archive sets COURSER_COMMIT.

use std::env;
use std::process::Command;

const VARIABLE: &str = "COURSER_COMMIT";

fn main() {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    println!("cargo::rerun-if-changed=build.rs");
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if env::var_os(VARIABLE).is_some() || !is_release {
        return;
    }
    let Some(commit) = git(&["describe", "--always", "--dirty"]) else { return };
    println!("cargo::rustc-env={VARIABLE}={commit}");
    // A folder stands for all files in it, so that `-dirty` is true of what was built.
    for path in [
        "../../crates",
        "../../targets",
        "../../suites",
        "../../record/published",
        "../../Cargo.toml",
        "../../Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--path-format=absolute", "--git-path", name]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git prints; none without git, or outside of a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|text| !text.is_empty())
}
