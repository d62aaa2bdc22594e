//! `courser upgrade`: has another program take over from the running one, and waits for the outcome.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;
use courser_telemetry::event;

use super::fleet::{cannot_query, control_path};
use crate::control;
use crate::exit::Failure;
use crate::succeed::{Outcome, Refusal, Request, Success};

pub(crate) fn upgrade(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let socket = &control_path(flags);
    let program = flags.get_one::<PathBuf>("binary").map(std::path::absolute).transpose();
    let program = program.map_err(|error| Failure::runtime("cannot find the current folder", error))?;
    let silence = *flags.get_one::<Duration>("timeout").expect("it has a default");
    let (line, outcome) = ask(socket, &Request { program, silence_s: silence.as_secs().max(1) })?;
    let exit_code = match &outcome {
        Outcome::Done(_) => 0,
        Outcome::Refused(refusal) => refusal.exit_code,
    };
    if flags.get_flag("json") {
        println!("{line}");
    } else {
        print(&outcome);
    }
    Ok(ExitCode::from(exit_code))
}

fn ask(socket: &Path, request: &Request) -> Result<(String, Outcome), Failure> {
    let request =
        serde_json::to_string(request).map_err(|error| Failure::runtime("cannot name the program", error))?;
    let mut answer = String::new();
    let queried = control::query(socket, &format!("upgrade {request}"), |line| {
        line.clone_into(&mut answer);
        false
    });
    queried.map_err(|error| cannot_query(socket, &error))?;
    let outcome = serde_json::from_str(&answer).map_err(|_| {
        let why = if answer.is_empty() { "it has ended meanwhile" } else { &answer };
        Failure::runtime(format_args!("{} does not answer", socket.display()), why)
    })?;
    Ok((answer, outcome))
}

fn print(outcome: &Outcome) {
    match outcome {
        Outcome::Done(Success { pid, version, sockets, sessions, taken_ms }) => println!(
            "process {pid} (version {version}) serves; handed over in {taken_ms} ms: listening sockets: {sockets}, \
             sessions: {sessions}"
        ),
        Outcome::Refused(Refusal { why, .. }) => {
            let is_line = if why.ends_with('\n') { "" } else { "\n" };
            event::print(format!(
                "upgrade refused: {why}{is_line}nothing is changed: the running process serves on\n"
            ));
        }
    }
}
