//! `courser serve`.

use std::io;
use std::process::ExitCode;

use clap::ArgMatches;
use courser_net::limits;
use courser_proxy::supervision::log_panics;
use courser_telemetry::event;

use crate::exit::Failure;
use crate::prepared::prepare;
use crate::supervisor::Supervisor;
use crate::{hardening, privileges, run};

/// Serves until a signal.
pub(crate) fn serve(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let prepared = prepare(flags)?;
    limits::use_small_pages();
    hardening::lock_memory();
    let supervisor = Supervisor::default();
    // From here on it is a service: it does not wait for the reader of its event lines.
    supervisor.spawn("events", event::queue(run::unbuffered(io::stderr())?))?;
    log_panics();
    if let Some(fleet) = &prepared.process.fleet {
        // The files that it writes belong to the new user from the beginning.
        let successor = prepared.successor.as_ref();
        successor.map_or_else(|| fleet.begin(), |user| privileges::as_account(user, || fleet.begin())?)?;
    }
    run::run(flags, prepared, supervisor)
}
