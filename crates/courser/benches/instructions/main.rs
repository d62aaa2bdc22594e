//! Instructions of a worker per connection, counted by callgrind: what a change of the connection's path costs, to a
//! thousandth, on any machine.
//!
//! Method. The cases are those of `cpu_per_connection` that are not made of others' parts. The program runs under valgrind with one worker; the figure is
//! the difference between a run of [`WARM`] + N connections and one of [`WARM`], divided by N: start-up, warm caches and
//! the allocator's first pages fall out. The kernel's part is not counted, nor what waits for memory. An instruction
//! that valgrind does not know makes the library choose another way: figures of one machine compare, of two may not.
//!
//! `limits.txt` holds the most that a connection of each case may take. A figure above its limit ends this with exit
//! code 1; so the cost that several changes share is decided where it can be seen, in that file.

#[path = "../cpu_per_connection/case.rs"]
#[allow(dead_code, reason = "the other benchmark uses more of it")]
mod case;
mod count;
mod limits;

use std::{env, io, process::ExitCode};

use case::Case;
use count::per_connection;

/// Connections of the shorter of the two runs.
const WARM: u32 = 40;

/// Connections that are counted in a round, and rounds, unless told otherwise. What a worker does for each tick of the
/// clock is counted too, and valgrind is slow: rounds differ by a hundredth.
const COUNTED: u32 = 200;
const ROUNDS: usize = 5;

const USAGE: &str = "\
usage: cargo bench -p courser --bench instructions -- [options]
  --case NAME         only cases whose name contains NAME
  --connections N     connections that are counted in a round (200)
  --rounds N          rounds of each program, in turns; the median counts (5)
  --program FILE      this program instead of the one that was built (repeatable: compared with the first)";

struct Options {
    case: String,
    connections: u32,
    rounds: usize,
    programs: Vec<String>,
}

fn main() -> ExitCode {
    let options = match parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every figure is within its limit.
fn measure(options: &Options) -> io::Result<bool> {
    let mut is_within = true;
    println!("{:28} {:>12} {:>12}  program", "instructions per connection", "counted", "limit");
    for case in Case::ALL.into_iter().filter(|case| case.is_counted()) {
        if !case.name().contains(&options.case) {
            continue;
        }
        let limit = limits::of(case.name());
        // A transfer has as many records as the others have connections.
        let is_transfer = case.mebibytes().is_some();
        let (warm, connections) =
            if is_transfer { (1, options.connections.div_ceil(100)) } else { (WARM, options.connections) };
        let mut rounds = vec![Vec::new(); options.programs.len()];
        for _ in 0..options.rounds {
            for (program, counted) in options.programs.iter().zip(&mut rounds) {
                counted.push(per_connection(program, case, warm, connections)?);
            }
        }
        let medians: Vec<f64> = rounds.iter_mut().map(|counted| median(counted)).collect();
        for (program, &counted) in options.programs.iter().zip(&medians) {
            let base = medians[0];
            is_within &= counted <= limit as f64;
            let verdict = if counted <= limit as f64 { "" } else { "  OVER ITS LIMIT" };
            let change = 100.0 * (counted / base - 1.0);
            println!("{:28} {counted:12.0} {limit:12}  {program} ({change:+.2} %){verdict}", case.name());
        }
    }
    Ok(is_within)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options =
        Options { case: String::new(), connections: COUNTED, rounds: ROUNDS, programs: Vec::new() };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} wants a value\n{USAGE}"));
        match argument.as_str() {
            "--case" => options.case = value()?,
            "--connections" => {
                options.connections = value()?.parse().map_err(|_| format!("not a number\n{USAGE}"))?;
            }
            "--rounds" => {
                let rounds = value()?.parse().ok().filter(|rounds| *rounds > 0);
                options.rounds = rounds.ok_or(format!("not a positive number\n{USAGE}"))?;
            }
            "--program" => options.programs.push(value()?),
            // Cargo adds it to every benchmark.
            "--bench" => {}
            _ => return Err(USAGE.into()),
        }
    }
    if options.programs.is_empty() {
        options.programs.push(env!("CARGO_BIN_EXE_courser").to_owned());
    }
    Ok(options)
}
