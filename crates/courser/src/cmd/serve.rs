//! `courser serve`.

use std::process::ExitCode;

use clap::ArgMatches;
use courser_net::limits;
use courser_proxy::supervision::log_panics;
use courser_telemetry::event::{self, Level, log};

use crate::certificates::Proof;
use crate::exit::Failure;
use crate::log_files::LogOutputs;
use crate::prepared::prepare;
use crate::succeed::Succession;
use crate::supervisor::Supervisor;
use crate::{hardening, privileges, run};

/// What nobody would see before it happens.
const RESTART_COSTS: &str = "ticket keys are in memory alone: after a restart every client makes one full handshake; \
                             `state_folder` (`--state-folder`) keeps them";

/// Serves until a signal, or until another process takes over.
pub(crate) fn serve(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    // First of all: the process that has started this one waits.
    let mut succession = Succession::begin()?;
    let served = serve_as(flags, &mut succession);
    // As long as it has not taken over.
    served.inspect_err(|failure| succession.iter().for_each(|succession| succession.report(failure)))
}

fn serve_as(flags: &ArgMatches, succession: &mut Option<Succession>) -> Result<ExitCode, Failure> {
    let memory = succession.as_mut().and_then(|succession| succession.memory.as_mut());
    let prepared = prepare(flags, memory, Proof::WhenNeeded)?;
    limits::use_small_pages();
    hardening::lock_memory();
    let supervisor = Supervisor::default();
    // From here on it is a service: it does not wait for the reader of its event lines.
    let logs = LogOutputs::open(&prepared.inputs.config.process, prepared.successor.as_ref())?;
    supervisor.spawn("events", event::queue(logs.events))?;
    log_panics();
    // The files that it writes belong to the new user from the beginning.
    let (keys, successor) = (&prepared.process.keys, prepared.successor.as_ref());
    successor.map_or_else(|| keys.begin(), |user| privileges::as_account(user, || keys.begin())?)?;
    if prepared.inputs.config.sessions.tickets && !keys.outlive_process() {
        log(Level::Info, RESTART_COSTS);
    }
    run::run(flags, prepared, succession, supervisor, logs.connections, &logs.files)
}
