//! What a record says of a case beside its blocks: what was requested of targets, the least that it can take, profiles.

use std::fs;
use std::path::Path;

use courser_load::spec::LoadSpec;
use courser_machine::allowed_cpus;
use courser_record::lab::{CellState, Profile, Verified};
use courser_record::{Finding, Severity};

use super::command;
use super::cores::CoreMap;
use super::start::{BACKLOG, Bench, PreparedTarget, SESSION_CACHE};
use super::state::State;
use crate::limit::Needs;
use crate::profile::Sampling;
use crate::suite::{Backend, CaseSpec, Requests, Resume, Transport};

/// Samples a second of a profile: a prime, so that nothing periodic hides.
const SAMPLES: u32 = 997;

/// What the generator's request takes, about, and the head of the origin's answer.
const REQUEST_BYTES: u64 = 60;
const HEAD_BYTES: u64 = 120;

impl Bench<'_> {
    /// What a record says of machine and map.
    pub(crate) fn describe(&self, state: &mut State) {
        state.lab.tuning = crate::tuning::tuning();
        let allowed = allowed_cpus();
        if let Ok(map) = CoreMap::new(&allowed, 1, &self.options.by_hand) {
            state.lab.cores = map.roles(&allowed);
            state.lab.cores_note = map.note();
        }
    }

    /// Notes for all targets of a case that nobody can do it, and why.
    pub(crate) fn cannot(&self, spec: &CaseSpec, why: &str, state: &mut State) {
        state.case(spec, asked(spec, None));
        for target in self.targets(spec) {
            let cell = state.cell(&spec.id, &target.name);
            (cell.state, cell.reason) = (CellState::Cannot, Some(why.to_owned()));
        }
    }

    /// What was asked of all targets, from the first of them.
    pub(crate) fn record_request(&self, spec: &CaseSpec, load: &LoadSpec, state: &mut State) {
        if let Some(case) =
            state.lab.cases.iter_mut().find(|case| case.id == spec.id && case.asked.is_empty())
        {
            case.asked = asked(spec, Some(load));
        }
    }

    /// A further block under a profiler, where that was asked for.
    pub(crate) fn profile(&mut self, target: &PreparedTarget, state: &mut State) {
        let Some(pid) = target.address.pid else { return };
        let folder = self.folder("profile");
        let sampled = self.sampled(target, pid, &folder);
        let cell = state.cell(&target.spec.id, &target.name);
        match sampled {
            Ok(profile) => cell.profile = Some(profile),
            Err(why) => {
                let advice = "user and kernel time are known all the same";
                cell.findings.push(Finding::new("not-profiled", Severity::Note, why, advice));
            }
        }
    }

    pub(crate) fn sampled(
        &self,
        target: &PreparedTarget,
        pid: u32,
        folder: &Path,
    ) -> Result<Profile, String> {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let sampling = Sampling::start(pid, SAMPLES, folder)?;
        target.run(self, 0).take().map_err(|why| why.to_string())?;
        sampling.finish()
    }

    /// The least that a connection of the case can take on these cores, from what was negotiated.
    pub(crate) fn limit(&mut self, spec: &CaseSpec, map: &CoreMap, verified: &Verified, state: &mut State) {
        let (Transport::Tls(version), [key]) = (&spec.transport, spec.keys.as_slice()) else { return };
        let per_connection = matches!(spec.requests, Requests::Exactly(_));
        let Some(case) = state.lab.cases.iter_mut().find(|case| case.id == spec.id) else { return };
        if case.limit.is_some() || !per_connection {
            return;
        }
        let needs = Needs {
            version: version.clone(),
            key: key.clone(),
            group: verified.group.clone(),
            suite: verified.suite.clone(),
            full: match spec.reuse {
                _ if !spec.cache => 1.0,
                0 => 0.0,
                times => 1.0 / f64::from(times),
            },
            tickets: spec.cache && spec.resume == Resume::Ticket,
            bytes_in: if spec.object.is_some() { REQUEST_BYTES } else { 0 },
            bytes_out: spec.object.map_or(0, |size| size as u64 + HEAD_BYTES),
            reencrypted: spec.backend == Backend::Tls,
        };
        match self.limits.of(&needs, map.into()) {
            Ok(limit) => case.limit = Some(limit),
            // It is no fault of the case; said once, where what was asked stands.
            Err(why) => {
                let reason = format!("no limit: {why}");
                if !case.asked.contains(&reason) {
                    case.asked.push(reason);
                }
            }
        }
    }
}

/// What is asked of every target, in words and as a command.
fn asked(spec: &CaseSpec, load: Option<&LoadSpec>) -> Vec<String> {
    let mut asked = vec![spec.title.clone()];
    asked.push(format!("backlog {BACKLOG}, {} worker(s), logging off", spec.cores));
    if spec.hosts > 1 {
        asked.push(format!(
            "{} hosts on the same cores, sharing what it takes to resume; each connection of a client goes to the next one",
            spec.hosts
        ));
    }
    if spec.transport != Transport::Clear {
        if !spec.suites.is_empty() {
            asked.push(format!("{} for every target and client", spec.suites.join(" and ")));
        }
        asked.push(match (spec.cache, spec.resume) {
            (false, _) => "no session cache, no tickets".to_owned(),
            (true, Resume::Ticket) => "tickets, no session cache".to_owned(),
            (true, Resume::Id) => format!("a session cache of {SESSION_CACHE}, no tickets"),
        });
    }
    if let Some(part) = spec.capacity {
        asked.push(format!(
            "sessions arrive at {} % of the rate that a closed loop of {} connections reached on the same target",
            part * 100.0,
            spec.clients
        ));
    }
    if spec.beside.is_some() {
        asked.push("beside the command below; the crowd comes once its load is steady".to_owned());
    }
    asked.extend(load.map(command::line));
    asked
}
