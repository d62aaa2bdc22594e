//! Everything that a case needs before it can be measured: keys, an origin, targets that run and negotiate what was
//! asked.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use courser_machine::allowed_cpus;
use courser_record::lab::{CellState, Profile, TargetNotes, Verified};
use courser_record::{Finding, Severity};

use super::block::BlockRun;
use super::command::{self, Load, TargetAddress};
use super::cores::{ByHand, CoreMap};
use super::scratch::Scratch;
use super::state::State;
use crate::cli::BenchArgs;
use crate::exit::Failure;
use crate::limit::{Limits, Needs};
use crate::measure::Interrupt;
use crate::profile::Sampling;
use crate::suite::{Backend, CaseSpec, Requests, Resume, Transport, clients};
use crate::target::{
    self, Certificate, Definition, Fleet, KeyKind, NotStarted, Preset, Running, Sent, TargetSpec, Tls,
};
use crate::verify::verify;
use courser_load::url::Url;

/// Sessions that a cache holds, where it is on.
const SESSION_CACHE: u32 = 20_000;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4096;

/// Servers behind a balancer.
const SERVERS: usize = 3;

/// Samples a second of a profile: a prime, so that nothing periodic hides.
const SAMPLES: u32 = 997;

/// What the generator's request takes, about, and the head of the origin's answer.
const REQUEST_BYTES: u64 = 60;
const HEAD_BYTES: u64 = 120;

/// Descriptors that a connection takes in the program that needs the most, a terminator: one to each side.
const DESCRIPTORS: u64 = 2;

/// What all cases of a suite share.
pub(crate) struct Bench<'a> {
    args: &'a BenchArgs,
    /// The suite's targets.
    usual: &'a [String],
    interrupt: Interrupt,
    limits: Limits,
    by_hand: ByHand,
    chosen: Vec<TargetSelector>,
    /// Ended before the folder that they write to goes.
    origin: Option<(Vec<SocketAddr>, Running)>,
    secure_origin: Option<Running>,
    scratch: Scratch,
    /// Folders made so far.
    folders: u32,
}

/// A target that was asked for.
#[derive(Clone)]
struct TargetSelector {
    name: String,
    preset: Preset,
    /// One that is not ours to start.
    url: Option<String>,
}

/// A target that runs, and negotiates what the case asks.
pub(crate) struct PreparedTarget {
    pub(crate) name: String,
    /// The case as it is asked of this target: the way without a terminator is in clear.
    pub(crate) spec: CaseSpec,
    pub(crate) whom: TargetAddress,
    pub(crate) cores: CoreMap,
    pub(crate) reached: Option<f64>,
    running: Option<Running>,
    delays: Vec<Running>,
}

impl PreparedTarget {
    /// What its hosts have told each other so far; none when they do not.
    pub(crate) fn sent(&self) -> Option<Sent> {
        self.running.as_ref()?.sent()
    }

