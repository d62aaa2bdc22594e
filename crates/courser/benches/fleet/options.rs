//! The command line, and what there is to measure.

use std::{num::NonZero, str::FromStr, time::Duration};

const USAGE: &str = "\
usage: cargo bench -p courser --bench fleet -- [options]
  --case NAME         only this one (repeatable): unicast, multicast, receiving
  --rounds N          samples of each (5)
  --seconds N         length of each of a sample's two stretches (10)
  --peers N           hosts that are told by unicast (15)
  --made N            sessions made each second in the cases of the sender (10000)
  --senders N         hosts that the receiver hears (5)
  --received N        sessions that they make each second, together (50000)
  --json              results as JSON on standard output";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// Sending to each of several peers.
    Unicast,
    /// Sending to a group.
    Multicast,
    /// Receiving from several peers.
    Receiving,
}

impl Case {
    const ALL: [Self; 3] = [Self::Unicast, Self::Multicast, Self::Receiving];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Multicast => "multicast",
            Self::Receiving => "receiving",
        }
    }

    /// What it may cost, as a part of one core in percent; by unicast, user mode alone.
    pub(crate) fn target(self) -> f64 {
        if self == Self::Receiving { 20.0 } else { 5.0 }
    }
}

/// How much of everything.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) cases: Vec<Case>,
    pub(crate) rounds: u32,
    pub(crate) stretch: Duration,
    pub(crate) peers: u8,
    pub(crate) made: u32,
    pub(crate) senders: u8,
    pub(crate) received: u32,
    pub(crate) json: bool,
}

impl Options {
    /// Reads the arguments; the error is what to print.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            cases: Vec::new(),
            rounds: 5,
            stretch: Duration::from_secs(10),
            peers: 15,
            made: 10_000,
            senders: 5,
            received: 50_000,
            json: false,
        };
        while let Some(argument) = arguments.next() {
            options.take(&argument, &mut arguments)?;
        }
        if options.cases.is_empty() {
            options.cases = Case::ALL.into();
        }
        Ok(options)
    }

    fn take(&mut self, argument: &str, rest: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut value = || rest.next().ok_or(format!("{argument} wants a value\n{USAGE}"));
        match argument {
            "--case" => self.cases.push(case(&value()?)?),
            "--rounds" => self.rounds = number::<NonZero<u32>>(&value()?)?.get(),
            "--seconds" => {
                self.stretch = Duration::from_secs(number::<NonZero<u32>>(&value()?)?.get().into());
            }
            "--peers" => self.peers = number::<NonZero<u8>>(&value()?)?.get(),
            "--made" => self.made = number::<NonZero<u32>>(&value()?)?.get(),
            "--senders" => self.senders = number::<NonZero<u8>>(&value()?)?.get(),
            "--received" => self.received = number::<NonZero<u32>>(&value()?)?.get(),
            "--json" => self.json = true,
            // Cargo adds it to every benchmark.
            "--bench" => {}
            "--help" | "-h" => return Err(USAGE.into()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
        Ok(())
    }
}

fn case(name: &str) -> Result<Case, String> {
    let found = Case::ALL.into_iter().find(|case| case.name() == name);
    found.ok_or(format!("no case is called {name}\n{USAGE}"))
}

/// Hosts fit into 127.0.0.0/24, and none of the counts may be zero.
fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("too large, or not a positive number: {text}"))
}
