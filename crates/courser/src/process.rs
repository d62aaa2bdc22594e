//! What is made once and lasts as long as the process: keys, sessions, counters, names of backends. Opens nothing, so
//! that `check` makes it too.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

use courser_config::Config;
use courser_fleet::MemberName;
use courser_net::cpu::Cpus;
use courser_proxy::{Crowd, Orders, Pulse, Resolver, Visitors};
use courser_session::{Cache, DEFAULT_SHARDS, SecretBytes, Ticketer};
use courser_telemetry::{Counters, Directory};
use courser_tls::Sessions;

use crate::acme::pending::Pending;
use crate::exit::Failure;
use crate::fleet_keys::PersistentKeys;

pub(crate) struct Process {
    /// Name of this host in its fleet.
    pub(crate) name: String,
    pub(crate) started: Instant,
    pub(crate) started_at: SystemTime,
    /// For each worker, the CPU that it is bound to.
    pub(crate) cpus: Vec<Option<usize>>,
    /// The fleet's keys, or keys of this host alone.
    pub(crate) keys: PersistentKeys,
    /// The same keys, if they are a fleet's.
    pub(crate) fleet: Option<PersistentKeys>,
    pub(crate) sessions: Sessions,
    /// One for each worker.
    pub(crate) counters: Vec<Arc<Counters>>,
    /// What is counted of listeners and hosts, over all generations.
    pub(crate) directory: Directory,
    /// One for each worker.
    pub(crate) pulses: Vec<Arc<Pulse>>,
    /// What workers share in overload.
    pub(crate) crowd: Arc<Crowd>,
    pub(crate) resolver: Resolver,
    /// What the operator has said of servers.
    pub(crate) orders: Arc<Orders>,
    /// What authorities may ask for now, where certificates are ordered.
    pub(crate) pending: Arc<Pending>,
    /// Another process has taken over: files of keys and sessions are its own now.
    pub(crate) is_superseded: AtomicBool,
}

impl Process {
    pub(crate) fn new(config: &Config, keys: PersistentKeys) -> Result<Self, Failure> {
        let cpus = Cpus::available();
        let workers = config.process.workers.unwrap_or_else(|| cpus.workers());
        Ok(Self {
            name: host_name(config)?,
            started: Instant::now(),
            started_at: SystemTime::now(),
            cpus: (0..workers).map(|worker| pinned(config, &cpus, worker)).collect(),
            sessions: sessions(config, &keys),
            fleet: keys.is_fleet().then(|| keys.clone()),
            keys,
            counters: (0..workers).map(|_| Arc::default()).collect(),
            directory: Directory::new(workers),
            pulses: (0..workers).map(|_| Arc::default()).collect(),
            crowd: crowd()?,
            resolver: Resolver::default(),
            orders: Arc::default(),
            pending: Arc::default(),
            is_superseded: AtomicBool::new(false),
        })
    }

    pub(crate) fn workers(&self) -> usize {
        self.cpus.len()
    }
}

fn crowd() -> Result<Arc<Crowd>, Failure> {
    let failed = |error| Failure::runtime("cannot draw a number for known visitors", error);
    let salt = SecretBytes::<4>::random().map_err(failed)?;
    Ok(Arc::new(Crowd::new(Visitors::new(u32::from_ne_bytes(*salt.as_bytes())), 0.0)))
}

fn pinned(config: &Config, cpus: &Cpus, worker: usize) -> Option<usize> {
    (config.process.pin && !cpus.order.is_empty()).then(|| cpus.order[worker % cpus.order.len()])
}

fn sessions(config: &Config, keys: &PersistentKeys) -> Sessions {
    let settings = &config.sessions;
    let capacity = usize::try_from(settings.cache_size).unwrap_or(usize::MAX);
    let cache = settings.session_ids.then(|| Arc::new(Cache::new(capacity, DEFAULT_SHARDS)));
    let ticketer = settings.tickets.then(|| Arc::new(Ticketer::new(Arc::clone(&keys.keys))));
    Sessions { cache, ticketer, lifetime: settings.lifetime }
}

/// As configured, or the machine's name with eight digits that differ from start to start: containers of one image have one
/// machine name, and of two members with one name only one is accepted.
fn host_name(config: &Config) -> Result<String, Failure> {
    if let Some(name) = &config.fleet.name {
        return Ok(name.clone());
    }
    let failed = |error| Failure::runtime("cannot make a name for this start", error);
    let start = SecretBytes::<4>::random().map_err(failed)?;
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let machine = machine.chars().filter(char::is_ascii_graphic).take(MemberName::MAX_LEN - 9);
    let start = start.as_bytes().iter().map(|byte| format!("{byte:02x}"));
    Ok(machine.chain(['-']).map(String::from).chain(start).collect())
}
