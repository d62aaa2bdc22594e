//! `courser-bench`, the instrument: command line, what is shown and printed, exit codes.
//!
//! It measures a server from outside, as a process, and never links the terminator. A run reads as: `cli.rs` (flags),
//! `cli/spec.rs` (the load), then in courser-lab `measure.rs` (the run), `reading.rs` (usage read meanwhile),
//! `to_record.rs` (the record), `findings.rs` (what it supports).

/// Prints a line to standard error; a closed one is no error.
macro_rules! notice {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

mod cli;
mod exit;
mod units;

mod cmd;

mod deliver;
mod experiment;
mod planner;
mod progress;
mod prometheus;
mod session;
mod thresholds;
mod watch;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};
use exit::{Ended, Failure};

/// As in `courser`: fewer instructions per connection than with glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse().command).map_or_else(Failure::report, ExitCode::from)
}

fn run(command: Command) -> Result<Ended, Failure> {
    match command {
        Command::Inspect(args) => cmd::inspect::inspect(&args),
        Command::Handshake(args) => cmd::handshake::handshake(&args),
        Command::Load(args) => cmd::load::load(&args),
        Command::Ramp(args) => cmd::ramp::ramp(&args),
        Command::Search(args) => cmd::search::search(&args),
        Command::Idle(args) => cmd::idle::idle(&args),
        Command::Overheads(args) => cmd::overheads::overheads(&args),
        Command::Primitives(args) => cmd::primitives::primitives(&args),
        Command::Origin(args) => cmd::origin::origin(&args),
        Command::Targets(args) => cmd::targets::targets(&args),
        Command::Start(args) => cmd::start::start(&args),
        Command::Supervise(args) => cmd::supervise::supervise(&args),
        Command::Calibrate(args) => cmd::calibrate::calibrate(&args),
        Command::Plan(args) => cmd::plan::plan(&args),
        Command::SystemCheck(args) => cmd::system_check::system_check(&args),
        Command::Delay(args) => cmd::delay::delay(&args),
        Command::Respond(args) => cmd::respond::respond(&args),
        Command::Run(args) => cmd::run::run(&args),
        Command::Report(args) => cmd::report::report(&args),
        Command::Compare(args) => cmd::compare::compare(&args),
        Command::Merge(args) => cmd::records::merge(&args),
        Command::Show(args) => cmd::records::show(&args),
        Command::Man => cmd::pages::man(),
        Command::Completions(args) => cmd::pages::completions(&args),
    }
}
