//! Prepares a case: targets that run and negotiate what was requested.

use courser_load::spec::Load;
use courser_record::lab::CellState;
use courser_record::{Finding, Severity};

use super::command;
use super::cores::CoreMap;
use super::start::{Bench, PreparedTarget};
use super::state::State;
use crate::error::Error;
use crate::selector::TargetSelector;
use crate::suite::{CaseSpec, ClientKind, Transport, clients};
use crate::target::{NotStarted, TargetSpec};
use crate::verify::verify;

/// Descriptors that a connection takes in the program that needs the most, a terminator: one to each side.
const DESCRIPTORS: u64 = 2;

/// The way without a terminator.
const DIRECT: &str = "direct";

impl Bench<'_> {
    /// The targets that run and negotiate what the case asks; the cells of the others say why they do not.
    pub(crate) fn prepare(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        state: &mut State,
    ) -> Vec<PreparedTarget> {
        let impossible = spec.cannot.clone().or_else(|| descriptors(spec));
        let specification = match (impossible, self.backends(spec, map)) {
            (Some(why), _) | (None, Err(why)) => Err(why),
            (None, Ok(backends)) => self.target_spec(spec, map, backends),
        };
        let target_spec = match specification {
            Ok(target_spec) => target_spec,
            Err(why) => {
                self.cannot(spec, &why, state);
                return Vec::new();
            }
        };
        state.case(spec, Vec::new());
        let mut ready = Vec::new();
        for target in self.targets(spec) {
            if state.is_done(&spec.id, &target.name) || self.interrupt.came() {
                continue;
            }
            match self.one(spec, map, &target_spec, &target, state) {
                Ok(one) => ready.push(one),
                Err(NotStarted::Missing(why) | NotStarted::Cannot(why)) => {
                    let cell = state.cell(&spec.id, &target.name);
                    (cell.state, cell.reason) = (CellState::Cannot, Some(why));
                }
                Err(NotStarted::Failed(why)) => {
                    let cell = state.cell(&spec.id, &target.name);
                    (cell.state, cell.reason) = (CellState::Failed, Some(why));
                }
            }
        }
        ready
    }

    /// Starts a target and verifies it.
    fn one(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        target_spec: &TargetSpec,
        target: &TargetSelector,
        state: &mut State,
    ) -> Result<PreparedTarget, NotStarted> {
        let spec = &case_for(spec, target);
        let mut ready = match &target.url {
            Some(_) if spec.hosts > 1 => {
                let why = format!(
                    "{} cannot: it is not ours to start, and the case needs several hosts",
                    target.name
                );
                return Err(NotStarted::Cannot(why));
            }
            Some(url) => self.external(spec, target, url, map, state),
            None => self.start(spec, map, target_spec, target, state)?,
        };
        let failed = |why: Error| NotStarted::Failed(why.to_string());
        let load = Load::Closed(spec.clients);
        let load =
            command::spec(spec, &ready.address, load, spec.length, map, self.options.seed).map_err(failed)?;
        self.record_request(spec, &load, state);
        let kinds = if spec.keys.len() == 1 { vec![ClientKind::default()] } else { clients(spec).to_vec() };
        for kind in kinds {
            let mut load = load.clone();
            kind.apply(&mut load);
            let plan = ready.address.plan(&load).map_err(failed)?;
            let outcome = verify(&plan, spec);
            // A target that died says more than the connection that it cut.
            if let Some(why) = ready.ended() {
                return Err(NotStarted::Failed(format!("it ended at its first connection: {why}")));
            }
            let of = if kind.name.is_empty() {
                String::new()
            } else {
                format!("to a client that {}, ", kind.name)
            };
            let (verified, findings) = outcome
                .map_err(|why| NotStarted::Failed(format!("it does not do what was asked: {of}{why}")))?;
            self.limit(spec, &verified, state);
            let cell = state.cell(&spec.id, &target.name);
            cell.state = CellState::Pending;
            cell.reason = None;
            cell.verified = Some(verified);
            cell.findings = findings;
            let remarks = ready.running.iter().flat_map(|running| &running.remarks);
            cell.findings.extend(remarks.map(|remark| Finding::new("setting", Severity::Note, remark, "")));
        }
        Ok(ready)
    }
}

/// The case as a target gets it: no TLS on the way without a terminator.
fn case_for(spec: &CaseSpec, target: &TargetSelector) -> CaseSpec {
    let transport = if target.name == DIRECT { Transport::Clear } else { spec.transport.clone() };
    CaseSpec { transport, ..spec.clone() }
}

/// Why a case has more connections than this process may have open.
fn descriptors(spec: &CaseSpec) -> Option<String> {
    let limit = courser_machine::machine::read().open_files;
    let needed = spec.clients * DESCRIPTORS + 200;
    (needed > limit).then(|| {
        format!(
            "{} connections need {needed} descriptors in a terminator; the limit of this machine is {limit}",
            spec.clients
        )
    })
}
