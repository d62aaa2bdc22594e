//! `courser serve`.

use std::process::ExitCode;

use clap::ArgMatches;

use crate::exit::{Failure, colour};
use crate::{assemble, certificates, fleet_keys, run, sharing};

/// Serves until it is told to stop.
pub(crate) fn serve(flags: &ArgMatches) -> Result<ExitCode, Failure> {
    let loaded = courser_config::from_matches(flags)?;
    eprint!("{}", loaded.warnings.render(colour()));
    let certificates = certificates::load(&loaded.config)?;
    eprint!("{}", certificates.warnings.render(colour()));
    let fleet = fleet_keys::load(&loaded.config)?;
    if let Some(fleet) = &fleet {
        fleet.begin()?;
    }
    let prepared = sharing::prepare(&loaded.config)?;
    eprint!("{}", prepared.warnings.render(colour()));
    // Before the first socket is announced: whoever has read that may send a signal.
    let signals = run::signals()?;
    let assembly = assemble::assemble(&loaded.config, &certificates, fleet, prepared)?;
    run::run(assembly, signals)
}
