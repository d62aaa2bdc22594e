//! `courser`, the terminator: command line, assembly of the parts, signals, exit codes.
//!
//! It turns settings into generations, listening sockets, services and workers, and waits. What happens to a connection is in
//! `courser-proxy`.

mod cli;
mod exit;

mod cmd;

mod acme;
mod admin;
mod authorities;
mod backends;
mod capacity;
mod certificates;
mod control;
mod expiry;
mod exposure;
mod file_error;
mod findings;
mod fleet_keys;
mod generation;
mod hardening;
mod host_keys;
mod input_file;
mod log_files;
mod loss_report;
mod low_priority;
mod on_every_cpu;
mod pools;
mod prepared;
mod privileges;
mod process;
mod readiness;
mod recent;
mod reload;
mod revoked;
mod run;
mod scrape;
mod secret_file;
mod served;
mod service;
mod session_file;
mod sharing;
mod sockets;
mod stamp;
mod status;
mod status_source;
mod succeed;
mod supervisor;
#[cfg(feature = "top")]
mod top;
mod validity;

use std::process::ExitCode;

use clap::ArgMatches;
use courser_proxy::supervision::catch_panic;
use courser_telemetry::event;
use exit::Failure;

/// Counted with callgrind, a connection takes 17,000 instructions fewer with mimalloc than with glibc's allocator, of
/// about 1.07 million; an idle one 0.7 KiB more. docs/performance.md has the comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let result = catch_panic(|| perform(&matches))
        .unwrap_or_else(|panic| Err(Failure::Runtime(format!("the main thread has panicked: {panic}"))));
    let code = result.unwrap_or_else(Failure::report);
    event::finish(run::LAST_LINES);
    code
}

fn perform(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some(("serve", flags)) => cmd::serve::serve(flags),
        Some(("check", flags)) => cmd::check::check(flags),
        Some(("harden", flags)) => cmd::harden::harden(flags),
        Some(("reload", flags)) => cmd::reload::reload(flags),
        Some(("upgrade", flags)) => cmd::upgrade::upgrade(flags),
        Some(("status", flags)) => cmd::fleet::status(flags),
        #[cfg(feature = "top")]
        Some(("top", flags)) => cmd::top::top(flags),
        Some(("fleet", flags)) => cmd::fleet::fleet(flags),
        Some(("backend", flags)) => cmd::backend::backend(flags),
        Some(("acme", flags)) => cmd::acme::acme(flags),
        Some(("import", flags)) => cmd::import::import(flags),
        Some(("config", _)) => cmd::pages::defaults(),
        Some(("man", _)) => cmd::pages::man(),
        Some(("completions", flags)) => cmd::pages::completions(flags),
        _ => unreachable!("clap demands a known subcommand"),
    }
}
