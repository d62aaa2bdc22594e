//! `courser check`: everything that `serve` would refuse, without serving.

use std::process::ExitCode;

use clap::ArgMatches;

use crate::acme;
use crate::certificates::Proof;
use crate::cmd::reload;
use crate::control;
use crate::exit::Failure;
use crate::prepared::prepare;

/// Checks settings, and the files and folders that they name.
pub(crate) fn check(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let prepared = prepare(flags, None, Proof::Now)?;
    println!(
        "ok: listeners: {}, certificates: {}{}",
        prepared.inputs.config.listeners.len(),
        prepared.inputs.certificates.len(),
        if prepared.process.fleet.is_some() { ", fleet keys" } else { "" }
    );
    if let Some(ordered) = acme::describe(&prepared.inputs.config) {
        println!("{ordered}");
    }
    if !flags.get_flag("against-running") {
        return Ok(ExitCode::SUCCESS);
    }
    let named = prepared.inputs.config.process.control.as_ref().map(|control| control.value.clone());
    reload::compare(&named.unwrap_or_else(control::default_path))
}
