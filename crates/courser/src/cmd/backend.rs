//! `courser backend`: the servers of a running program, and what the operator says of them.

use std::process::ExitCode;

use clap::ArgMatches;
use courser_config::Problem;
use serde_json::Value;

use super::fleet::{cannot_query, control_path, print};
use crate::exit::Failure;
use crate::status::backends;
use crate::{control, hardening};

pub(crate) fn backend(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    hardening::harden_fully()?;
    let name = |flags: &ArgMatches| flags.get_one::<String>("name").cloned().expect("clap demands it");
    match flags.subcommand() {
        Some(("list", flags)) => query(flags, "backend list"),
        Some((verb @ ("drain" | "enable"), flags)) => {
            query(flags, &format!("backend {verb} {}", name(flags)))
        }
        Some(("weight", flags)) => {
            let percent = flags.get_one::<u16>("percent").expect("clap demands it");
            query(flags, &format!("backend weight {percent} {}", name(flags)))
        }
        _ => unreachable!("clap demands a known subcommand"),
    }
}

/// Sends a request, and prints the servers of its answer as JSON lines (`--json`) or as a table.
fn query(flags: &ArgMatches, request: &str) -> Result<ExitCode, Failure> {
    let (socket, json) = (&control_path(flags), flags.get_flag("json"));
    let mut lines = Vec::new();
    let queried = control::query(socket, request, |line| {
        lines.push(line.to_owned());
        true
    });
    queried.map_err(|error| cannot_query(socket, &error))?;
    if let Some(unknown) = lines.first().and_then(|line| unknown_name(line)) {
        return Err(Problem::nowhere(unknown).into());
    }
    let servers = lines.iter().map(|line| backends::server(line)).collect::<Result<Vec<_>, _>>();
    let wrong = |why| Failure::runtime(format_args!("{} does not answer", socket.display()), why);
    let servers = servers.map_err(wrong)?;
    let text = match (json, servers.is_empty()) {
        (true, _) => lines.iter().map(|line| format!("{line}\n")).collect(),
        (false, true) => "no servers: their names have no address yet\n".to_owned(),
        (false, false) => backends::table(&servers),
    };
    // A reader that closes early (`| head`) has seen enough.
    drop(print(&text));
    Ok(ExitCode::SUCCESS)
}

/// The error of an answer, if it is about the name: then the command line is wrong.
fn unknown_name(line: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(line).ok()?;
    (answer["kind"] == "name").then(|| answer["error"].as_str().map(str::to_owned))?
}
