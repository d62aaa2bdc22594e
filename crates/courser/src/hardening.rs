//! What the process gives up by itself, before it has anything to lose: core files, debuggers, new rights.
//! docs/hardening.md says against what.

use courser_config::Process;
use courser_net::limits;

use crate::exit::Failure;

/// Hardens a process that has read its settings and not yet a key; no other thread may run. Whoever asks for core dumps
/// keeps the limit that the process was started with.
pub(crate) fn harden(settings: &Process) -> Result<(), Failure> {
    if settings.core_dumps { limits::forbid_new_privileges().map_err(refused) } else { harden_fully() }
}

/// As [`harden`], for commands that have no settings and handle keys.
pub(crate) fn harden_fully() -> Result<(), Failure> {
    limits::forbid_core_dumps().and_then(|()| limits::forbid_new_privileges()).map_err(refused)
}

fn refused(error: std::io::Error) -> Failure {
    Failure::runtime("cannot protect this process's memory", error)
}
