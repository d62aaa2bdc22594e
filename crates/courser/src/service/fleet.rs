//! The fleet's thread, where messages are configured.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use courser_config::{Config, Fleet as Settings, Located, Problem};
use courser_fleet::{AddressRange, Allowed, Incarnation, MemberName, MemberSettings, UnixMillis};
use courser_net::datagram::Interface;
use courser_net::lookup::{Lookup, look_up};
use courser_net::{DatagramSettings, DatagramSocket};
use courser_proxy::Threads;
use courser_session::{Cache, FleetKeys, SecretBytes};
use courser_sharing::{Fleet, FleetHandle};
use courser_telemetry::Counts;
use courser_telemetry::event::{Level, log};

use super::{STOP_TIME, Service};
use crate::exit::Failure;
use crate::process::Process;
use crate::status::Status;
use crate::status_source;
use crate::succeed::{Endpoint, Shared, TakenOver};

pub(crate) struct FleetService {
    settings: Settings,
    listen: Located<SocketAddr>,
    interface: Option<Interface>,
    name: String,
    keys: Arc<FleetKeys>,
    cache: Arc<Cache>,
    handle: Arc<OnceLock<FleetHandle>>,
    /// For another process.
    descriptors: Mutex<Vec<OwnedFd>>,
    /// Of the process before this one, which sends and receives until [`Self::begin`].
    inherited: Mutex<Vec<OwnedFd>>,
    /// Dropped when this process begins.
    waits: Mutex<Option<Sender<Infallible>>>,
    /// Dropped when names need not be looked up any more.
    names: Mutex<Option<Sender<Infallible>>>,
}

impl FleetService {
    /// `None` where the configuration has no address for messages, or nothing to send in them.
    pub(crate) fn new(
        config: &Config,
        interface: Option<Interface>,
        process: &Process,
        inherited: Vec<OwnedFd>,
    ) -> Option<Self> {
        Some(Self {
            settings: config.fleet.clone(),
            listen: config.fleet.listen.clone()?,
            interface,
            name: process.name.clone(),
            keys: Arc::clone(&process.fleet.as_ref()?.keys),
            cache: Arc::clone(process.sessions.cache.as_ref()?),
            handle: Arc::default(),
            descriptors: Mutex::default(),
            inherited: Mutex::new(inherited),
            waits: Mutex::default(),
            names: Mutex::default(),
        })
    }

    /// The other hosts. Where they have names, these are looked up now and from then on.
    fn find_peers(&self, own: SocketAddr, threads: &Threads) -> Result<Vec<SocketAddr>, Failure> {
        if self.settings.peer_names.is_empty() {
            return Ok(self.settings.peers.clone());
        }
        let (running, stopped) = channel();
        *lock(&self.names) = Some(running);
        let (sender, first) = sync_channel(1);
        let (settings, handle) = (self.settings.clone(), Arc::clone(&self.handle));
        let work = move || {
            let (mut names, mut known) = (PeerNames::new(&settings, own), None);
            loop {
                let found = names.look_up();
                match handle.get() {
                    // Taken at the start, if it has waited for it.
                    None => drop(sender.try_send(found)),
                    Some(_) if known.as_ref() == Some(&found) => {}
                    Some(handle) => {
                        handle.set_peers(found.clone(), allowed(&settings, &found, own));
                        known = Some(found);
                    }
                }
                if stopped.recv_timeout(LOOK_UP) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let started = threads.spawn("fleet-names", work);
        started.map_err(|error| Failure::runtime("cannot start the look-up of peers", error))?;
        Ok(first.recv_timeout(FIRST_ADDRESSES).unwrap_or_else(|_| self.settings.peers.clone()))
    }

    /// Once it is started.
    pub(crate) fn handle(&self) -> Option<FleetHandle> {
        self.handle.get().cloned()
    }
}

impl Service for FleetService {
    fn name(&self) -> &'static str {
        "fleet"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let Settings { interface, .. } = &self.settings;
        let hops = interface.as_ref().map_or(1, |interface| interface.value.ttl);
        let interface = self.interface.clone();
        let settings = DatagramSettings { listen: self.listen.value, interface, hops, same_machine: true };
        let inherited = std::mem::take(&mut *lock(&self.inherited));
        let takes_over = !inherited.is_empty();
        let socket = match takes_over {
            true => DatagramSocket::adopt(&settings, inherited),
            false => DatagramSocket::open(&settings),
        };
        let wrong = |error: &dyn std::fmt::Display| {
            Failure::from(Problem::at(&self.listen.origin, error.to_string(), None))
        };
        let socket = socket.map_err(|error| wrong(&error))?;
        let descriptors = socket.descriptors().map_err(|error| wrong(&error))?;
        let (sender, begins) = channel();
        *lock(&self.waits) = takes_over.then_some(sender);
        let failed = |error: &dyn std::fmt::Display| Failure::runtime("cannot join the fleet", error);
        let name = MemberName::new(&self.name).map_err(|error| failed(&error))?;
        let random = |_| failed(&"the system gave no random bytes");
        let incarnation = Incarnation::new(now(), *SecretBytes::random().map_err(random)?.as_bytes());
        let secret = *SecretBytes::random().map_err(random)?.as_bytes();
        let mut settings = MemberSettings::new(name, incarnation, secret);
        let address = socket.address();
        let peers = self.find_peers(address, threads)?;
        settings.allowed = allowed(&self.settings, &peers, address);
        let (keys, cache) = (Arc::clone(&self.keys), Arc::clone(&self.cache));
        let begins = takes_over.then_some(begins);
        let count = peers.iter().filter(|peer| **peer != address).count();
        let joining = Fleet { socket, peers, settings, keys, cache, begins };
        let handle = joining.start(|name, work| threads.spawn(name, work)).map_err(|error| failed(&error))?;
        let to = match address.ip().is_multicast() {
            true => "by multicast".to_owned(),
            false => format!("peers: {count}"),
        };
        log(Level::Info, format_args!("fleet {}: messages at {address}, {to}", self.keys.fleet()));
        // It is started once.
        drop(self.handle.set(handle));
        *lock(&self.descriptors) = descriptors;
        Ok(())
    }

    fn stop(&self) -> bool {
        // A thread that still waits to begin would not hear it.
        drop(lock(&self.waits).take());
        drop(lock(&self.names).take());
        lock(&self.descriptors).clear();
        self.handle.get().is_none_or(|handle| handle.stop(STOP_TIME))
    }

    fn status(&self, status: &mut Status, counts: &mut Counts) {
        let found = self.handle.get().and_then(FleetHandle::status);
        status.messages = found.map(|found| status_source::messages(&found, counts));
    }
}

impl Endpoint for FleetService {
    /// As a new incarnation. With the identity and the counters of the process before this one a message could be sealed twice
    /// with one number, if the two did not agree for once.
    fn begin(&self) -> Result<(), Failure> {
        drop(lock(&self.waits).take());
        Ok(())
    }

