//! From settings to one generation: listeners, virtual hosts, certificates and pools, immutable and replaced as a whole.
//! Opens nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use courser_balance::Balance;
use courser_config::{
    BackendAddress, Backends, Config, HostConfig, ListenerConfig, Network, OnTruncation, PoolConfig,
    ServerConfig, TlsVersion, UnknownName,
};
use courser_net::{Address, Liveness};
use courser_proxy::settings::{AcceptProxy, Forwarding, Listener, Names, SendProxy, VirtualHost};
use courser_proxy::{Affinity, Certificates, Distribution, Location, Lookable, Pool, ServerSpec};
use courser_session::PolicyHash;
use courser_telemetry::event::{Level, log};
use courser_telemetry::metrics::UNKNOWN;
use courser_tls::{BackendTlsConfig, ClientAuth, ServerTlsConfig, ServerTlsSpec, Sessions, Version};

use crate::certificates::LoadedCertificates;
use crate::exit::Failure;
use crate::pools::{PoolSettings, Pools};
use crate::process::Process;

mod rules;

pub(crate) struct Generation {
    pub(crate) listeners: Vec<BuiltListener>,
    /// Those of the configuration and those of hosts that name none.
    pub(crate) pools: Pools,
}

pub(crate) struct BuiltListener {
    pub(crate) settings: ListenerConfig,
    pub(crate) listener: Arc<Listener>,
}

pub(crate) fn build(
    config: &Config,
    certificates: &LoadedCertificates,
    process: &Process,
    previous: &Pools,
) -> Result<Generation, Failure> {
    let mut pools = Pools::default();
    for pool in &config.pools {
        let tls = certificates.backend_tls(pool.tls.as_ref())?;
        let settings = PoolSettings::Named(Box::new(pool.clone()), fingerprint(tls.as_ref()));
        pools.add(settings, previous, || pool_of(pool, tls.as_ref(), process));
    }
    let context = Context { config, certificates, process, previous, pools: RefCell::new(pools) };
    let build = |settings: &ListenerConfig| {
        let listener = Arc::new(listener(settings, &context)?);
        Ok(BuiltListener { settings: settings.clone(), listener })
    };
    let listeners = config.listeners.iter().map(build).collect::<Result<_, Failure>>()?;
    Ok(Generation { listeners, pools: context.pools.into_inner() })
}

/// What tells one pool's TLS from another's: files may change while their names stay.
fn fingerprint(tls: Option<&Arc<BackendTlsConfig>>) -> Option<[u8; 32]> {
    tls.map(|tls| tls.fingerprint())
}

/// What a generation is made of beside its listeners.
struct Context<'a> {
    config: &'a Config,
    certificates: &'a LoadedCertificates,
    process: &'a Process,
    /// Of the generation before.
    previous: &'a Pools,
    /// Hosts that name the same pool share it; those that name none get one as they are made.
    pools: RefCell<Pools>,
}

fn listener(settings: &ListenerConfig, context: &Context<'_>) -> Result<Listener, Failure> {
    let build = |host: &HostConfig| host_of(settings, host, context);
    let default = Arc::new(build(&settings.default)?);
    let (mut hosts, mut by_name) = (Names::default(), HashMap::new());
    by_name.insert(settings.default.name.as_str(), Arc::clone(&default));
    for host in &settings.hosts {
        let built = Arc::new(build(host)?);
        by_name.insert(&host.name, Arc::clone(&built));
        for name in names_of(host, context.certificates) {
            hosts.insert(&name, Arc::clone(&built));
        }
    }
    Ok(Listener {
        name: settings.name.clone(),
        handshake_timeout: settings.handshake_timeout,
        accept_proxy: settings.accept_proxy.as_ref().map(accept_proxy),
        rules: rules::of(settings, &by_name, context)?,
        refuse_unknown: settings.unknown_name == UnknownName::Refuse,
        default,
        hosts,
        counters: context.process.directory.listener(&settings.name),
        unknown_host: context.process.directory.host(&settings.name, UNKNOWN),
    })
}

fn accept_proxy(sources: &courser_config::AcceptProxy) -> AcceptProxy {
    let network = |network: &Network| (network.address, network.prefix);
    AcceptProxy { networks: sources.networks.iter().map(network).collect(), unix: sources.unix }
}

fn names_of(host: &HostConfig, certificates: &LoadedCertificates) -> Vec<String> {
    if host.names.is_empty() {
        certificates.of(host).iter().flat_map(|identity| identity.names.clone()).collect()
    } else {
        host.names.clone()
    }
}

fn host_of(
    listener: &ListenerConfig,
    host: &HostConfig,
    context: &Context<'_>,
) -> Result<VirtualHost, Failure> {
    let Context { config, certificates, process, .. } = context;
    let client_auth = certificates.client_auth(host)?;
    Ok(VirtualHost {
        name: host.name.clone(),
        policy: policy(&listener.session_scope, host, &client_auth),
        tls: terms(host, config, client_auth, &process.sessions)?,
        certificates: Certificates::new(&certificates.of(host)),
        forwarding: Arc::new(forwarding(listener, host, context)?),
        counters: process.directory.host(&listener.name, &host.name),
    })
}

