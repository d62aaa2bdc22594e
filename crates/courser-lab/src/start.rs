//! Starts what a case needs: keys, an origin server, targets.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use courser_load::origin::OriginSockets;
use courser_machine::allowed_cpus;
use courser_machine::quota::LimitGroup;
use courser_record::lab::{Cell, Measure, TargetNotes};
use courser_record::{Finding, Severity};

use super::block::BlockRun;
use super::command::TargetAddress;
use super::cores::{ByHand, CoreMap};
use super::overload::Reach;
use super::scratch::Scratch;
use super::state::{Notice, State};
use crate::error::Error;
use crate::files;
use crate::limit::Limits;
use crate::measure::Interrupt;
use crate::selector::{TargetSelector, find, parse_all};
use crate::share::{self, ShareChoice};
use crate::suite::{Backend, CaseSpec, Requests, Resume, Transport};
use crate::target::{
    self, Certificate, Definition, Fleet, KeyKind, NotStarted, Preset, Running, Sent, TargetSpec, Tls,
};

/// Sessions that a cache holds, where it is on.
pub(crate) const SESSION_CACHE: u32 = 20_000;

/// Connections that may wait to be accepted.
pub(crate) const BACKLOG: u32 = 4096;

/// The finding with the share of their cores that targets had.
const SHARE: &str = "server-share";

/// Servers behind a balancer.
const SERVERS: usize = 3;

/// How the cases of a suite are run.
pub struct BenchOptions {
    /// Seed of all random choices.
    pub seed: u64,
    /// Length of a block, or of a step of a staircase; the suite's without.
    pub length: Option<Duration>,
    /// Round-trip time that is added between generator and targets.
    pub rtt: Option<Duration>,
    /// CPUs that were named; the others are assigned.
    pub by_hand: ByHand,
    /// The share of its cores that each target is held to.
    pub share: ShareChoice,
    /// Prints what the record does not say.
    pub notice: Notice,
}

/// What all cases of a suite share.
pub(crate) struct Bench<'a> {
    pub(crate) options: &'a BenchOptions,
    /// The suite's targets.
    pub(crate) usual: &'a [String],
    pub(crate) interrupt: Interrupt,
    pub(crate) limits: Limits,
    pub(crate) chosen: Vec<TargetSelector>,
    /// Why targets have their whole cores although a share was to be theirs.
    pub(crate) no_share: Option<String>,
    /// The origin in the generator's loop, of cases in which they share a core.
    pub(crate) origin_sockets: Option<OriginSockets>,
    /// Ended before the folder that they write to goes.
    pub(crate) origin: Option<(Vec<SocketAddr>, Running)>,
    pub(crate) secure_origin: Option<Running>,
    pub(crate) scratch: Scratch,
    /// Folders made so far.
    pub(crate) folders: u32,
}

/// A target that runs, and negotiates what the case asks.
pub(crate) struct PreparedTarget {
    pub(crate) name: String,
    /// The case as it is asked of this target: the way without a terminator is in clear.
    pub(crate) spec: CaseSpec,
    pub(crate) address: TargetAddress,
    pub(crate) cores: CoreMap,
    pub(crate) reached: Option<Reach>,
    /// The kinds of clients that it serves, where the case tells them apart.
    pub(crate) clients: Vec<String>,
    pub(crate) running: Option<Running>,
    /// What holds it to a share of its cores.
    pub(crate) limit: Option<LimitGroup>,
    pub(crate) delays: Vec<Running>,
}

