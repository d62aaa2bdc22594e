//! What the process denies itself: core files, debuggers, new privileges, swap, and to its workers files and system calls.
//! docs/hardening.md has the threats.

use std::sync::Arc;

use courser_config::Process;
use courser_net::confinement::Confinement;
use courser_net::limits;
use courser_telemetry::event::{Level, log};

use crate::exit::Failure;

/// Hardens a process that has read its settings and not yet a key; no other thread may run. With `core_dumps` the limit of
/// core files stays as it was at the start.
pub(crate) fn harden(settings: &Process) -> Result<(), Failure> {
    if settings.core_dumps { limits::forbid_new_privileges().map_err(refused) } else { harden_fully() }
}

/// As [`harden`], for commands that have no settings and handle keys.
pub(crate) fn harden_fully() -> Result<(), Failure> {
    limits::forbid_core_dumps().and_then(|()| limits::forbid_new_privileges()).map_err(refused)
}

/// Locks memory, out of swap, where the limit allows it, and logs whether it is.
pub(crate) fn lock_memory() {
    match limits::lock_memory() {
        Ok(true) => {
            log(Level::Info, "memory is locked: it is never swapped out, and stays as large as it once was");
        }
        Ok(false) => log(
            Level::Info,
            "memory is not locked and may be swapped out with keys in it: MemorySwapMax=0 or LimitMEMLOCK=infinity \
             prevent that (systemd), or `ulimit -l unlimited`",
        ),
        Err(error) => log(Level::Warning, format_args!("memory cannot be locked: {error}")),
    }
}

/// The files and system calls that workers deny themselves, with a log line. Where the kernel lacks support, that is a
/// warning and no failure.
pub(crate) fn confinement(settings: &Process) -> Option<Arc<Confinement>> {
    if !settings.confine_workers {
        log(Level::Warning, "workers are not confined: `confine_workers` is off");
        return None;
    }
    let found = Confinement::find();
    let missing = found.missing();
    if missing.is_empty() {
        log(Level::Info, format_args!("workers are confined: {found}"));
    } else {
        log(Level::Warning, format_args!("workers are not fully confined: {}", missing.join(", ")));
    }
    Some(Arc::new(found))
}

fn refused(error: std::io::Error) -> Failure {
    Failure::runtime("cannot protect this process's memory", error)
}
