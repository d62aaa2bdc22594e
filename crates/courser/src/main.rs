//! `courser`, the terminator: command line, assembly of the parts, signals, exit codes.
//!
//! It turns settings into listening sockets, certificates and workers, and waits. What happens to a connection is in
//! `courser-proxy`.

mod cli;
mod exit;

mod cmd;

mod answers;
mod assemble;
mod authorities;
mod certificates;
mod control;
mod fleet_keys;
mod pools;
mod ready;
mod run;
mod secret_file;
mod session_file;
mod sharing;
mod status;

use std::process::ExitCode;

use exit::Failure;

/// Counted with callgrind, a connection takes 17,000 instructions fewer with mimalloc than with glibc's allocator, of
/// about 1.07 million; an idle one 0.7 KiB more. docs/performance.md has the comparison.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let matches = cli::command().get_matches();
    let result = match matches.subcommand() {
        Some(("serve", flags)) => cmd::serve::serve(flags),
        Some(("check", flags)) => cmd::check::check(flags),
        Some(("fleet", flags)) => cmd::fleet::fleet(flags),
        Some(("config", _)) => cmd::pages::defaults(),
        Some(("man", _)) => cmd::pages::man(),
        Some(("completions", flags)) => cmd::pages::completions(flags),
        _ => unreachable!("clap demands a known subcommand"),
    };
    result.unwrap_or_else(Failure::report)
}