impl PreparedTarget {
    /// A block of it.
    pub(crate) fn run<'a>(&'a self, bench: &'a Bench<'_>, round: u32) -> BlockRun<'a> {
        BlockRun {
            spec: &self.spec,
            address: &self.address,
            cores: &self.cores,
            seed: bench.seed().wrapping_add(u64::from(round)),
            round,
            interrupt: bench.interrupt(),
            reached: self.reached,
            clients: &self.clients,
        }
    }

    /// What its hosts have told each other so far; none when they do not.
    pub(crate) fn sent(&self) -> Option<Sent> {
        self.running.as_ref()?.sent()
    }

    /// Ends what was started for it.
    pub(crate) fn end(&mut self) {
        self.running = None;
        // The group is empty now, and can be removed.
        self.limit = None;
        self.delays.clear();
    }

    /// Why it has ended; none while it runs.
    pub(crate) fn ended(&mut self) -> Option<String> {
        self.running.iter_mut().chain(&mut self.delays).find_map(Running::ended)
    }
}

impl<'a> Bench<'a> {
    pub(crate) fn new(
        options: &'a BenchOptions,
        names: &[impl AsRef<str>],
        usual: &'a [String],
        interrupt: Interrupt,
    ) -> Result<Self, Error> {
        let chosen = parse_all(names)?;
        let scratch = Scratch::new()?;
        let (origin, secure_origin) = (None, None);
        Ok(Self {
            no_share: None,
            origin_sockets: None,
            options,
            usual,
            interrupt,
            limits: Limits::default(),
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
        &self.options.by_hand
    }

    pub(crate) fn seed(&self) -> u64 {
        self.options.seed
    }

    /// How many targets a case has that names none of its own.
    pub(crate) fn count(&self) -> usize {
        if self.chosen.is_empty() { self.usual.len() } else { self.chosen.len() }
    }

    /// The targets of a case: those of the command line, or the group's, or the suite's.
    pub(crate) fn targets(&self, spec: &CaseSpec) -> Vec<TargetSelector> {
        if !self.chosen.is_empty() {
            return self.chosen.clone();
        }
        let names = spec.targets.as_ref().map_or(self.usual, Vec::as_slice);
        parse_all(names).unwrap_or_default()
    }

    pub(crate) fn external(
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
        let address = TargetAddress {
            address: None,
            others: Vec::new(),
            url: Some(url.to_owned()),
            pid: None,
            origin_pid: None,
            roots: None,
            origin: None,
        };
        PreparedTarget {
            name: target.name.clone(),
            spec: spec.clone(),
            address,
            cores: map.clone(),
            reached: None,
            clients: Vec::new(),
            running: None,
            limit: None,
            delays: Vec::new(),
        }
    }

    pub(crate) fn start(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        target_spec: &TargetSpec,
        target: &TargetSelector,
        definition: &Definition,
        state: &mut State,
    ) -> Result<PreparedTarget, NotStarted> {
        let tls = target_spec.tls.clone().filter(|_| spec.transport != Transport::Clear);
        let target_spec = TargetSpec {
            tls,
            preset: target.preset,
            folder: self.folder(definition.own_name()),
            ..target_spec.clone()
        };
        let running = target::start(definition, &target_spec)?;
        let share = self.options.share.of(spec, map).filter(|_| self.no_share.is_none());
        let share = share.map(|share| match target.is_direct() {
            true => self.options.share.of_direct(share),
            false => share,
        });
        let limit = hold(share, spec, &running, state.cell(&spec.id, &target.name))?;
        note(
            state,
            TargetNotes {
                name: target.name.clone(),
                title: target.title().unwrap_or_default(),
                program: running.program.display().to_string(),
                sha256: files::sha256(&running.program),
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
        let certificates = target_spec.tls.as_ref().map_or(&[][..], |tls| &tls.certificates);
        let roots = self.roots(certificates).map_err(NotStarted::Failed)?;
        // What is reached directly is an origin itself.
        let has_origin = !target.is_direct();
        let address = TargetAddress {
            address: addresses.first().copied(),
            others: addresses.split_off(1),
            url: None,
            pid: Some(running.pid),
            origin_pid: self
                .origin
                .as_ref()
                .filter(|_| has_origin && !map.is_shared())
                .map(|(_, origin)| origin.pid),
            origin: self.origin_sockets.clone().filter(|_| has_origin && map.is_shared()),
            roots,
        };
        let name = target.name.clone();
        Ok(PreparedTarget {
            name,
            spec: spec.clone(),
            address,
            cores: map.clone(),
            reached: None,
            clients: Vec::new(),
            running: Some(running),
            limit,
            delays,
        })
    }

    /// Finds out whether this machine permits the share that targets are to be held to, and notes it in the record.
    ///
    /// # Errors
    /// When a share was asked for by its number, and the machine does not.
    pub(crate) fn prepare_share(&mut self, cases: &[CaseSpec], state: &mut State) -> Result<(), Error> {
        let allowed = allowed_cpus();
        let of = |spec: &CaseSpec| {
            self.options.share.of(spec, &CoreMap::new(&allowed, spec.cores, self.by_hand()).ok()?)
        };
        let Some(share) = cases.iter().filter(|spec| spec.measure != Measure::InProcess).find_map(of) else {
            return Ok(());
        };
        let refused = share::probe(share).err().map(|why| why.to_string());
        if let (Some(why), ShareChoice::Of(_)) = (&refused, self.options.share) {
            return Err(Error::System(format!("--server-share: {why}")));
        }
        state.lab.findings.retain(|finding| finding.id != SHARE);
        let (severity, text, advice) = match &refused {
            None => {
                let text = format!(
                    "targets are held to {share} of their cores (a control group), so that they are the limit and not the \
                     generator: rates are for that share, and response times have its waits in them"
                );
                (Severity::Note, text, "--server-share off gives them all of their cores")
            }
            Some(why) => {
                let text = format!(
                    "targets have all of their cores, and a fast one may be faster than the generator beside it: {why}"
                );
                (Severity::Warning, text, "with --server-share off it is not tried")
            }
        };
        (self.options.notice)(&format!("{text}; {advice}"));
        state.lab.findings.push(Finding::new(SHARE, severity, text, advice));
        self.no_share = refused;
        Ok(())
    }

    /// Proxies that add a round-trip time between generator and target, one to each address; none without --rtt.
    pub(crate) fn delays(&mut self, to: &[SocketAddr], map: &CoreMap) -> Result<Vec<Running>, String> {
        let Some(rtt) = self.options.rtt else { return Ok(Vec::new()) };
        to.iter().map(|to| target::delay(*to, rtt, &map.origin, &self.folder("delay"))).collect()
    }

    /// What a case asks of every target.
    pub(crate) fn target_spec(
        &mut self,
        spec: &CaseSpec,
        map: &CoreMap,
        backends: Vec<SocketAddr>,
    ) -> Result<TargetSpec, String> {
        let tls = match &spec.transport {
            Transport::Clear => None,
            Transport::Tls(version) => Some(Tls {
                versions: vec![version.clone()],
                suites: spec.suites.clone(),
                groups: spec.exchange.iter().cloned().collect(),
                alpn: spec.alpn.iter().cloned().collect(),
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
            keep_alive: spec.requests != Requests::Exactly(1),
            backlog: BACKLOG,
            fleet: (spec.hosts > 1).then(|| Fleet::new(spec.hosts)).transpose()?,
            folder: PathBuf::new(),
        })
    }

    pub(crate) fn certificates(&self, keys: &[String]) -> Result<Vec<Certificate>, String> {
        let folder = self.scratch.path().join("keys");
        let one = |key: &String| {
            let kind: KeyKind = key.parse().map_err(|why| format!("{key}: {why}"))?;
            target::certificate(kind, &folder)
        };
        keys.iter().map(one).collect()
    }

    /// A file of these certificates for the generator to trust; none where a key is too small for today's libraries.
    fn roots(&self, certificates: &[Certificate]) -> Result<Option<PathBuf>, String> {
        let is_small = |one: &Certificate| matches!(one.kind, KeyKind::Rsa(bits) if bits < 2048);
        if certificates.is_empty() || certificates.iter().any(is_small) {
            return Ok(None);
        }
        let unread = |why: std::io::Error| format!("the certificates of a target: {why}");
        let kinds: Vec<String> = certificates.iter().map(|one| one.kind.to_string()).collect();
        let path = self.scratch.path().join(format!("{}.pem", kinds.join("-")));
        let text =
            certificates.iter().map(|one| fs::read_to_string(&one.chain)).collect::<Result<String, _>>();
        fs::write(&path, text.map_err(unread)?).map_err(unread)?;
        Ok(Some(path))
    }

    /// Where targets send what they have decrypted.
    pub(crate) fn backends(&mut self, spec: &CaseSpec, map: &CoreMap) -> Result<Vec<SocketAddr>, String> {
        let addresses = if map.is_shared() { self.origin_in_loop()? } else { self.origin_apart(map)? };
        match spec.backend {
            Backend::Plain => Ok(addresses.into_iter().take(1).collect()),
            Backend::Several => Ok(addresses),
            Backend::Tls => self.secure(&addresses, map).map(|address| vec![address]),
        }
    }

    /// The origin in the generator's loop.
    fn origin_in_loop(&mut self) -> Result<Vec<SocketAddr>, String> {
        let sockets = match self.origin_sockets.take() {
            Some(sockets) => sockets,
            None => {
                let any = SocketAddr::from(([127, 0, 0, 1], 0));
                OriginSockets::open(&[any; SERVERS]).map_err(|why| why.to_string())?
            }
        };
        Ok(self.origin_sockets.insert(sockets).addresses())
    }

    /// The origin in a process of its own.
    fn origin_apart(&mut self, map: &CoreMap) -> Result<Vec<SocketAddr>, String> {
        if self.origin.is_none() {
            let folder = self.folder("origin");
            self.origin = Some(target::origin(SERVERS, &map.origin, &folder)?);
        }
        Ok(self.origin.as_ref().map(|(addresses, _)| addresses.clone()).unwrap_or_default())
    }

    /// A backend that speaks TLS: courser before the origin, on the origin's cores.
    pub(crate) fn secure(&mut self, origin: &[SocketAddr], map: &CoreMap) -> Result<SocketAddr, String> {
        if let Some(running) = &self.secure_origin {
            return Ok(running.address);
        }
        let target_spec = TargetSpec {
            tls: Some(Tls {
                // nginx before 1.23.4 offers backends no TLS 1.3.
                versions: vec!["1.2".into(), "1.3".into()],
                suites: Vec::new(),
                groups: Vec::new(),
                alpn: Vec::new(),
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
            keep_alive: false,
            backlog: BACKLOG,
            fleet: None,
            folder: self.folder("secure-origin"),
        };
        let running = target::start(find("courser")?, &target_spec)
            .map_err(|why| format!("the backend with TLS: {why}"))?;
        let address = running.address;
        self.secure_origin = Some(running);
        Ok(address)
    }

    pub(crate) fn folder(&mut self, name: &str) -> PathBuf {
        self.folders += 1;
        self.scratch.path().join(format!("{}-{name}", self.folders))
    }
}

/// Holds a target to its share, and notes it in its cell.
fn hold(
    share: Option<f64>,
    spec: &CaseSpec,
    running: &Running,
    cell: &mut Cell,
) -> Result<Option<LimitGroup>, NotStarted> {
    let held = share.map(|share| share::hold(running.pid, share, spec.cores)).transpose();
    let (group, share) = held.map_err(NotStarted::Failed)?.unzip();
    if !cell.blocks.is_empty() && cell.server_share != share {
        let why = "its blocks were measured with another --server-share: name another file".to_owned();
        return Err(NotStarted::Failed(why));
    }
    cell.server_share = share;
    Ok(group)
}

fn note(state: &mut State, notes: TargetNotes) {
    if !state.lab.targets.iter().any(|known| known.name == notes.name) {
        state.lab.targets.push(notes);
    }
}
