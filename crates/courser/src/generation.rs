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
use courser_tls::{BackendTlsConfig, ClientAuth, Identity, ServerTlsConfig, ServerTlsSpec, Version};

use crate::certificates::LoadedCertificates;
use crate::exit::Failure;
use crate::pools::{PoolSettings, Pools};
use crate::process::Process;

mod rules;

pub(crate) struct Generation {
    pub(crate) listeners: Vec<BuiltListener>,
    /// Those of the configuration and those of hosts that name none.
    pub(crate) pools: Arc<Pools>,
}

#[derive(Clone)]
pub(crate) struct BuiltListener {
    pub(crate) settings: Arc<ListenerConfig>,
    pub(crate) listener: Arc<Listener>,
    /// The default one, and then those of the settings, in their order.
    hosts: Vec<BuiltHost>,
}

#[derive(Clone)]
struct BuiltHost {
    host: Arc<VirtualHost>,
    identities: Vec<Arc<Identity>>,
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
    let (pools, tls) = (RefCell::new(pools), RefCell::default());
    let context = Context { config, certificates, process, previous, pools, tls };
    let build = |settings| listener(settings, &context);
    let listeners = config.listeners.iter().map(build).collect::<Result<_, Failure>>()?;
    Ok(Generation { listeners, pools: Arc::new(context.pools.into_inner()) })
}

impl Generation {
    /// The same settings with these certificates. What they do not touch is the same in memory, so that one of a hundred
    /// thousand is replaced for the price of a look at the others.
    pub(crate) fn renew(&self, certificates: &LoadedCertificates) -> Self {
        let listeners = self.listeners.iter().map(|listener| listener.renew(certificates)).collect();
        Self { listeners, pools: Arc::clone(&self.pools) }
    }
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
    /// Hosts that negotiate alike share what is compiled of it.
    tls: RefCell<HashMap<Negotiated, Arc<ServerTlsConfig>>>,
}

/// Versions, suites, groups by their codes, and application protocols.
type Negotiated = ([Vec<u16>; 3], Vec<String>);

fn listener(settings: &Arc<ListenerConfig>, context: &Context<'_>) -> Result<BuiltListener, Failure> {
    let build = |host: &HostConfig| host_of(settings, host, context);
    let hosts = hosts_in(settings).map(build).collect::<Result<Vec<_>, _>>()?;
    let named = hosts_in(settings).zip(&hosts);
    let by_name = named.map(|(host, built)| (host.name.as_str(), Arc::clone(&built.host))).collect();
    let listener = Listener {
        name: settings.name.clone(),
        handshake_timeout: settings.handshake_timeout,
        accept_proxy: settings.accept_proxy.as_ref().map(accept_proxy),
        rules: rules::of(settings, &by_name, context)?,
        refuse_unknown: settings.unknown_name == UnknownName::Refuse,
        default: Arc::clone(&hosts[0].host),
        hosts: names(settings, &hosts),
        counters: context.process.directory.listener(&settings.name),
        unknown_host: context.process.directory.host(&settings.name, UNKNOWN),
    };
    Ok(BuiltListener { settings: Arc::clone(settings), listener: Arc::new(listener), hosts })
}

/// The default host first.
fn hosts_in(settings: &ListenerConfig) -> impl Iterator<Item = &HostConfig> {
    std::iter::once(&settings.default).chain(&settings.hosts)
}

/// The hosts but the default one, by the names that they serve: those of the settings, or of the certificates.
fn names(settings: &ListenerConfig, hosts: &[BuiltHost]) -> Names<Arc<VirtualHost>> {
    let mut by_name = Names::default();
    for (host, built) in settings.hosts.iter().zip(&hosts[1..]) {
        let of_certificates = built.identities.iter().flat_map(|identity| &identity.names);
        let of_certificates = of_certificates.take(if host.names.is_empty() { usize::MAX } else { 0 });
        for name in host.names.iter().chain(of_certificates) {
            by_name.insert(name, Arc::clone(&built.host));
        }
    }
    by_name
}

fn accept_proxy(sources: &courser_config::AcceptProxy) -> AcceptProxy {
    let network = |network: &Network| (network.address, network.prefix);
    AcceptProxy { networks: sources.networks.iter().map(network).collect(), unix: sources.unix }
}

