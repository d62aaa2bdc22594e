//! `courser fleet`: keys of a fleet, and its status.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::ArgMatches;
use courser_config::Problem;
use courser_net::account::Account;
use courser_session::{EpochLength, FleetKey, FleetState};
use serde_json::Value;

use crate::exit::Failure;
use crate::fleet_keys::{self, unix_now};
use crate::{control, hardening, secret_file, status};

pub(crate) fn fleet(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    hardening::harden_fully()?;
    match flags.subcommand() {
        Some(("keygen", flags)) => keygen(flags),
        Some(("export", flags)) => export(flags),
        Some(("status", flags)) => status(flags),
        Some(("watch", flags)) => query(flags, "fleet watch", status::message_line),
        _ => unreachable!("clap demands a known subcommand"),
    }
}

/// `courser status`, and `courser fleet status`, which prints the same.
pub(crate) fn status(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    query(flags, "fleet status", status::table)
}

/// Makes a key file. It never replaces one.
fn keygen(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let out = path(flags, "out");
    let epoch = *flags.get_one::<Duration>("epoch").expect("it has a default");
    let length = EpochLength::new(epoch).map_err(|error| Failure::runtime("cannot make a key", error))?;
    let key = FleetKey::generate(length, unix_now())
        .map_err(|error| Failure::runtime("cannot make a key", error))?;
    create(out, &key.to_text())?;
    eprintln!(
        "the key of fleet {} is in {}: copy it to every host, readable by the service alone",
        key.id(),
        out.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes the current state for a new host; keys of earlier epochs cannot be derived from it.
fn export(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let out = path(flags, "out");
    let state = match flags.get_one::<PathBuf>("state") {
        Some(folder) => fleet_keys::newest_state(folder)?,
        None => {
            let key = fleet_keys::read_key(path(flags, "key"))?;
            let lifetime = *flags.get_one::<Duration>("lifetime").expect("it has a default");
            FleetState::from_key(&key, lifetime, unix_now())
                .map_err(|error| Failure::runtime("cannot export", error))?
        }
    };
    create(out, &state.to_text())?;
    eprintln!(
        "the state of fleet {} in epoch {} is in {}: start the new host with --fleet-key {} --fleet-state DIR, then remove it",
        state.id(),
        state.epoch(),
        out.display(),
        out.display(),
    );
    Ok(ExitCode::SUCCESS)
}

fn create(out: &Path, text: &str) -> Result<(), Failure> {
    secret_file::create(out, text).map_err(|refusal| {
        let help = match refusal.is_missing() {
            true => Some("create its folder first: install -d -m 700 DIR".to_owned()),
            false => refusal.help(out, &Account::current()),
        };
        let help = help.map(|help| format!("; {help}")).unwrap_or_default();
        Failure::runtime(format_args!("cannot write {}", out.display()), format_args!("{refusal}{help}"))
    })
}

fn path<'a>(flags: &'a ArgMatches, name: &str) -> &'a Path {
    flags.get_one::<PathBuf>(name).expect("clap demands it, or it has a default")
}

/// Where the running program answers.
pub(crate) fn control_path(flags: &ArgMatches) -> PathBuf {
    flags.get_one::<PathBuf>("control").cloned().unwrap_or_else(control::default_path)
}

/// Queries a running program, and prints its answer as JSON (`--json`) or as `format` formats it.
fn query(
    flags: &ArgMatches,
    request: &str,
    format: impl Fn(&str) -> Result<String, String>,
) -> Result<ExitCode, Failure> {
    let (socket, json) = (&control_path(flags), flags.get_flag("json"));
    let mut failure = None;
    let queried = control::query(socket, request, |line| {
        let text = if json { Ok(format!("{line}\n")) } else { format(line) };
        match text {
            // A reader that closes early (`| head`) has seen enough.
            Ok(text) => print(&text).is_ok(),
            Err(why) => {
                failure = Some(why);
                false
            }
        }
    });
    queried.map_err(|error| cannot_query(socket, &error))?;
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(why) => Err(Failure::runtime(format_args!("{} does not answer", socket.display()), why)),
    }
}

/// The lines that a running program answers.
pub(crate) fn answer(flags: &ArgMatches, request: &str) -> Result<Vec<String>, Failure> {
    let socket = &control_path(flags);
    let mut lines = Vec::new();
    let queried = control::query(socket, request, |line| {
        lines.push(line.to_owned());
        true
    });
    queried.map_err(|error| cannot_query(socket, &error))?;
    match lines.first().and_then(|line| wrong_name(line)) {
        Some(wrong) => Err(Problem::nowhere(wrong).into()),
        None => Ok(lines),
    }
}

/// The error of an answer, if it is about the name: then the command line is wrong.
fn wrong_name(line: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(line).ok()?;
    (answer["kind"] == "name").then(|| answer["error"].as_str().map(str::to_owned))?
}

/// A line is none that can be read.
pub(crate) fn no_answer(flags: &ArgMatches, why: impl Display) -> Failure {
    Failure::runtime(format_args!("{} does not answer", control_path(flags).display()), why)
}

pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if out.is_terminal() { Ok(()) } else { out.flush() }
}

pub(crate) fn cannot_query(socket: &Path, error: &io::Error) -> Failure {
    let help = match error.kind() {
        io::ErrorKind::NotFound => {
            "; no program has opened it: name its `control` (`--control`) if it is elsewhere"
        }
        io::ErrorKind::ConnectionRefused => "; the program that listened there has ended",
        io::ErrorKind::PermissionDenied => "; only the user that runs the program may use it",
        _ => "",
    };
    Failure::runtime(format_args!("cannot query {}", socket.display()), format_args!("{error}{help}"))
}
