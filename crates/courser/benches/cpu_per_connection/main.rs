//! What a connection costs a terminator: processor time of its processes per connection, and memory per idle
//! connection, side by side with nginx, HAProxy, hitch and stunnel under equal settings.
//!
//! Method. The terminator has one worker, pinned to the first core; client and origin run in this process, pinned to
//! the last. Each sample starts a fresh terminator and a fresh origin, makes one verified exchange, warms up, and then
//! makes N connections in a closed loop of 16 at a time, every one checked. Its figure is what the processor clocks of
//! the terminator's processes gained over the N connections, divided by N. Rounds go through the terminators forward
//! and backward in turn; a table entry is the median over rounds.
//!
//! It measures cost under one load, not the highest rate: a terminator that waits for the client has the same cost.

mod case;
mod options;
mod report;
mod sample;
mod stage;
mod terminator;

use std::{env, io, process::ExitCode};

use courser_testkit::tools::{cores, pin, raise_descriptor_limit};

use crate::{
    case::Case,
    options::Options,
    report::{Report, Row},
    sample::Sample,
    stage::Stage,
    terminator::Terminator,
};

fn main() -> ExitCode {
    let options = match Options::parse(env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(report) => {
            println!("{}", if options.json { report.json() } else { report.table() });
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot measure: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> io::Result<Report> {
    let cores = Cores::separate()?;
    raise_descriptor_limit()?;
    let stage = Stage::new(options, cores);
    let lanes = Terminator::available(options);
    let rows = options.cases.iter().map(|&case| measure_case(case, &lanes, &stage, options));
    Ok(Report {
        rows: rows.collect(),
        lanes: lanes.iter().map(Terminator::description).collect(),
        options: *options.scale(),
    })
}

/// Who runs where; the same core twice if there is one only.
#[derive(Clone, Copy, Debug)]
struct Cores {
    server: usize,
    client: usize,
}

impl Cores {
    /// Puts this process on the last core and leaves the first to the terminators.
    fn separate() -> io::Result<Self> {
        let cores = cores()?;
        let (server, client) = (cores[0], cores[cores.len() - 1]);
        if server == client {
            eprintln!("warning: one core only: the client and the terminator disturb each other");
        }
        pin(client)?;
        Ok(Self { server, client })
    }
}

fn measure_case(case: Case, lanes: &[Terminator], stage: &Stage, options: &Options) -> Row {
    let mut row = Row::new(case, lanes.len());
    for round in 0..options.scale().rounds {
        eprint!("{} round {}:", case.name(), round + 1);
        for index in there_and_back(lanes.len(), round) {
            if row.failures[index].is_none() {
                measure_once(&mut row, index, &lanes[index], stage);
            }
        }
        eprintln!();
    }
    row
}

fn measure_once(row: &mut Row, index: usize, lane: &Terminator, stage: &Stage) {
    match Sample::take(row.case, lane, stage) {
        Ok(sample) => {
            eprint!(" {} {:.1}", lane.name(), sample.value);
            row.samples[index].push(sample);
        }
        Err(why) => {
            eprintln!("\n{} skipped in {}: {why}", lane.name(), row.case.name());
            row.failures[index] = Some(why);
        }
    }
}

/// A B C, then C B A: a drift of the machine over time hits all alike.
fn there_and_back(count: usize, round: usize) -> Box<dyn Iterator<Item = usize>> {
    if round.is_multiple_of(2) { Box::new(0..count) } else { Box::new((0..count).rev()) }
}
