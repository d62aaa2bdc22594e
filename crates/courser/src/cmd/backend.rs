//! `courser backend`: the servers of a running program, and what the operator says of them.

use std::process::ExitCode;

use clap::ArgMatches;

use super::fleet::{answer, no_answer, print};
use crate::exit::Failure;
use crate::hardening;
use crate::status::backends;

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
    let lines = answer(flags, request)?;
    let servers = lines.iter().map(|line| backends::server(line)).collect::<Result<Vec<_>, _>>();
    let servers = servers.map_err(|why| no_answer(flags, why))?;
    let text = match (flags.get_flag("json"), servers.is_empty()) {
        (true, _) => lines.iter().map(|line| format!("{line}\n")).collect(),
        (false, true) => "no servers: their names have no address yet\n".to_owned(),
        (false, false) => backends::table(&servers),
    };
    // A reader that closes early (`| head`) has seen enough.
    drop(print(&text));
    Ok(ExitCode::SUCCESS)
}
