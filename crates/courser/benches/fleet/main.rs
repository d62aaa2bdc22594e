//! What a member of a fleet pays for sessions by ID: processor time, user and kernel, of the real driver on real sockets.
//!
//!     cargo bench -p courser --bench fleet
//!     cargo bench -p courser --bench fleet -- --rounds 1 --seconds 1      # to see that it works
//!
//! Method. This process is one host with the fleet's thread and whoever makes sessions, on the first core; all others are
//! in a second process on the last core. A round is for each case a stretch in which nothing is sent, then one with
//! sessions; rounds go through the cases forward and backward in turn. A figure is what getrusage(2) says of this
//! process in the second stretch, less the first, as a part of one core; a table entry is the median over rounds.
//! Sessions are made one by one, at even distances, so each may wake the fleet's thread. The first stretch keeps the same
//! pace and makes nothing: to make them, to hand them over, to seal and to send them all counts.
//!
//! On the loopback the kernel does the receiver's part of a delivery in the sender's time, more than a network card
//! would ask of it. Which time is the user's and which the kernel's is sampled by most kernels: good to about a percent
//! of ten seconds.

mod hosts;
mod options;
mod others;
mod receiving;
mod report;
mod sample;
mod sending;

use std::{io, process::ExitCode};

use courser_session::{EpochLength, FleetKey};
use courser_testkit::{
    Folder,
    tools::{cores, pin},
};

use crate::{
    options::{Case, Options},
    receiving::Receiving,
    report::{Report, Row},
    sample::Sample,
    sending::Sending,
};

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(other_side) = others::run_if_asked() {
        return exit_code(other_side);
    }
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => exit_code(measure(&options).map(|report| report.print(options.json))),
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

fn measure(options: &Options) -> io::Result<Report> {
    let cores = cores()?;
    if cores.len() < 2 {
        eprintln!("warning: one core only: the two sides disturb each other");
    }
    pin(cores[0])?;
    let folder = Folder::new();
    let key = FleetKey::generate(EpochLength::DEFAULT, hosts::now()).map_err(io::Error::other)?.to_text();
    let key_file = folder.write("fleet.key", key.as_bytes()).display().to_string();
    let start = |&case: &Case| match case {
        Case::Unicast => Sending::unicast(options, &key).map(TrafficCase::Sending),
        Case::Multicast => Sending::multicast(options, &key).map(TrafficCase::Sending),
        Case::Receiving => Receiving::new(options, &key, &key_file).map(TrafficCase::Receiving),
    };
    let mut lanes = options.cases.iter().map(start).collect::<io::Result<Vec<_>>>()?;
    let mut rows: Vec<_> = options.cases.iter().map(|&case| Row { case, samples: Vec::new() }).collect();
    for round in 0..options.rounds {
        for at in there_and_back(lanes.len(), round) {
            let sample = lanes[at].sample()?;
            eprintln!("round {} of {}, {}: {sample}", round + 1, options.rounds, rows[at].case.name());
            rows[at].samples.push(sample);
        }
    }
    Ok(Report { rows, options: options.clone() })
}

/// What is measured in a case.
enum TrafficCase {
    Sending(Sending),
    Receiving(Receiving),
}

impl TrafficCase {
    fn sample(&mut self) -> io::Result<Sample> {
        match self {
            Self::Sending(sending) => sending.sample(),
            Self::Receiving(receiving) => receiving.sample(),
        }
    }
}

/// A B C, then C B A: a drift of the machine over time hits all alike.
fn there_and_back(count: usize, round: u32) -> Box<dyn Iterator<Item = usize>> {
    if round.is_multiple_of(2) { Box::new(0..count) } else { Box::new((0..count).rev()) }
}
