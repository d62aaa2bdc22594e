//! `docs/published-relay.md`, typed as it stands: its commands run, and print what it says.

use std::path::Path;
use std::process::Command;

use courser_testkit::network::enter_namespace;
use courser_testkit::{Folder, require};

use crate::stage::{content, run};

#[test]
fn the_page_of_the_published_relay_runs_as_it_stands() {
    let tools = ["bash", "openssl", "python3", "curl", "haproxy"];
    if tools.into_iter().any(|tool| require(tool).is_none()) {
        return;
    }
    // Its ports are those of the page.
    if !enter_namespace("published_relay::the_page_of_the_published_relay_runs_as_it_stands") {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/published-relay.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (commands, said) = (blocks(&page, "```sh\n"), blocks(&page, "```\n"));
    let folder = Folder::new();
    let script = folder.write("page.sh", format!("set -euo pipefail\n{}", commands.concat()));
    let program = Path::new(env!("CARGO_BIN_EXE_courser")).parent().unwrap().display().to_string();
    let path = format!("{program}:{}:/usr/sbin", std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    let printed = content(run(bash.arg(script).current_dir(folder.path()).env("PATH", path)));
    let printed: Vec<&str> = printed.lines().map(str::trim).collect();
    let said: Vec<&str> = said.iter().flat_map(|block| block.lines()).collect();
    assert_eq!(printed, said);
}

/// The blocks of code that begin with this line.
fn blocks(page: &str, fence: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: String =
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            if format!("{line}\n") == fence {
                found.push(block);
            }
        }
    }
    found
}
