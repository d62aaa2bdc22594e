//! From settings to what runs: sessions, one generation of listeners, their sockets.

use std::fs::File;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use courser_config::{
    Config, HostConfig, ListenAddress, ListenerConfig, Located, Log, OnTruncation, Problem, TlsVersion,
    UnknownName,
};
use courser_fleet::MemberName;
use courser_net::confinement::Confinement;
use courser_net::cpu::Cpus;
use courser_net::{Address, ListenSocket, Liveness, systemd};
use courser_proxy::settings::{Listener, Names, SendProxy, VirtualHost};
use courser_proxy::{Admission, Certificates, Threads};
use courser_session::{Cache, DEFAULT_SHARDS, PolicyHash, SecretBytes, Ticketer, Vault};
use courser_sharing::Sharing;
use courser_telemetry::event::{Level, log};
use courser_telemetry::{Counters, Format, Sink};
use courser_tls::{ClientAuth, ServerTlsConfig, ServerTlsSpec, Sessions, Version};

use crate::answers::StatusSource;
use crate::certificates::Loaded;
use crate::control::Control;
use crate::exit::Failure;
use crate::fleet_keys::PersistentKeys;
use crate::pools::Pools;
use crate::session_file::SessionFile;
use crate::sharing::{self, Prepared};
use crate::{capacity, hardening};

/// Everything that `run` needs.
pub(crate) struct Assembly {
    /// For each worker, its sockets.
    pub(crate) sockets: Vec<Vec<(ListenSocket, Arc<Listener>)>>,
    /// For each worker, the CPU to stay on.
    pub(crate) cpus: Vec<Option<usize>>,
    /// How many connections there may be, and are.
    pub(crate) admission: Arc<Admission>,
    pub(crate) log: Format,
    /// The connection log's way out.
    pub(crate) sink: Sink,
    pub(crate) drain_timeout: std::time::Duration,
    /// Sessions by ID, for housekeeping.
    pub(crate) cache: Option<Arc<Cache>>,
    /// The fleet's, or this process's own.
    pub(crate) keys: PersistentKeys,
    /// Answers questions while it is held.
    pub(crate) control: Option<Control>,
    /// For each worker, what it counts.
    pub(crate) counters: Vec<Arc<Counters>>,
    /// Where the cache is kept from one start to the next.
    pub(crate) session_file: Option<SessionFile>,
    /// What workers need to share sessions by ID.
    pub(crate) sharing: Option<Sharing>,
    /// What workers give up.
    pub(crate) confinement: Option<Arc<Confinement>>,
}

