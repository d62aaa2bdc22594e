//! `courser check`: everything that `serve` would refuse, without serving.

use std::process::ExitCode;

use clap::ArgMatches;

use crate::exit::Failure;
use crate::ready;

/// Checks settings, and the files and folders that they name.
pub(crate) fn check(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let ready = ready::read(flags)?;
    println!(
        "ok: listeners: {}, certificates: {}{}",
        ready.config.listeners.len(),
        ready.certificates.len(),
        if ready.fleet.is_some() { ", fleet keys" } else { "" }
    );
    Ok(ExitCode::SUCCESS)
}
