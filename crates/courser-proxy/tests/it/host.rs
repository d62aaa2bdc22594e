//! A host: a worker with its cache, and its part in a fleet.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU32;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use courser_balance::Balance;
use courser_net::{Address, ListenSocket, Liveness};
use courser_proxy::settings::{Forwarding, Listener, Names, SendProxy, VirtualHost};
use courser_proxy::{
    Admission, Certificates, Command, Distribution, Listeners, Location, OverloadSettings, Pool, Resolver,
    ServerSpec, Worker,
};
use courser_session::{Cache, ResumptionFailure, Ticketer};
use courser_sharing::{FleetHandle, Sharing};
use courser_telemetry::metrics::{Metric, RemoteLookup, UNKNOWN};
use courser_telemetry::{Counters, Counts, Directory, Format, Resumption, Sink};
use courser_tls::{ClientAuth, Identity, ServerTlsConfig, ServerTlsSpec, Sessions, Version};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::member::{LIFETIME, keys, member, policy};

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) cache: Arc<Cache>,
    pub(crate) fleet: Option<FleetHandle>,
    counters: Arc<Counters>,
    commands: UnboundedSender<Command>,
    worker: Option<JoinHandle<()>>,
    virtual_host: Arc<VirtualHost>,
}

impl Host {
    /// A host on its own.
    pub(crate) fn alone() -> Self {
        Self::start(Arc::new(Cache::new(1 << 20, 1)), None, |_| {})
    }

    /// A host that is a member at `fleet`'s first address, with the others as peers.
    pub(crate) fn member(name: &str, own: UdpSocket, peers: &[SocketAddr]) -> Self {
        Self::member_with(name, own, peers, |_| {})
    }

    pub(crate) fn member_with(
        name: &str,
        own: UdpSocket,
        peers: &[SocketAddr],
        change: impl FnOnce(&mut Sharing),
    ) -> Self {
        let cache = Arc::new(Cache::new(1 << 20, 1));
        let fleet = member(name, own, peers, Arc::clone(&cache));
        Self::start(cache, Some(fleet), change)
    }

    fn start(cache: Arc<Cache>, fleet: Option<FleetHandle>, change: impl FnOnce(&mut Sharing)) -> Self {
        let backend = TcpListener::bind("127.0.0.1:0").unwrap();
        let virtual_host = Arc::new(virtual_host(&cache, backend.local_addr().unwrap()));
        std::thread::spawn(move || backend.incoming().for_each(close_after_the_client));
        let (socket, address) = listen();
        let (commands, orders) = unbounded_channel();
        let counters = Arc::<Counters>::default();
        let mut sharing = Sharing::alone(Arc::clone(&cache), true);
        sharing.fleet.clone_from(&fleet);
        change(&mut sharing);
        let worker = Worker {
            index: 0,
            cpu: None,
            admission: Arc::new(Admission::new(100)),
            lines: Sink::new(std::io::sink()).0.lines(Format::Off),
            sharing: Some(sharing),
            challenges: Arc::default(),
            counters: Arc::clone(&counters),
            pulse: Arc::default(),
            overload: OverloadSettings::off(),
            confinement: None,
            commands: orders,
        };
        let worker = Some(std::thread::spawn(move || worker.run().map(drop).unwrap()));
        let host = Self { address, cache, fleet, counters, commands, worker, virtual_host };
        host.swap(address, vec![socket]);
        host
    }

    /// Replaces the generation by a new one of the same settings, with a listener at `address` alone.
    pub(crate) fn swap(&self, address: SocketAddr, opened: Vec<ListenSocket>) -> Weak<Listener> {
        let listener = Arc::new(generation(&self.virtual_host));
        let weak = Arc::downgrade(&listener);
        let listeners = Arc::new(Listeners::from([(Address::Ip(address), listener)]));
        self.commands.send(Command::Swap { listeners, opened, taken: std::sync::mpsc::channel().0 }).unwrap();
        weak
    }

    /// What was counted, once so many handshakes are: a client may be done before the host has counted it.
    pub(crate) fn counts(&self, handshakes: u64) -> HandshakeCounts {
        crate::wait_for("the count of handshakes", || {
            let done = |kind: Resumption| {
                let outcomes = self.virtual_host.counters.outcomes();
                outcomes
                    .filter(|(outcome, _)| outcome.kind == Some(kind))
                    .map(|(_, count)| count)
                    .sum::<u64>()
            };
            let by_kind: Vec<u64> = Resumption::ALL.iter().map(|&kind| done(kind)).collect();
            let is_enough = by_kind.iter().sum::<u64>() >= handshakes;
            is_enough.then(|| HandshakeCounts::new(&by_kind, &self.counters.read()))
        })
    }

    pub(crate) fn fleet(&self) -> &FleetHandle {
        self.fleet.as_ref().unwrap()
    }

