//! `courser-bench`, the instrument: command line, what to run, what to keep, exit codes.
//!
//! It measures a server from outside, as a process, and never links the terminator. A run reads as: `cli.rs` (what was
//! asked), `setup.rs` (the plan), `measure.rs` (the run), `reading.rs` (what was read beside it), `keep.rs` (the record),
//! `findings.rs` (what it supports).

mod cli;
mod exit;
mod units;
mod url;

mod cmd;

mod deliver;
mod experiment;
mod findings;
mod keep;
mod measure;
mod reading;
mod session;
mod setup;
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
        Command::Calibrate(args) => cmd::calibrate::calibrate(&args),
        Command::Respond(args) => cmd::respond::respond(&args),
        Command::Merge(args) => cmd::records::merge(&args),
        Command::Show(args) => cmd::records::show(&args),
    }
}
