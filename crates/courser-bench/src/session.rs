//! What every verb that loads does in the same order: probe, run, keep, judge.

use courser_lab::files;
use courser_lab::measure::{self, Runner};
use courser_load::origin::OriginSockets;
use courser_load::plan::Plan;
use courser_load::spec::LoadSpec;
use courser_record::{Record, Run};

use crate::cli::OutputArgs;
use crate::deliver;
use crate::exit::{Ended, Failure};
use crate::experiment::{Asked, experiment};
use crate::watch::Watch;

/// The plan of a load, with the origin that the generator is to serve listening.
pub(crate) fn plan(spec: &LoadSpec) -> Result<Plan, Failure> {
    let mut plan = spec.plan(files::READ)?;
    if !spec.origin.is_empty() {
        let sockets = OriginSockets::open(&spec.origin);
        plan.origin = Some(sockets.map_err(|why| Failure::System(why.to_string()))?);
    }
    Ok(plan)
}

/// A target that has been reached, and everything that runs on it need.
pub(crate) struct Session<'a> {
    pub(crate) spec: &'a LoadSpec,
    output: &'a OutputArgs,
    pub(crate) runner: Runner<Watch>,
}

impl<'a> Session<'a> {
    /// Reaches the target with one connection of the plan.
    pub(crate) fn open(spec: &'a LoadSpec, output: &'a OutputArgs, plan: &Plan) -> Result<Self, Failure> {
        let runner = Runner::new(spec, crate::exit::interrupt()?, Watch::new(output))?;
        if let Some(negotiated) = measure::probe(plan)?
            && !output.quiet
        {
            let group = negotiated.group_name().unwrap_or_default();
            let scheme = negotiated.scheme_name().unwrap_or_default();
            notice!(
                "{}: {} {} {group} {scheme}",
                spec.url,
                negotiated.version_name(),
                negotiated.suite_name()
            );
        }
        Ok(Self { spec, output, runner })
    }

    /// The record of what was run.
    pub(crate) fn record(&self, plan: &Plan, asked: Asked<'_>, runs: Vec<Run>) -> Record {
        deliver::record(experiment(self.spec, plan, asked), runs, self.runner.interrupt.came())
    }

    /// Runs one plan and delivers its record: all that most verbs do.
    pub(crate) fn once(mut self, label: &str, plan: &Plan, asked: Asked<'_>) -> Result<Ended, Failure> {
        let (_, runs) = self.runner.run(label, plan)?;
        deliver::deliver(&self.record(plan, asked, runs), self.output)
    }
}