fn forwarding(
    listener: &ListenerConfig,
    host: &HostConfig,
    context: &Context<'_>,
) -> Result<Forwarding, Failure> {
    Ok(Forwarding {
        pool: match &host.backends {
            Backends::Own(addresses) => {
                let tls = context.certificates.backend_tls(host.backend_tls.as_ref())?;
                let name = format!("{}/{}", listener.name, host.name);
                let (servers, queue_timeout) = (addresses.clone(), host.connect_timeout);
                let settings = PoolSettings::Own {
                    name: name.clone(),
                    servers,
                    queue_timeout,
                    tls: fingerprint(tls.as_ref()),
                };
                let make = || own_pool(addresses, name, host, tls.as_ref(), context.process);
                context.pools.borrow_mut().add(settings, context.previous, make)
            }
            Backends::Pool(name) => {
                let pools = context.pools.borrow();
                Arc::clone(pools.named(name).expect("the configuration has the pools that hosts name"))
            }
        },
        send_proxy: send_proxy(host.send_proxy),
        connect_timeout: host.connect_timeout,
        idle_timeout: host.idle_timeout,
        client_fin_timeout: host.client_fin_timeout,
        backend_fin_timeout: host.backend_fin_timeout,
        max_connection_age: host.max_connection_age,
        liveness: liveness(host),
        reset_truncated: host.on_truncation == OnTruncation::Reset,
    })
}

fn send_proxy(version: courser_config::SendProxy) -> SendProxy {
    match version {
        courser_config::SendProxy::Off => SendProxy::Off,
        courser_config::SendProxy::V1 => SendProxy::V1,
        courser_config::SendProxy::V2Addresses => SendProxy::V2Addresses,
        courser_config::SendProxy::V2 => SendProxy::V2,
        courser_config::SendProxy::V2ClientCert => SendProxy::V2ClientCert,
    }
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

/// Binds sessions to the host's configured name, to its policy for client certificates and to what it may negotiate; not to its
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

/// The pool of a host that names none.
fn own_pool(
    addresses: &[BackendAddress],
    name: String,
    host: &HostConfig,
    tls: Option<&Arc<BackendTlsConfig>>,
    process: &Process,
) -> Pool {
    let server = |address: &BackendAddress| ServerSpec {
        location: location(address),
        weight: NonZeroU32::MIN,
        max_connections: None,
        backup: false,
        tls: tls.cloned(),
    };
    let how =
        Distribution { name, balance: Balance::Least, affinity: None, queue_timeout: host.connect_timeout };
    let Process { resolver, orders, .. } = process;
    Pool::new(addresses.iter().map(server).collect(), how, resolver, orders, process.workers())
}

fn pool_of(pool: &PoolConfig, tls: Option<&Arc<BackendTlsConfig>>, process: &Process) -> Pool {
    let server = |server: &ServerConfig| ServerSpec {
        location: location(&server.address),
        weight: server.weight,
        max_connections: server.max_connections,
        backup: server.backup,
        tls: tls.cloned(),
    };
    let balance = match pool.balance {
        courser_config::Balance::Least => Balance::Least,
        courser_config::Balance::RoundRobin => Balance::RoundRobin,
        courser_config::Balance::Random => Balance::Random,
        courser_config::Balance::Latency => Balance::Latency,
    };
    let how = Distribution {
        name: pool.name.clone(),
        balance,
        affinity: pool.affinity.map(affinity),
        queue_timeout: pool.queue_timeout,
    };
    let Process { resolver, orders, .. } = process;
    Pool::new(pool.servers.iter().map(server).collect(), how, resolver, orders, process.workers())
}

fn affinity(affinity: courser_config::Affinity) -> Affinity {
    match affinity {
        courser_config::Affinity::Source { v4, v6 } => Affinity::Source { v4, v6 },
        courser_config::Affinity::ServerName => Affinity::ServerName,
        courser_config::Affinity::ClientCertificate => Affinity::ClientCertificate,
        courser_config::Affinity::Session => Affinity::Session,
    }
}

fn location(address: &BackendAddress) -> Location {
    match address {
        BackendAddress::Ip(address) => Location::Fixed(Address::Ip(*address)),
        BackendAddress::Unix(path) => Location::Fixed(Address::Unix(path.clone())),
        BackendAddress::Abstract(name) => Location::Fixed(Address::Abstract(name.clone())),
        BackendAddress::Name { host, port } => {
            Location::LookedUp(Lookable::Name { host: host.clone(), port: *port })
        }
        BackendAddress::Service(name) => Location::LookedUp(Lookable::Service(name.clone())),
    }
}

pub(crate) fn liveness(host: &HostConfig) -> Liveness {
    Liveness { keepalive: host.tcp_keepalive, user_timeout: host.tcp_user_timeout }
}

impl BuiltListener {
    /// Logs what the listener serves, with which certificates and backends.
    pub(crate) fn log(&self) {
        let Self { settings, listener } = self;
        for (number, rule) in settings.routes.iter().enumerate() {
            log(Level::Info, format_args!("listener {}, rule {}: {rule}", settings.name, number + 1));
        }
        let hosts = std::iter::once(&settings.default).chain(&settings.hosts);
        for host in hosts.filter(|_| settings.terminates()) {
            let backends = match &host.backends {
                Backends::Own(addresses) => {
                    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    format!("backends: {}", addresses.join(", "))
                }
                Backends::Pool(name) => format!("pool: {name}"),
            };
            let served = if host.name == settings.default.name {
                listener.default.certificates.describe()
            } else {
                host.names
                    .first()
                    .and_then(|name| listener.hosts.get(name))
                    .map_or_else(|| "certificates of its own".to_owned(), |host| host.certificates.describe())
            };
            let name = &settings.name;
            log(Level::Info, format_args!("listener {name}, host {}: {served}; {backends}", host.name));
        }
    }
}