fn host_of(
    listener: &ListenerConfig,
    host: &HostConfig,
    context: &Context<'_>,
) -> Result<BuiltHost, Failure> {
    let Context { certificates, process, .. } = context;
    let (client_auth, identities) = (certificates.client_auth(host)?, certificates.of(host));
    let built = VirtualHost {
        name: host.name.clone(),
        policy: policy(&listener.session_scope, host, &client_auth),
        tls: terms(host, client_auth, context)?,
        certificates: Certificates::new(&identities),
        forwarding: Arc::new(forwarding(listener, host, context)?),
        counters: process.directory.host(&listener.name, &host.name),
    };
    Ok(BuiltHost { host: Arc::new(built), identities })
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

/// A configuration of the library takes some ten kilobytes: of hosts that ask clients for no certificate it is shared.
fn terms(
    host: &HostConfig,
    client_auth: ClientAuth,
    context: &Context<'_>,
) -> Result<Arc<ServerTlsConfig>, Failure> {
    let versions = host.versions.iter().map(|version| version.code()).collect();
    let suites: Vec<u16> = host.suites.iter().map(|suite| suite.code()).collect();
    let groups: Vec<u16> = host.groups.iter().map(|group| group.code()).collect();
    let negotiated = ([versions, suites.clone(), groups.clone()], host.alpn.clone());
    let is_shared = host.client_auth == courser_config::ClientAuth::None;
    if let Some(known) = context.tls.borrow().get(&negotiated).filter(|_| is_shared) {
        return Ok(Arc::clone(known));
    }
    let offer = ServerTlsSpec {
        versions: host.versions.iter().map(|version| version_of(*version)).collect(),
        suites,
        groups,
        alpn: host.alpn.iter().map(|protocol| protocol.clone().into_bytes()).collect(),
        tickets: context.config.sessions.tickets_per_handshake as usize,
        client_auth,
    };
    let compiled = ServerTlsConfig::new(offer, &context.process.sessions);
    let compiled = compiled.map(Arc::new).map_err(|error| cannot_set_up(host, error))?;
    if is_shared {
        context.tls.borrow_mut().insert(negotiated, Arc::clone(&compiled));
    }
    Ok(compiled)
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

impl BuiltHost {
    fn renew(&self, settings: &HostConfig, certificates: &LoadedCertificates) -> Self {
        let identities = certificates.of(settings);
        let are_same = identities.len() == self.identities.len()
            && identities.iter().zip(&self.identities).all(|(one, other)| Arc::ptr_eq(one, other));
        let host = match are_same {
            true => Arc::clone(&self.host),
            false => Arc::new(self.host.with_certificates(Certificates::new(&identities))),
        };
        Self { host, identities }
    }
}

impl BuiltListener {
    fn renew(&self, certificates: &LoadedCertificates) -> Self {
        let renew = |(settings, built): (&HostConfig, &BuiltHost)| built.renew(settings, certificates);
        let hosts: Vec<BuiltHost> = hosts_in(&self.settings).zip(&self.hosts).map(renew).collect();
        let pairs = || self.hosts.iter().map(|built| &built.host).zip(hosts.iter().map(|built| &built.host));
        if pairs().all(|(before, after)| Arc::ptr_eq(before, after)) {
            return self.clone();
        }
        let in_place_of = |host: &Arc<VirtualHost>| {
            let renewed = pairs().find(|(before, _)| Arc::ptr_eq(before, host));
            Arc::clone(renewed.map_or(host, |(_, after)| after))
        };
        let default = Arc::clone(&hosts[0].host);
        let listener = self.listener.with_hosts(default, names(&self.settings, &hosts), in_place_of);
        Self { settings: Arc::clone(&self.settings), listener: Arc::new(listener), hosts }
    }

    /// Logs what the listener serves, with which certificates and backends.
    pub(crate) fn log(&self) {
        let Self { settings, hosts, .. } = self;
        for (number, rule) in settings.routes.iter().enumerate() {
            log(Level::Info, format_args!("listener {}, rule {}: {rule}", settings.name, number + 1));
        }
        for (host, built) in hosts_in(settings).zip(hosts).filter(|_| settings.terminates()) {
            let backends = match &host.backends {
                Backends::Own(addresses) => {
                    let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                    format!("backends: {}", addresses.join(", "))
                }
                Backends::Pool(name) => format!("pool: {name}"),
            };
            let served = built.host.certificates.describe();
            let name = &settings.name;
            log(Level::Info, format_args!("listener {name}, host {}: {served}; {backends}", host.name));
        }
    }
}
