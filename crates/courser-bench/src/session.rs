//! What every verb that loads does in the same order: probe, run, keep, judge.

use courser_load::plan::Plan;
use courser_load::run::Outcome;
use courser_record::{Record, Run};

use crate::cli::CommonArgs;
use crate::deliver;
use crate::exit::{Ended, Failure};
use crate::experiment::{Asked, experiment};
use crate::findings::{self, Evidence};
use crate::measure::{self, Interrupt};
use crate::reading::{Reader, Reading, Watched};
use crate::to_record;
use crate::watch::Watch;
use courser_load::url::Url;

/// A target that has been reached, and everything that runs on it need.
pub(crate) struct Session<'a> {
    pub(crate) url: &'a Url,
    pub(crate) common: &'a CommonArgs,
    pub(crate) interrupt: Interrupt,
    pub(crate) watch: Watch,
    reader: Option<Reader>,
    pub(crate) watched: Watched,
    pub(crate) reuse: u32,
}

impl<'a> Session<'a> {
    /// Reaches the target with one connection of the plan.
    pub(crate) fn open(
        url: &'a Url,
        common: &'a CommonArgs,
        reuse: u32,
        plan: &Plan,
    ) -> Result<Self, Failure> {
        let interrupt = Interrupt::install()?;
        let (reader, watched) = Reader::new(&common.server)?;
        if let Some(negotiated) = measure::probe(plan)?
            && !common.output.quiet
        {
            let group = negotiated.group_name().unwrap_or_default();
            let scheme = negotiated.scheme_name().unwrap_or_default();
            notice!("{url}: {} {} {group} {scheme}", negotiated.version_name(), negotiated.suite_name());
        }
        Ok(Self {
            url,
            common,
            interrupt,
            watch: Watch::new(&common.output),
            reader: Some(reader),
            watched,
            reuse,
        })
    }

    /// Runs a plan and judges each of its windows.
    pub(crate) fn run(&mut self, label: &str, plan: &Plan) -> Result<(Outcome<Reading>, Vec<Run>), Failure> {
        self.watch.label(label);
        let reader = self.reader.take().ok_or_else(|| Failure::System("the sampler is gone".into()))?;
        let at = self.common.run.start_at;
        let (outcome, reader) = measure::run(plan, at, reader, &self.interrupt, &mut self.watch)?;
        self.reader = Some(reader);
        let mut runs = to_record::runs(label, plan, &outcome, &self.watched);
        for (run, counted) in runs.iter_mut().zip(&outcome.windows) {
            let evidence =
                Evidence { plan, counted, run, watched: &self.watched, reuse: self.reuse, cut: outcome.cut };
            (run.findings, run.verdict) = findings::judge(&evidence);
        }
        Ok((outcome, runs))
    }

    /// The record of what was run.
    pub(crate) fn record(&self, plan: &Plan, asked: Asked<'_>, runs: Vec<Run>) -> Record {
        deliver::record(experiment(self.url, plan, asked, self.common), runs, self.interrupt.came())
    }

    /// Runs one plan and delivers its record: all that most verbs do.
    pub(crate) fn once(mut self, label: &str, plan: &Plan, asked: Asked<'_>) -> Result<Ended, Failure> {
        let (_, runs) = self.run(label, plan)?;
        deliver::deliver(&self.record(plan, asked, runs), &self.common.output)
    }
}