    fn share(&self, shared: &mut Shared) -> io::Result<()> {
        let descriptors = lock(&self.descriptors);
        shared.process.fleet = Some((self.listen.value, descriptors.len()));
        descriptors.iter().try_for_each(|socket| {
            shared.descriptors.push(socket.try_clone()?);
            Ok(())
        })
    }

    fn end(&self, _kept: &TakenOver) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Between two look-ups of the names of peers.
const LOOK_UP: Duration = Duration::from_secs(5);

/// Time that the start waits for the first addresses of peers, as for those of backends.
const FIRST_ADDRESSES: Duration = Duration::from_secs(2);

/// The peers, with the addresses that their names had last.
struct PeerNames<'a> {
    settings: &'a Settings,
    own: SocketAddr,
    found: Vec<Vec<SocketAddr>>,
}

impl<'a> PeerNames<'a> {
    fn new(settings: &'a Settings, own: SocketAddr) -> Self {
        Self { settings, own, found: vec![Vec::new(); settings.peer_names.len()] }
    }

    /// All peers that this host's socket can reach, each once. A name has its earlier addresses while the resolver does not answer.
    fn look_up(&mut self) -> Vec<SocketAddr> {
        for (name, found) in self.settings.peer_names.iter().zip(&mut self.found) {
            match look_up(&name.host, name.port) {
                Lookup::Found(addresses) => *found = addresses,
                Lookup::NoSuchName => found.clear(),
                Lookup::Failed(_) => {}
            }
        }
        let mut all: Vec<_> =
            self.settings.peers.iter().chain(self.found.iter().flatten()).copied().collect();
        all.retain(|peer| peer.is_ipv4() == self.own.is_ipv4());
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The networks that messages are accepted from: those that are configured, and the peers.
fn allowed(settings: &Settings, peers: &[SocketAddr], own: SocketAddr) -> Vec<Allowed> {
    let ranges =
        settings.allow.iter().filter_map(|network| AddressRange::new(network.address, network.prefix));
    let peers = peers.iter().map(|peer| Allowed::Exact(*peer));
    let mut allowed: Vec<_> = ranges.map(Allowed::Range).chain(peers).collect();
    if allowed.is_empty() && !settings.peer_names.is_empty() {
        // An empty list would be everyone. Before a name has an address it is no one.
        allowed.push(Allowed::Exact(own));
    }
    allowed
}

fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
