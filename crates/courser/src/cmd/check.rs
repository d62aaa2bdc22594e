//! `courser check`: everything that `serve` would refuse, without serving.

use std::process::ExitCode;

use clap::ArgMatches;

use crate::exit::{Failure, colour};
use crate::{certificates, fleet_keys, sharing};

/// Checks settings and certificates.
pub(crate) fn check(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let loaded = courser_config::from_matches(flags)?;
    eprint!("{}", loaded.warnings.render(colour()));
    let certificates = certificates::load(&loaded.config)?;
    eprint!("{}", certificates.warnings.render(colour()));
    let fleet = fleet_keys::load(&loaded.config)?;
    let prepared = sharing::prepare(&loaded.config)?;
    eprint!("{}", prepared.warnings.render(colour()));
    let listeners = loaded.config.listeners.len();
    println!(
        "ok: listeners: {listeners}, certificates: {}{}",
        certificates.len(),
        if fleet.is_some() { ", fleet keys" } else { "" }
    );
    Ok(ExitCode::SUCCESS)
}