    /// Waits until so many peers have proven that they live.
    pub(crate) fn wait_for_peers(&self, count: usize) {
        crate::wait_for("peers", || {
            (self.fleet().status().unwrap().member.peers.len() >= count).then_some(())
        });
    }

    /// Waits until the cache has so many sessions.
    pub(crate) fn wait_for_sessions(&self, count: usize) {
        crate::wait_for("sessions", || (self.cache.stats().entries == count).then_some(()));
    }
}

/// What tests ask for.
pub(crate) struct HandshakeCounts {
    pub(crate) full: u64,
    /// Resumed by the ID of a session that was made on this host.
    pub(crate) by_id: u64,
    /// Resumed by the ID of a session that was made on another host.
    pub(crate) by_remote_id: u64,
    pub(crate) lookups_started: u64,
    pub(crate) found_in_fleet: u64,
    pub(crate) lookups_suppressed: u64,
    failures: Vec<u64>,
}

impl HandshakeCounts {
    fn new(handshakes: &[u64], counts: &Counts) -> Self {
        let [lookups, remote] =
            [Metric::RemoteLookups, Metric::RemoteSessions].map(|metric| counts.of(metric));
        Self {
            full: handshakes[Resumption::Full as usize],
            by_id: handshakes[Resumption::SessionId as usize] - remote[0],
            by_remote_id: remote[0],
            lookups_started: lookups[RemoteLookup::Started as usize],
            found_in_fleet: lookups[RemoteLookup::FoundInFleet as usize],
            lookups_suppressed: lookups[RemoteLookup::Suppressed as usize],
            failures: counts.of(Metric::ResumptionFailures).to_vec(),
        }
    }

    /// How often a session was not resumed for this reason.
    pub(crate) fn missed(&self, reason: ResumptionFailure) -> u64 {
        self.failures[reason as usize]
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Stop);
        let ended = self.worker.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()),
            "the worker has panicked"
        );
    }
}

/// The backend's part: it sends nothing, and ends with its client.
fn close_after_the_client(stream: std::io::Result<TcpStream>) {
    std::thread::spawn(move || std::io::copy(&mut stream.unwrap(), &mut std::io::sink()));
}

/// A listening socket at a free port.
pub(crate) fn listen() -> (ListenSocket, SocketAddr) {
    let any = Address::Ip("127.0.0.1:0".parse().unwrap());
    let socket = ListenSocket::open(&any, false, 64, 1).unwrap().remove(0);
    let Address::Ip(address) = *socket.address() else { panic!("an Internet address") };
    (socket, address)
}

fn generation(default: &Arc<VirtualHost>) -> Listener {
    let directory = Directory::new(1);
    Listener {
        name: "public".to_owned(),
        handshake_timeout: crate::PATIENCE,
        accept_proxy: None,
        rules: Vec::new(),
        refuse_unknown: false,
        default: Arc::clone(default),
        hosts: Names::default(),
        counters: directory.listener("public"),
        unknown_host: directory.host("public", UNKNOWN),
    }
}

fn virtual_host(cache: &Arc<Cache>, backend: SocketAddr) -> VirtualHost {
    let sessions = Sessions {
        cache: Some(Arc::clone(cache)),
        ticketer: Some(Arc::new(Ticketer::new(keys()))),
        lifetime: LIFETIME,
    };
    let offer = ServerTlsSpec {
        versions: vec![Version::Tls13, Version::Tls12],
        suites: vec![0x1301, 0xc02b],
        groups: vec![0x001d, 0x0017],
        alpn: Vec::new(),
        tickets: 2,
        client_auth: ClientAuth::none(),
    };
    let terms = ServerTlsConfig::new(offer, &sessions);
    let identity: Identity = courser_tls::self_signed(&["server.example".to_owned()]).unwrap();
    VirtualHost {
        name: "default".to_owned(),
        tls: Arc::new(terms.unwrap()),
        policy: policy(),
        certificates: Certificates::new(&[Arc::new(identity)]),
        forwarding: Arc::new(Forwarding {
            pool: Arc::new(pool(backend)),
            send_proxy: SendProxy::Off,
            connect_timeout: crate::PATIENCE,
            idle_timeout: crate::PATIENCE,
            client_fin_timeout: crate::PATIENCE,
            backend_fin_timeout: crate::PATIENCE,
            max_connection_age: None,
            liveness: Liveness::default(),
            reset_truncated: false,
        }),
        counters: Directory::new(1).host("public", "default"),
    }
}

fn pool(backend: SocketAddr) -> Pool {
    let location = Location::Fixed(Address::Ip(backend));
    let server =
        ServerSpec { location, weight: NonZeroU32::MIN, max_connections: None, backup: false, tls: None };
    let how = Distribution {
        name: "shop".to_owned(),
        balance: Balance::Least,
        affinity: None,
        queue_timeout: crate::PATIENCE,
    };
    Pool::new(vec![server], how, &Resolver::default(), &Arc::default(), 1)
}
