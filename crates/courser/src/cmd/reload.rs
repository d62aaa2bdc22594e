//! `courser reload`: has the running program read its files again, and waits for the outcome.

use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;
use courser_telemetry::event;

use crate::cmd::fleet::{cannot_query, control_path};
use crate::control;
use crate::exit::Failure;
use crate::reload::Outcome;

pub(crate) fn reload(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let request = if flags.get_flag("dry-run") { "reload check" } else { "reload" };
    let (line, outcome) = ask(&control_path(flags), request)?;
    if flags.get_flag("json") {
        println!("{line}");
    } else {
        print(&outcome, flags.get_flag("dry-run"));
    }
    Ok(ExitCode::from(outcome.refusal.map_or(0, |refusal| refusal.exit_code)))
}

/// What a reload would do to the program that listens at `socket`.
pub(crate) fn compare(socket: &Path) -> Result<ExitCode, Failure> {
    let (_, outcome) = ask(socket, "reload check")?;
    print(&outcome, true);
    Ok(ExitCode::from(outcome.refusal.map_or(0, |refusal| refusal.exit_code)))
}

fn ask(socket: &Path, request: &str) -> Result<(String, Outcome), Failure> {
    let mut answer = String::new();
    // Whoever is replaced while it is asked says so; its successor answers at the same socket. No more than a few follow
    // each other within the time of a question.
    for _ in 0..MOST_SUCCESSORS {
        let queried = control::query(socket, request, |line| {
            line.clone_into(&mut answer);
            false
        });
        queried.map_err(|error| cannot_query(socket, &error))?;
        if answer != control::SUPERSEDED {
            break;
        }
    }
    let outcome = serde_json::from_str(&answer).map_err(|_| {
        let why = if answer.is_empty() { "it has ended meanwhile" } else { &answer };
        Failure::runtime(format_args!("{} does not answer", socket.display()), why)
    })?;
    Ok((answer, outcome))
}

/// How often a question is asked again, as the process that was asked has been replaced.
const MOST_SUCCESSORS: usize = 10;

fn print(outcome: &Outcome, only_check: bool) {
    let Outcome { generation, changes, needs_restart, warnings, refusal } = outcome;
    event::print(warnings.clone());
    if let Some(refusal) = refusal {
        event::print(refusal.why.clone());
        event::print(format!("nothing is changed: generation {generation} serves on\n"));
        return;
    }
    for change in changes {
        println!("{change}");
    }
    for change in needs_restart {
        println!("{change} (takes `courser upgrade`)");
    }
    let count = changes.len();
    match only_check {
        true => println!("generation {generation} serves; a reload would change: {count}"),
        false => println!("generation {generation} serves; changed: {count}"),
    }
}