/// Puts the parts together; opens every socket.
pub(crate) fn assemble(
    config: &Config,
    certificates: &Loaded,
    fleet: Option<&PersistentKeys>,
    prepared: Prepared,
    threads: &Threads,
) -> Result<Assembly, Failure> {
    let cpus = Cpus::available();
    let workers = config.process.workers.unwrap_or_else(|| cpus.workers());
    let keys = fleet.map_or_else(|| PersistentKeys::alone(config), |fleet| Ok(fleet.clone()))?;
    let sessions = sessions(config, &keys);
    let name = host_name(config)?;
    let share = |cache| sharing::share(config, prepared, fleet, cache, &name, threads);
    let sharing = sessions.cache.as_ref().map(share).transpose()?;
    let counters: Vec<Arc<Counters>> = (0..workers).map(|_| Arc::default()).collect();
    let sink = sink(threads)?;
    let parts = StatusSource {
        name,
        started: Instant::now(),
        cache: sessions.cache.clone(),
        fleet: fleet.cloned(),
        counters: counters.clone(),
        sharing: sharing.clone(),
        log: sink.losses(),
    };
    let control = config.process.control.as_ref().map(|path| control(path, parts, threads)).transpose()?;
    let mut pools = Pools::new(workers, threads);
    let mut inherited =
        systemd::inherited().map_err(|error| Failure::runtime("cannot take systemd's sockets", error))?;
    let mut sockets: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    for settings in &config.listeners {
        let listener = Arc::new(listener(settings, certificates, config, &sessions, &mut pools)?);
        for address in &settings.listen {
            for opened in open(address, settings.backlog, workers, &mut inherited)? {
                watch_peers(&opened, &settings.default)?;
                announce(&opened, settings, &listener, workers);
                for (worker, socket) in sockets.iter_mut().zip(opened) {
                    worker.push((socket, Arc::clone(&listener)));
                }
            }
        }
    }
    pools.wait_for_addresses();
    Ok(Assembly {
        sockets,
        cpus: (0..workers).map(|worker| pinned(config, &cpus, worker)).collect(),
        admission: Arc::new(Admission::new(capacity::max_connections(config, workers))),
        log: match config.process.log {
            Log::Text => Format::Text,
            Log::Json => Format::Json,
            Log::Off => Format::Off,
        },
        sink,
        drain_timeout: config.process.drain_timeout,
        session_file: session_file(config, fleet, sessions.cache.as_ref()),
        keys,
        control,
        counters,
        cache: sessions.cache.clone(),
        sharing,
        confinement: hardening::confinement(&config.process),
    })
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

fn sink(threads: &Threads) -> Result<Sink, Failure> {
    let (sink, work) = Sink::new(unbuffered(io::stdout())?);
    threads.spawn("log", work).map_err(|error| Failure::runtime("cannot start the log", error))?;
    Ok(sink)
}

/// A standard stream as the file that it is: what is written is written, or fails, at once, and no lock is held meanwhile
/// that the process would need to end.
pub(crate) fn unbuffered(stream: impl AsFd) -> Result<File, Failure> {
    let file = stream.as_fd().try_clone_to_owned();
    file.map(File::from).map_err(|error| Failure::runtime("cannot write logs", error))
}

fn control(path: &Located<PathBuf>, parts: StatusSource, threads: &Threads) -> Result<Control, Failure> {
    Control::start(&path.value, parts, threads).map_err(|error| {
        let message = format!("cannot listen for questions on {}: {error}", path.value.display());
        Problem::at(&path.origin, message, None).into()
    })
}

/// As configured, or the machine's with eight digits that another start has not: containers of one image are machines of
/// one name, and of two hosts of one name only one is heard.
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

fn session_file(
    config: &Config,
    fleet: Option<&PersistentKeys>,
    cache: Option<&Arc<Cache>>,
) -> Option<SessionFile> {
    let (path, keys) = (config.sessions.file.as_ref()?.value.clone(), Arc::clone(&fleet?.keys));
    Some(SessionFile { path, vault: Vault::new(keys), cache: Arc::clone(cache?) })
}

fn listener(
    settings: &ListenerConfig,
    certificates: &Loaded,
    config: &Config,
    sessions: &Sessions,
    pools: &mut Pools<'_>,
) -> Result<Listener, Failure> {
    let mut build =
        |host: &HostConfig| host_of(&settings.session_scope, host, certificates, config, sessions, pools);
    let default = Arc::new(build(&settings.default)?);
    let mut hosts = Names::default();
    for host in &settings.hosts {
        let built = Arc::new(build(host)?);
        for name in names_of(host, certificates) {
            hosts.insert(&name, Arc::clone(&built));
        }
    }
    Ok(Listener {
        name: settings.name.clone(),
        handshake_timeout: settings.handshake_timeout,
        refuse_unknown: settings.unknown_name == UnknownName::Refuse,
        default,
        hosts,
    })
}

fn names_of(host: &HostConfig, certificates: &Loaded) -> Vec<String> {
    if host.names.is_empty() {
        certificates.of(host).iter().flat_map(|identity| identity.names.clone()).collect()
    } else {
        host.names.clone()
    }
}

fn host_of(
    listener: &str,
    host: &HostConfig,
    certificates: &Loaded,
    config: &Config,
    sessions: &Sessions,
    pools: &mut Pools<'_>,
) -> Result<VirtualHost, Failure> {
    let client_auth = certificates.client_auth(host)?;
    Ok(VirtualHost {
        name: host.name.clone(),
        policy: policy(listener, host, &client_auth),
        tls: terms(host, config, client_auth, sessions)?,
        certificates: Certificates::new(&certificates.of(host)),
        pool: pools.of(host)?,
        send_proxy: match host.send_proxy {
            courser_config::SendProxy::Off => SendProxy::Off,
            courser_config::SendProxy::V1 => SendProxy::V1,
            courser_config::SendProxy::V2 => SendProxy::V2,
        },
        connect_timeout: host.connect_timeout,
        idle_timeout: host.idle_timeout,
        client_fin_timeout: host.client_fin_timeout,
        backend_fin_timeout: host.backend_fin_timeout,
        max_connection_age: host.max_connection_age,
        liveness: liveness(host),
        reset_truncated: host.on_truncation == OnTruncation::Reset,
    })
}

fn terms(
    host: &HostConfig,
    config: &Config,
    client_auth: ClientAuth,
    sessions: &Sessions,
) -> Result<ServerTlsConfig, Failure> {
    let offer = ServerTlsSpec {
        versions: host.versions.iter().map(|version| version_of(*version)).collect(),
        suites: host.suites.iter().map(|suite| suite.code()).collect(),
        groups: host.groups.iter().map(|group| group.code()).collect(),
        alpn: host.alpn.iter().map(|protocol| protocol.clone().into_bytes()).collect(),
        tickets: config.sessions.tickets_per_handshake as usize,
        client_auth,
    };
    ServerTlsConfig::new(offer, sessions).map_err(|error| cannot_set_up(host, error))
}

fn cannot_set_up(host: &HostConfig, error: impl std::fmt::Display) -> Failure {
    Failure::runtime(format_args!("host {}: cannot set TLS up", host.name), error)
}

fn version_of(version: TlsVersion) -> Version {
    match version {
        TlsVersion::Tls12 => Version::Tls12,
        TlsVersion::Tls13 => Version::Tls13,
    }
}

/// Binds sessions to the host's configured name, to what it asks of clients and to what it may negotiate; not to its
/// certificates, which are renewed while sessions live.
fn policy(listener: &str, host: &HostConfig, client_auth: &ClientAuth) -> PolicyHash {
    let codes = |codes: Vec<u16>| codes.into_iter().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    PolicyHash::builder(listener, &host.name)
        .part("client-auth", client_auth.mode().as_bytes())
        .part("client-ca", client_auth.fingerprint())
        .part("versions", &codes(host.versions.iter().map(|version| version.code()).collect()))
        .part("suites", &codes(host.suites.iter().map(|suite| suite.code()).collect()))
        .part("groups", &codes(host.groups.iter().map(|group| group.code()).collect()))
        .finish()
}

fn liveness(host: &HostConfig) -> Liveness {
    Liveness { keepalive: host.tcp_keepalive, user_timeout: host.tcp_user_timeout }
}

/// Accepted sockets inherit it from the listening one, so that no connection pays for it.
fn watch_peers(opened: &[ListenSocket], host: &HostConfig) -> Result<(), Failure> {
    let set = |socket: &ListenSocket| socket.set_liveness(&liveness(host));
    let failed = |error| Failure::runtime("cannot set the keepalive of a listening socket", error);
    opened.iter().try_for_each(set).map_err(failed)
}

/// The sockets of an address, one for each worker; for `systemd` that of every socket that was passed.
fn open(
    address: &ListenAddress,
    backlog: u32,
    workers: usize,
    inherited: &mut Vec<(String, OwnedFd)>,
) -> Result<Vec<Vec<ListenSocket>>, Failure> {
    let open = |address: &Address, dual| {
        ListenSocket::open(address, dual, backlog, workers).map(|opened| vec![opened])
    };
    let opened = match address {
        ListenAddress::Any { port } => {
            let v6 = open(&Address::Ip(SocketAddr::from((Ipv6Addr::UNSPECIFIED, *port))), true);
            v6.or_else(|_| open(&Address::Ip(SocketAddr::from((Ipv4Addr::UNSPECIFIED, *port))), false))
        }
        ListenAddress::Ip(ip) => open(&Address::Ip(*ip), false),
        ListenAddress::Unix(path) => open(&Address::Unix(path.clone()), false),
        ListenAddress::Abstract(name) => open(&Address::Abstract(name.clone()), false),
        ListenAddress::Systemd(name) => adopt(name.as_deref(), workers, inherited),
    };
    opened.map_err(|error| Failure::runtime(format_args!("cannot listen on {address}"), error))
}

/// Takes the sockets that systemd passed under `name`, or all that are left.
fn adopt(
    name: Option<&str>,
    workers: usize,
    inherited: &mut Vec<(String, OwnedFd)>,
) -> io::Result<Vec<Vec<ListenSocket>>> {
    let (ours, others) = std::mem::take(inherited)
        .into_iter()
        .partition::<Vec<_>, _>(|(known, _)| name.is_none_or(|name| name == known));
    *inherited = others;
    if ours.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "systemd has passed no such socket"));
    }
    ours.into_iter().map(|(_, fd)| ListenSocket::adopt(fd, workers)).collect()
}

/// Says what listens where, with which certificates and backends.
fn announce(opened: &[ListenSocket], settings: &ListenerConfig, listener: &Listener, workers: usize) {
    let Some(socket) = opened.first() else { return };
    let name = &settings.name;
    log(Level::Info, format_args!("listening on {} (listener {name}, workers: {workers})", socket.address()));
    for host in std::iter::once(&settings.default).chain(&settings.hosts) {
        let backends: Vec<String> = host.backends.iter().map(ToString::to_string).collect();
        let served = if host.name == settings.default.name {
            listener.default.certificates.describe()
        } else {
            host.names
                .first()
                .and_then(|name| listener.hosts.get(name))
                .map_or_else(|| "certificates of its own".to_owned(), |host| host.certificates.describe())
        };
        log(
            Level::Info,
            format_args!("listener {name}, host {}: {served}; backends: {}", host.name, backends.join(", ")),
        );
    }
}
