//! The command line.

use std::num::NonZero;

const USAGE: &str = "\
usage: cargo bench -p courser --bench fleet_handshakes -- [options]
  --part NAME         only this one (repeatable): resumption, latency, context
  --rounds N          samples of each (5)
  --connections N     sessions in a sample of resumption (2000)
  --seconds N         length of a sample of latency (10)
  --rate N            handshakes a second in it (400)
  --counted N         connections whose instructions are counted (200)
  --received N        sessions a second that come in meanwhile (50000)";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Resumption,
    Latency,
    Context,
}

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) parts: Vec<Part>,
    pub(crate) rounds: usize,
    pub(crate) connections: usize,
    pub(crate) seconds: u32,
    pub(crate) rate: u32,
    pub(crate) counted: u32,
    pub(crate) received: u32,
}

impl Options {
    /// Reads the arguments; the error is what to print.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let parts = Vec::new();
        let mut options = Self {
            parts,
            rounds: 5,
            connections: 2000,
            seconds: 10,
            rate: 400,
            counted: 200,
            received: 50_000,
        };
        while let Some(argument) = arguments.next() {
            options.take(&argument, &mut arguments)?;
        }
        if options.parts.is_empty() {
            options.parts = vec![Part::Resumption, Part::Latency, Part::Context];
        }
        Ok(options)
    }

    fn take(&mut self, argument: &str, rest: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut value = || rest.next().ok_or(format!("{argument} wants a value\n{USAGE}"));
        match argument {
            "--part" => self.parts.push(part(&value()?)?),
            "--rounds" => self.rounds = number(&value()?)? as usize,
            "--connections" => self.connections = number(&value()?)? as usize,
            "--seconds" => self.seconds = number(&value()?)?,
            "--rate" => self.rate = number(&value()?)?,
            "--counted" => self.counted = number(&value()?)?,
            "--received" => self.received = number(&value()?)?,
            // Cargo adds it to every benchmark.
            "--bench" => {}
            "--help" | "-h" => return Err(USAGE.into()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
        Ok(())
    }
}

fn part(name: &str) -> Result<Part, String> {
    match name {
        "resumption" => Ok(Part::Resumption),
        "latency" => Ok(Part::Latency),
        "context" => Ok(Part::Context),
        _ => Err(format!("no part is called {name}\n{USAGE}")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    let number: Result<NonZero<u32>, _> = text.parse();
    number.map(NonZero::get).map_err(|_| format!("not a positive number: {text}"))
}