    /// Why it has ended; none while it runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.running.iter_mut().chain(&mut self.delays).find_map(Running::ended)
    }
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        args: &'a BenchArgs,
        names: &[String],
        usual: &'a [String],
        interrupt: Interrupt,
    ) -> Result<Self, Failure> {
        let by_hand = ByHand {
            target: args.target_cpus.clone(),
            generator: args.cpus.clone(),
            origin: args.origin_cpus.clone(),
        };
        let chosen = names.iter().map(|name| TargetSelector::parse(name)).collect::<Result<_, _>>()?;
        let scratch = Scratch::new()?;
        let (origin, secure_origin) = (None, None);
        Ok(Self {
            args,
            usual,
            interrupt,
            limits: Limits::default(),
            by_hand,
            chosen,
            origin,
            secure_origin,
            scratch,
            folders: 0,
        })
    }

    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    pub(crate) fn by_hand(&self) -> &ByHand {
        &self.by_hand
    }

    pub(crate) fn seed(&self) -> u64 {
        self.args.seed
    }

    /// How many targets a case has that names none of its own.
    pub(crate) fn count(&self) -> usize {
        if self.chosen.is_empty() { self.usual.len() } else { self.chosen.len() }
    }

    /// What a record says of machine and map.
    pub(crate) fn describe(&self, state: &mut State) {
        state.lab.tuning = crate::tuning::tuning();
        let allowed = allowed_cpus();
        if let Ok(map) = CoreMap::new(&allowed, 1, &self.by_hand) {
            state.lab.cores = map.roles(&allowed);
            state.lab.cores_note = map.note();
        }
    }

    /// The targets of a case: those of the command line, or the group's, or the suite's.
    fn targets(&self, spec: &CaseSpec) -> Vec<TargetSelector> {
        if !self.chosen.is_empty() {
            return self.chosen.clone();
        }
        let names = spec.targets.as_ref().map_or(self.usual, Vec::as_slice);
        names.iter().filter_map(|name| TargetSelector::parse(name).ok()).collect()
    }

    /// Notes for all targets of a case that nobody can do it, and why.
    pub(crate) fn cannot(&self, spec: &CaseSpec, why: &str, state: &mut State) {
        state.case(spec, asked(spec, None));
        for target in self.targets(spec) {
            let cell = state.cell(&spec.id, &target.name);
            (cell.state, cell.reason) = (CellState::Cannot, Some(why.to_owned()));
        }
    }

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
            (None, Ok(backends)) => self.wanted(spec, map, backends),
        };
        let wanted = match specification {
            Ok(wanted) => wanted,
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
            match self.one(spec, map, &wanted, &target, state) {
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
        wanted: &TargetSpec,
        target: &TargetSelector,
        state: &mut State,
    ) -> Result<PreparedTarget, NotStarted> {
        let spec = &as_asked_of(spec, target);
        let mut ready = match &target.url {
            Some(_) if spec.hosts > 1 => {
                let why = format!(
                    "{} cannot: it is not ours to start, and the case needs several hosts",
                    target.name
                );
                return Err(NotStarted::Cannot(why));
            }
            Some(url) => self.external(spec, target, url, map, state),
            None => self.start(spec, map, wanted, target, state)?,
        };
        let arguments = command::arguments(
            spec,
            &ready.whom,
            &Load::Closed(spec.clients),
            spec.length,
            map,
            self.args.seed,
            &[],
        );
        self.say_asked(spec, &arguments, state);
        let kinds = match spec.keys.len() {
            1 => vec![("", Vec::new())],
            _ => clients(spec),
        };
        for (kind, client) in kinds {
            let arguments: Vec<String> = arguments.iter().cloned().chain(client).collect();
            let prepared =
                command::prepare(&arguments).map_err(|why| NotStarted::Failed(why.told().to_owned()))?;
            let outcome = verify(&prepared, spec);
            // A target that died says more than the connection that it cut.
            if let Some(why) = ready.ended() {
                return Err(NotStarted::Failed(format!("it ended at its first connection: {why}")));
            }
            let of = if kind.is_empty() { String::new() } else { format!("to a client that {kind}, ") };
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

    fn external(
        &self,
        spec: &CaseSpec,
        target: &TargetSelector,
        url: &str,
        map: &CoreMap,
        state: &mut State,
    ) -> PreparedTarget {
        note(
            state,
            TargetNotes {
                name: target.name.clone(),
                title: target.name.clone(),
                note: format!("not ours to start: {url}"),
                ..TargetNotes::default()
            },
        );
        let whom = TargetAddress {
            address: None,
            others: Vec::new(),
            url: Some(url.to_owned()),
            pid: None,
            origin_pid: None,
        };
        PreparedTarget {
            name: target.name.clone(),
            spec: spec.clone(),
            whom,
            cores: map.clone(),
            reached: None,
            running: None,
            delays: Vec::new(),
        }
    }

    fn start(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        wanted: &TargetSpec,
        target: &TargetSelector,
        state: &mut State,
    ) -> Result<PreparedTarget, NotStarted> {
        let name = definition_of(&target.name);
        let definition = find(name).map_err(NotStarted::Missing)?;
        let tls = wanted.tls.clone().filter(|_| spec.transport != Transport::Clear);
        let wanted = TargetSpec { tls, preset: target.preset, folder: self.folder(name), ..wanted.clone() };
        let running = target::start(definition, &wanted)?;
        note(
            state,
            TargetNotes {
                name: target.name.clone(),
                title: definition.title.clone(),
                program: running.program.display().to_string(),
                version: running.version.clone(),
                tls_library: running.library.clone(),
                preset: if target.preset == Preset::Stock { "stock" } else { "tuned" }.into(),
                note: definition.note.clone(),
            },
        );
        let cell = state.cell(&spec.id, &target.name);
        (cell.command, cell.files) = (running.command.clone(), running.files.clone());
        let mut addresses = [&[running.address], running.others.as_slice()].concat();
        let delays = self.delays(&addresses, map).map_err(NotStarted::Failed)?;
        if !delays.is_empty() {
            addresses = delays.iter().map(|delay| delay.address).collect();
        }
        let whom = TargetAddress {
            address: addresses.first().copied(),
            others: addresses.split_off(1),
            url: None,
            pid: (running.pid != 0).then_some(running.pid),
            origin_pid: self.origin.as_ref().map(|(_, origin)| origin.pid),
        };
        let name = target.name.clone();
        Ok(PreparedTarget {
            name,
            spec: spec.clone(),
            whom,
            cores: map.clone(),
            reached: None,
            running: Some(running),
            delays,
        })
    }

    /// Proxies that add a round-trip time between generator and target, one to each address; none without --rtt.
    fn delays(&mut self, to: &[SocketAddr], map: &CoreMap) -> Result<Vec<Running>, String> {
        let Some(rtt) = self.args.rtt else { return Ok(Vec::new()) };
        to.iter().map(|to| target::delay(*to, rtt, &map.origin, &self.folder("delay"))).collect()
    }

    /// What a case asks of every target.
    fn wanted(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        backends: Vec<SocketAddr>,
    ) -> Result<TargetSpec, String> {
        let tls = match &spec.transport {
            Transport::Clear => None,
            Transport::Tls(version) => Some(Tls {
                versions: vec![version.clone()],
                suites: spec.suite.iter().cloned().collect(),
                groups: spec.exchange.iter().cloned().collect(),
                certificates: self.certificates(&spec.keys)?,
                tickets: spec.cache && spec.resume == Resume::Ticket,
                session_cache: (spec.cache && spec.resume == Resume::Id).then_some(SESSION_CACHE),
            }),
        };
        Ok(TargetSpec {
            tls,
            preset: Preset::Tuned,
            workers: spec.cores,
            cpus: map.target.clone(),
            backends,
            backend_tls: spec.backend == Backend::Tls,
            http: spec.object.is_some(),
            backlog: BACKLOG,
            fleet: (spec.hosts > 1).then(|| Fleet::new(spec.hosts)).transpose()?,
            folder: PathBuf::new(),
        })
    }

    fn certificates(&self, keys: &[String]) -> Result<Vec<Certificate>, String> {
        let folder = self.scratch.path().join("keys");
        let one = |key: &String| {
            let kind: KeyKind = key.parse().map_err(|why| format!("{key}: {why}"))?;
            target::certificate(kind, &folder)
        };
        keys.iter().map(one).collect()
    }

    /// Where targets send what they have decrypted.
    fn backends(&mut self, spec: &CaseSpec, map: &CoreMap) -> Result<Vec<SocketAddr>, String> {
        if self.origin.is_none() {
            let folder = self.folder("origin");
            self.origin = Some(target::origin(SERVERS, &map.origin, &folder)?);
        }
        let addresses = self.origin.as_ref().map(|(addresses, _)| addresses.clone()).unwrap_or_default();
        match spec.backend {
            Backend::Plain => Ok(addresses.into_iter().take(1).collect()),
            Backend::Several => Ok(addresses),
            Backend::Tls => self.secure(&addresses, map).map(|address| vec![address]),
        }
    }

    /// A backend that speaks TLS: courser before the origin, on the origin's cores.
    fn secure(&mut self, origin: &[SocketAddr], map: &CoreMap) -> Result<SocketAddr, String> {
        if let Some(running) = &self.secure_origin {
            return Ok(running.address);
        }
        let wanted = TargetSpec {
            tls: Some(Tls {
                // nginx before 1.23.4 offers backends no TLS 1.3.
                versions: vec!["1.2".into(), "1.3".into()],
                suites: Vec::new(),
                groups: Vec::new(),
                certificates: self.certificates(&["P-256".to_owned()])?,
                tickets: true,
                session_cache: None,
            }),
            preset: Preset::Tuned,
            workers: 1,
            cpus: map.origin.clone(),
            backends: origin.iter().copied().take(1).collect(),
            backend_tls: false,
            http: true,
            backlog: BACKLOG,
            fleet: None,
            folder: self.folder("secure-origin"),
        };
        let running =
            target::start(find("courser")?, &wanted).map_err(|why| format!("the backend with TLS: {why}"))?;
        let address = running.address;
        self.secure_origin = Some(running);
        Ok(address)
    }

    fn folder(&mut self, name: &str) -> PathBuf {
        self.folders += 1;
        self.scratch.path().join(format!("{}-{name}", self.folders))
    }

    /// What was asked of all targets, from the first of them.
    fn say_asked(&self, spec: &CaseSpec, arguments: &[String], state: &mut State) {
        if let Some(case) =
            state.lab.cases.iter_mut().find(|case| case.id == spec.id && case.asked.is_empty())
        {
            case.asked = asked(spec, Some(arguments));
        }
    }

    /// A further block under a profiler, where that was asked for.
    pub(crate) fn profile(&mut self, target: &PreparedTarget, state: &mut State) {
        let Some(pid) = target.whom.pid else { return };
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

    fn sampled(&self, target: &PreparedTarget, pid: u32, folder: &Path) -> Result<Profile, String> {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let sampling = Sampling::start(pid, SAMPLES, folder)?;
        let turn = BlockRun {
            spec: &target.spec,
            whom: &target.whom,
            cores: &target.cores,
            seed: self.args.seed,
            round: 0,
            interrupt: &self.interrupt,
            reached: target.reached,
        };
        turn.take().map_err(|why| why.told().to_owned())?;
        sampling.finish()
    }

    /// The least that a connection of the case can take, from what was negotiated.
    fn limit(&mut self, spec: &CaseSpec, verified: &Verified, state: &mut State) {
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
        match self.limits.of(&needs) {
            Ok(limit) => case.limit = Some(limit),
            // It is no fault of the case; said once, where what was asked stands.
            Err(why) => {
                let told = format!("no limit of the cryptography: {why}");
                if !case.asked.contains(&told) {
                    case.asked.push(told);
                }
            }
        }
    }
}

impl TargetSelector {
    /// `haproxy`, `haproxy:stock`, `haproxy@again`, `external=https://…`.
    fn parse(text: &str) -> Result<Self, Failure> {
        if let Some((name, url)) = text.split_once('=') {
            let _: Url = url.parse().map_err(|why| Failure::usage(format!("{text}: {why}")))?;
            return Ok(Self { name: name.to_owned(), preset: Preset::Tuned, url: Some(url.to_owned()) });
        }
        let words = text.split('@').next().unwrap_or(text);
        let preset = match words.split_once(':').map_or("tuned", |(_, preset)| preset) {
            "tuned" => Preset::Tuned,
            "stock" => Preset::Stock,
            other => {
                return Err(Failure::usage(format!("{text}: a preset is `stock` or `tuned`, not {other:?}")));
            }
        };
        find(definition_of(text)).map_err(Failure::usage)?;
        Ok(Self { name: text.to_owned(), preset, url: None })
    }
}

/// The name of a target's definition, without preset and label.
fn definition_of(name: &str) -> &str {
    name.split([':', '@']).next().unwrap_or(name)
}

/// The way without a terminator.
const DIRECT: &str = "direct";

/// A case as it is asked of a target: no TLS where nobody terminates it.
fn as_asked_of(spec: &CaseSpec, target: &TargetSelector) -> CaseSpec {
    let transport = if target.name == DIRECT { Transport::Clear } else { spec.transport.clone() };
    CaseSpec { transport, ..spec.clone() }
}

/// Whether there is such a target and preset.
///
/// # Errors
/// What is wrong with the name, and which is the nearest.
pub(crate) fn check(name: &str) -> Result<(), String> {
    TargetSelector::parse(name).map(drop).map_err(|why| why.told().to_owned())
}

/// The definition of a target.
pub(crate) fn find(name: &str) -> Result<&'static Definition, String> {
    let known = || target::catalogue().iter();
    known().find(|definition| definition.name == name).ok_or_else(|| {
        let nearest = known().min_by_key(|definition| strsim::damerau_levenshtein(&definition.name, name));
        let nearest = nearest.map(|definition| definition.name.as_str()).unwrap_or_default();
        format!("no target is called {name:?}: did you mean {nearest}? `courser-bench targets` lists them; one that is \
                 not ours to start is given as {name}=https://host:port")
    })
}

fn note(state: &mut State, notes: TargetNotes) {
    if !state.lab.targets.iter().any(|known| known.name == notes.name) {
        state.lab.targets.push(notes);
    }
}

/// Why a case has more connections than this process may have open.
fn descriptors(spec: &CaseSpec) -> Option<String> {
    let limit = courser_machine::machine::Machine::read().open_files;
    let needed = spec.clients * DESCRIPTORS + 200;
    (needed > limit).then(|| {
        format!(
            "{} connections need {needed} descriptors in a terminator; the limit of this machine is {limit}",
            spec.clients
        )
    })
}

/// What is asked of every target, in words and as a command.
fn asked(spec: &CaseSpec, arguments: Option<&[String]>) -> Vec<String> {
    let mut asked = vec![spec.title.clone()];
    asked.push(format!("backlog {BACKLOG}, {} worker(s), logging off", spec.cores));
    if spec.hosts > 1 {
        asked.push(format!(
            "{} hosts on the same cores, sharing what it takes to resume; each connection of a client goes to the next one",
            spec.hosts
        ));
    }
    if spec.transport != Transport::Clear {
        asked.push(match (spec.cache, spec.resume) {
            (false, _) => "no session cache, no tickets".to_owned(),
            (true, Resume::Ticket) => "tickets, no session cache".to_owned(),
            (true, Resume::Id) => format!("a session cache of {SESSION_CACHE}, no tickets"),
        });
    }
    asked.extend(arguments.map(command::line));
    asked
}
