//! A host: a worker with its cache, and its part in a fleet.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;

use courser_net::{Address, ListenSocket, Liveness};
use courser_proxy::settings::{Listener, Names, SendProxy, VirtualHost};
use courser_proxy::{Admission, Backend, Certificates, Counters, Counts, Phase, Pool, Worker};
use courser_session::{Cache, Ticketer};
use courser_sharing::{FleetHandle, Sharing};
use courser_telemetry::{Format, Sink};
use courser_tls::{ClientAuth, Identity, ServerOffer, ServerTlsConfig, Sessions, Version};
use tokio::sync::watch;

use crate::member::{LIFETIME, keys, member, policy};

pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    pub(crate) cache: Arc<Cache>,
    pub(crate) fleet: Option<FleetHandle>,
    counters: Arc<Counters>,
    phase: watch::Sender<Phase>,
    worker: Option<JoinHandle<()>>,
    /// Takes connections, and says nothing.
    _backend: TcpListener,
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
        let listener = Arc::new(listener(&cache, backend.local_addr().unwrap()));
        let any = Address::Ip("127.0.0.1:0".parse().unwrap());
        let socket = ListenSocket::open(&any, false, 64, 1).unwrap().remove(0);
        let Address::Ip(address) = *socket.address() else { panic!("an Internet address") };
        let (phase, phase_receiver) = watch::channel(Phase::Serving);
        let counters = Arc::<Counters>::default();
        let mut sharing = Sharing::alone(Arc::clone(&cache), true);
        sharing.fleet.clone_from(&fleet);
        change(&mut sharing);
        let worker = Worker {
            index: 0,
            cpu: None,
            sockets: vec![(socket, listener)],
            admission: Arc::new(Admission::new(100)),
            lines: Sink::new(std::io::sink()).0.lines(Format::Off),
            sharing: Some(sharing),
            counters: Arc::clone(&counters),
            confinement: None,
            phase: phase_receiver,
        };
        let worker = Some(std::thread::spawn(move || worker.run().map(drop).unwrap()));
        Self { address, cache, fleet, counters, phase, worker, _backend: backend }
    }

    /// What was counted, once so many handshakes are: a client may be done before the host has counted it.
    pub(crate) fn counts(&self, handshakes: u64) -> Counts {
        crate::wait_for("the count of handshakes", || {
            let counts = self.counters.read();
            (counts.handshakes() >= handshakes).then_some(counts)
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

impl Drop for Host {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Stopping);
        let ended = self.worker.take().map(JoinHandle::join);
        assert!(
            std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()),
            "the worker has panicked"
        );
    }
}

fn listener(cache: &Arc<Cache>, backend: SocketAddr) -> Listener {
    Listener {
        name: "public".to_owned(),
        handshake_timeout: crate::PATIENCE,
        refuse_unknown: false,
        default: Arc::new(virtual_host(cache, backend)),
        hosts: Names::default(),
    }
}

fn virtual_host(cache: &Arc<Cache>, backend: SocketAddr) -> VirtualHost {
    let sessions = Sessions {
        cache: Some(Arc::clone(cache)),
        ticketer: Some(Arc::new(Ticketer::new(keys()))),
        lifetime: LIFETIME,
    };
    let offer = ServerOffer {
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
        terms: terms.unwrap(),
        policy: policy(),
        certificates: Certificates::new(&[Arc::new(identity)]),
        pool: Pool::new(vec![Backend::fixed(Address::Ip(backend))], 1),
        announce: SendProxy::Off,
        connect_timeout: crate::PATIENCE,
        idle_timeout: crate::PATIENCE,
        client_fin_timeout: crate::PATIENCE,
        backend_fin_timeout: crate::PATIENCE,
        max_connection_age: None,
        liveness: Liveness::default(),
        reset_truncated: false,
    }
}
