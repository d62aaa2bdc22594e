//! `courser serve`.

use std::io;
use std::process::ExitCode;

use clap::ArgMatches;
use courser_proxy::supervision::log_panics;
use courser_telemetry::event;

use courser_net::limits;

use crate::exit::Failure;
use crate::ready::{self, Ready};
use crate::supervisor::Supervisor;
use crate::{assemble, hardening, privileges, run};

/// Serves until it is told to stop.
pub(crate) fn serve(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let Ready { config, certificates, fleet, prepared, successor } = ready::read(flags)?;
    limits::use_small_pages();
    hardening::lock_memory();
    let supervisor = Supervisor::default();
    // From here on it is a service: it does not wait for who reads what it says.
    supervisor.spawn("events", event::queue(assemble::unbuffered(io::stderr())?))?;
    log_panics();
    if let Some(fleet) = &fleet {
        // What it writes has to be the new user's from the beginning.
        successor
            .as_ref()
            .map_or_else(|| fleet.begin(), |user| privileges::as_account(user, || fleet.begin())?)?;
    }
    // Before the first socket is announced: whoever has read that may send a signal.
    let signals = run::signals()?;
    let assembly =
        assemble::assemble(&config, &certificates, fleet.as_ref(), prepared, supervisor.threads())?;
    privileges::give_up(&config, successor.as_ref())?;
    run::run(assembly, signals, supervisor)
}
