//! `courser acme`: what a running program orders, and what it needs for that.

use std::process::ExitCode;

use clap::ArgMatches;
use courser_acme::{DryRun, SetStatus, TxtRecord};

use super::fleet::{answer, no_answer, print};
use crate::exit::Failure;
use crate::hardening;
use crate::status::acme;
use crate::validity::now;

pub(crate) fn acme(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    hardening::harden_fully()?;
    match flags.subcommand() {
        Some(("status", flags)) => {
            show(flags, "acme status", |line| Ok((acme::rows(&acme::read(line)?, now()), true)))
        }
        Some(("record", flags)) => {
            let name = flags.get_one::<String>("name").expect("clap demands it").to_ascii_lowercase();
            let format = |line: &str| Ok((acme::record(&acme::read::<TxtRecord>(line)?), true));
            show(flags, &format!("acme record {name}"), format)
        }
        Some(("order", flags)) if flags.get_flag("dry-run") => {
            let directory =
                flags.get_one::<String>("directory").map(|url| format!(" {url}")).unwrap_or_default();
            let format = |line: &str| {
                let tried: DryRun = acme::read(line)?;
                Ok((acme::tried(&tried), tried.failure.is_none()))
            };
            show(flags, &format!("acme dry-run{directory}"), format)
        }
        Some(("order", flags)) => {
            let format = |line: &str| {
                let set: SetStatus = acme::read(line)?;
                let is_there = set.not_after.is_some() && set.failures == 0;
                Ok((acme::rows(&set, now()), is_there))
            };
            show(flags, "acme order", format)
        }
        _ => unreachable!("clap demands a known subcommand"),
    }
}

/// Sends a request, and prints each line of its answer as it is (`--json`) or as `format` has it. Exit code 1 where that
/// says of one that it is not as it should be.
fn show(
    flags: &ArgMatches,
    request: &str,
    format: impl Fn(&str) -> Result<(String, bool), String>,
) -> Result<ExitCode, Failure> {
    let (lines, json) = (answer(flags, request)?, flags.get_flag("json"));
    if lines.is_empty() && !json {
        drop(print("no certificate is ordered here\n"));
    }
    let mut is_well = true;
    for line in &lines {
        let (text, is_good) = format(line).map_err(|why| no_answer(flags, why))?;
        is_well &= is_good;
        // A reader that closes early (`| head`) has seen enough.
        drop(print(&if json { format!("{line}\n") } else { text }));
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
