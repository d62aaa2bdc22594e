//! Prepares a case: targets that run and negotiate what was requested.

use courser_load::spec::LoadSpec;
use courser_record::lab::{CellState, ClientVerified, Verified};
use courser_record::{Finding, Severity};

use super::command;
use super::cores::CoreMap;
use super::equal;
use super::start::{Bench, PreparedTarget};
use super::state::State;
use crate::error::Error;
use crate::selector::{TargetSelector, TargetSource};
use crate::suite::{CaseSpec, ClientKind, Transport, clients};
use crate::target::{NotStarted, TargetSpec};
use crate::verify::verify;

/// Descriptors that a connection takes in the program that needs the most, a terminator: one to each side.
const DESCRIPTORS: u64 = 2;

impl Bench<'_> {
    /// The targets that run and negotiate what the case asks; the cells of the others say why they do not.
    pub(crate) fn prepare(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        state: &mut State,
    ) -> Vec<PreparedTarget> {
        let impossible = spec.cannot.clone().or_else(|| descriptors(spec));
        let specification = impossible.map_or_else(|| self.specification(spec, map), Err);
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
        let targets = self.targets(spec);
        let exceptions = |name: &str| {
            let found = targets.iter().find(|target| target.name == name);
            found.map(TargetSelector::exceptions).unwrap_or_default()
        };
        equal::check(&spec.id, &exceptions, state);
        ready.retain(|one| state.cell(&spec.id, &one.name).state == CellState::Pending);
        ready
    }

    /// Starts a target that was ended after its last block; its cell says why where that fails.
    pub(crate) fn start_again(&mut self, spec: &CaseSpec, ended: &mut PreparedTarget, state: &mut State) {
        let is_ours = ended.address.url.is_none();
        // One that has failed in a block is not tried again.
        let is_over = state.cell(&spec.id, &ended.name).state != CellState::Pending;
        if !is_ours || is_over || ended.running.is_some() {
            return;
        }
        let selector = self.targets(spec).into_iter().find(|target| target.name == ended.name);
        let Some(selector) = selector else { return };
        let map = ended.cores.clone();
        let started = self
            .specification(spec, &map)
            .map_err(NotStarted::Failed)
            .and_then(|target_spec| self.one(spec, &map, &target_spec, &selector, state));
        match started {
            Ok(target) => *ended = PreparedTarget { reached: ended.reached, ..target },
            Err(NotStarted::Missing(why) | NotStarted::Cannot(why) | NotStarted::Failed(why)) => {
                let cell = state.cell(&spec.id, &ended.name);
                (cell.state, cell.reason) = (CellState::Failed, Some(why));
            }
        }
    }

    fn specification(&mut self, spec: &CaseSpec, map: &CoreMap) -> Result<TargetSpec, String> {
        let backends = self.backends(spec, map)?;
        self.target_spec(spec, map, backends)
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
        let mut ready = match &target.source {
            TargetSource::Url(_) if spec.hosts > 1 => {
                let why = format!(
                    "{} cannot: it is not ours to start, and the case needs several hosts",
                    target.name
                );
                return Err(NotStarted::Cannot(why));
            }
            TargetSource::Url(url) => self.external(spec, target, url, map, state),
            TargetSource::Definition(definition) => {
                self.start(spec, map, target_spec, target, definition, state)?
            }
        };
        let failed = |why: Error| NotStarted::Failed(why.to_string());
        let load = command::load(spec);
        let load =
            command::spec(spec, &ready.address, load, spec.length, map, self.options.seed).map_err(failed)?;
        self.record_request(spec, &load, state);
        let (verified, clients, mut findings) = if spec.keys.len() == 1 {
            let (verified, findings) = verified(&mut ready, &load, &ClientKind::default(), spec)?
                .map_err(|why| NotStarted::Failed(format!("it does not do what was asked: {why}")))?;
            self.limit(spec, map, &verified, state);
            (Some(verified), Vec::new(), findings)
        } else {
            let mut got = Vec::new();
            for kind in clients() {
                got.push(client(&kind, verified(&mut ready, &load, &kind, spec)?));
            }
            if let Some(why) = nothing_served(&got) {
                return Err(NotStarted::Failed(format!("it does not do what was asked: {why}")));
            }
            let findings = got.iter().map(served).collect();
            (None, got, findings)
        };
        let remarks = ready.running.iter().flat_map(|running| &running.remarks);
        findings.extend(remarks.map(|remark| Finding::new("setting", Severity::Note, remark, "")));
        let cell = state.cell(&spec.id, &target.name);
        (cell.state, cell.reason) = (CellState::Pending, None);
        (cell.verified, cell.clients, cell.findings) = (verified, clients, findings);
        ready.clients =
            cell.clients.iter().filter(|got| got.reason.is_none()).map(|got| got.client.clone()).collect();
        Ok(ready)
    }
}

/// What a real exchange of this kind of client shows, or why it fails.
fn verified(
    target: &mut PreparedTarget,
    load: &LoadSpec,
    kind: &ClientKind,
    spec: &CaseSpec,
) -> Result<Result<(Verified, Vec<Finding>), String>, NotStarted> {
    let mut load = load.clone();
    kind.apply(&mut load);
    let plan = target.address.plan(&load).map_err(|why| NotStarted::Failed(why.to_string()))?;
    let outcome = verify(&plan, spec);
    // A target that died says more than the connection that it cut.
    match target.ended() {
        Some(why) => Err(NotStarted::Failed(format!("it ended at its first connection: {why}"))),
        None => Ok(outcome),
    }
}

fn client(kind: &ClientKind, outcome: Result<(Verified, Vec<Finding>), String>) -> ClientVerified {
    let (verified, reason) = match outcome {
        Ok((verified, _)) => (Some(verified), None),
        Err(why) => (None, Some(why)),
    };
    ClientVerified { client: kind.name.to_owned(), verified, reason }
}

/// Why no kind of client is served; none where one is.
fn nothing_served(all: &[ClientVerified]) -> Option<String> {
    let reasons = all
        .iter()
        .map(|one| one.reason.as_ref().map(|why| format!("to a client that {}: {why}", one.client)));
    reasons.collect::<Option<Vec<_>>>().map(|reasons| reasons.join("; "))
}

/// Which certificate a kind of client got.
fn served(one: &ClientVerified) -> Finding {
    let Some(verified) = &one.verified else {
        let why = one.reason.as_deref().unwrap_or_default();
        let text = format!("a client that {} is not served: {why}", one.client);
        return Finding::new(
            "client-not-served",
            Severity::Warning,
            text,
            "it is a result of the program's choice",
        );
    };
    let parts = [&verified.key, &verified.scheme].into_iter().flatten().cloned().collect::<Vec<_>>();
    let text =
        format!("a client that {} gets the certificate with {}", one.client, parts.join(", signed by "));
    // Targets that serve the same stand together.
    let id =
        format!("certificate-served-{}", text.replace(|c: char| !c.is_alphanumeric(), "-").to_lowercase());
    Finding::new(&id, Severity::Note, text, "")
}

/// The case as a target gets it: no TLS on the way without a terminator.
fn case_for(spec: &CaseSpec, target: &TargetSelector) -> CaseSpec {
    let transport = if target.is_direct() { Transport::Clear } else { spec.transport.clone() };
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
