//! What a fleet does to handshakes, with the real program.
//!
//!     cargo bench -p courser --bench fleet_handshakes
//!     cargo bench -p courser --bench fleet_handshakes -- --rounds 1 --connections 50 --seconds 1     # to see that it works
//!
//! The program has one worker and is kept on the first core, with its fleet's thread; everything else is on the last.
//! Rounds alternate between the two sides of each comparison; a table entry is the median over rounds.
//!
//! * resumption: processor time per connection (TLS 1.2 by session ID, one request) of the host where a session is
//!   resumed: one that was made there, next to one that was made on another host and pushed. Each session is resumed
//!   once. Pushing is over before the clock starts.
//! * latency: full TLS 1.3 handshakes at a steady rate, each timed from when it was due, while members in another
//!   process make sessions: told to the program, next to told to a socket that nobody reads. So both sides pay for the
//!   senders.
//! * context: instructions of the worker's thread per connection, counted by callgrind, with sharing and without: the
//!   difference between two numbers of connections. Needs valgrind.

mod context;
#[path = "../fleet/hosts.rs"]
#[allow(dead_code, reason = "the benchmark `fleet`, whose file it is, needs all of it")]
mod hosts;
mod latency;
mod options;
#[path = "../fleet/others.rs"]
#[allow(dead_code, reason = "the benchmark `fleet`, whose file it is, needs all of it")]
mod others;
mod program;
mod resumption;

use std::{io, process::ExitCode};

use courser_testkit::tools::{pin, raise_descriptor_limit};

use crate::{
    options::{Options, Part},
    program::Stage,
};

fn main() -> ExitCode {
    if let Some(other_side) = others::run_if_asked() {
        return exit_code(other_side);
    }
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => exit_code(measure(&options)),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn exit_code(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> io::Result<()> {
    let stage = Stage::new()?;
    pin(stage.client_core)?;
    raise_descriptor_limit()?;
    for part in &options.parts {
        match part {
            Part::Resumption => resumption::measure(&stage, options)?,
            Part::Latency => latency::measure(&stage, options)?,
            Part::Context => context::measure(&stage, options)?,
        }
    }
    Ok(())
}

/// A B, then B A: a drift of the machine over time hits both alike.
fn there_and_back(round: usize) -> [usize; 2] {
    if round.is_multiple_of(2) { [0, 1] } else { [1, 0] }
}

/// The mean of the two in the middle if there are two.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}
