//! The command line.

use courser_testkit::competitor::Competitor;

use crate::{case::Case, terminator::COURSER};

const USAGE: &str = "\
usage: cargo bench -p courser -- [options]
  --case NAME         only cases whose name contains NAME (repeatable): 0, 1, 2, 3a, 3b, 4, 5, tls12, request, ...
  --servers A,B       only these: courser, nginx, haproxy, hitch, stunnel
  --path NAME=FILE    another build beside them (repeatable): courser=./old, haproxy=/opt/haproxy/sbin/haproxy
  --rounds N          samples of each (3)
  --connections N     connections in a sample (4000)
  --concurrency N     connections at a time (16)
  --idle N            idle connections in the memory case (3000)
  --json              results as JSON on standard output";

/// What to measure.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) cases: Vec<Case>,
    /// Empty: all.
    pub(crate) servers: Vec<String>,
    /// Name and file of further ones.
    pub(crate) builds: Vec<(String, String)>,
    pub(crate) json: bool,
    scale: Scale,
}

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) rounds: usize,
    pub(crate) connections: usize,
    pub(crate) concurrency: usize,
    pub(crate) idle: usize,
}

impl Options {
    /// Reads the arguments; the error is what to print.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let scale = Scale { rounds: 3, connections: 4000, concurrency: 16, idle: 3000 };
        let mut options =
            Self { cases: Vec::new(), servers: Vec::new(), builds: Vec::new(), json: false, scale };
        while let Some(argument) = arguments.next() {
            options.take(&argument, &mut arguments)?;
        }
        if options.cases.is_empty() {
            options.cases = Case::ALL.into();
        }
        Ok(options)
    }

    pub(crate) fn scale(&self) -> &Scale {
        &self.scale
    }

    fn take(&mut self, argument: &str, rest: &mut impl Iterator<Item = String>) -> Result<(), String> {
        let mut value = || rest.next().ok_or(format!("{argument} wants a value\n{USAGE}"));
        match argument {
            "--case" => self.add_cases(&value()?)?,
            "--servers" => self.servers = value()?.split(',').map(str::to_owned).collect(),
            "--path" => self.builds.push(build(&value()?)?),
            "--rounds" => self.scale.rounds = number(&value()?)?,
            "--connections" => self.scale.connections = number(&value()?)?,
            "--concurrency" => self.scale.concurrency = number(&value()?)?,
            "--idle" => self.scale.idle = number(&value()?)?,
            "--json" => self.json = true,
            // Cargo adds it to every benchmark.
            "--bench" => {}
            "--help" | "-h" => return Err(USAGE.into()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
        Ok(())
    }

    /// In the order of the table, however they were asked for.
    fn add_cases(&mut self, part: &str) -> Result<(), String> {
        let number = part.chars().all(|c| c.is_ascii_digit());
        let wanted =
            |case: &Case| if number { case.name().starts_with(part) } else { case.name().contains(part) };
        if !Case::ALL.iter().any(wanted) {
            let names: Vec<_> = Case::ALL.iter().map(|case| case.name()).collect();
            return Err(format!("no case contains {part}: there are {}", names.join(", ")));
        }
        let earlier = std::mem::take(&mut self.cases);
        self.cases = Case::ALL.into_iter().filter(|case| wanted(case) || earlier.contains(case)).collect();
        Ok(())
    }
}

fn build(text: &str) -> Result<(String, String), String> {
    let known = |name: &str| name == COURSER || Competitor::ALL.iter().any(|rival| rival.name() == name);
    let parts = text.split_once('=').filter(|(name, _)| known(name));
    let (name, file) = parts.ok_or(format!("not the name of a terminator, `=` and a file: {text}"))?;
    Ok((name.to_owned(), file.to_owned()))
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&number| number > 0).ok_or(format!("not a positive number: {text}"))
}
