//! From settings to one generation: listeners, virtual hosts, certificates and pools, immutable and replaced as a whole.
//! Opens nothing.

use std::sync::Arc;

use courser_config::{
    BackendAddress, Config, HostConfig, ListenerConfig, OnTruncation, TlsVersion, UnknownName,
};
use courser_net::{Address, Liveness};
use courser_proxy::settings::{Listener, Names, SendProxy, VirtualHost};
use courser_proxy::{Backend, Certificates, Pool};
use courser_session::PolicyHash;
use courser_telemetry::event::{Level, log};
use courser_tls::{ClientAuth, ServerTlsConfig, ServerTlsSpec, Sessions, Version};

use crate::certificates::LoadedCertificates;
use crate::exit::Failure;
use crate::process::Process;

pub(crate) struct Generation {
    pub(crate) listeners: Vec<BuiltListener>,
}

pub(crate) struct BuiltListener {
    pub(crate) settings: ListenerConfig,
    pub(crate) listener: Arc<Listener>,
}

pub(crate) fn build(
    config: &Config,
    certificates: &LoadedCertificates,
    process: &Process,
) -> Result<Generation, Failure> {
    let build = |settings: &ListenerConfig| {
        let listener = Arc::new(listener(settings, certificates, config, process)?);
        Ok(BuiltListener { settings: settings.clone(), listener })
    };
    Ok(Generation { listeners: config.listeners.iter().map(build).collect::<Result<_, Failure>>()? })
}

fn listener(
    settings: &ListenerConfig,
    certificates: &LoadedCertificates,
    config: &Config,
    process: &Process,
) -> Result<Listener, Failure> {
    let build = |host: &HostConfig| host_of(&settings.session_scope, host, certificates, config, process);
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

fn names_of(host: &HostConfig, certificates: &LoadedCertificates) -> Vec<String> {
    if host.names.is_empty() {
        certificates.of(host).iter().flat_map(|identity| identity.names.clone()).collect()
    } else {
        host.names.clone()
    }
}

fn host_of(
    listener: &str,
    host: &HostConfig,
    certificates: &LoadedCertificates,
    config: &Config,
    process: &Process,
) -> Result<VirtualHost, Failure> {
    let client_auth = certificates.client_auth(host)?;
    Ok(VirtualHost {
        name: host.name.clone(),
        policy: policy(listener, host, &client_auth),
        tls: terms(host, config, client_auth, &process.sessions)?,
        certificates: Certificates::new(&certificates.of(host)),
        pool: pool(host, process),
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

fn pool(host: &HostConfig, process: &Process) -> Pool {
    let backend = |address: &BackendAddress| match address {
        BackendAddress::Ip(address) => Backend::fixed(Address::Ip(*address)),
        BackendAddress::Unix(path) => Backend::fixed(Address::Unix(path.clone())),
        BackendAddress::Abstract(name) => Backend::fixed(Address::Abstract(name.clone())),
        BackendAddress::Name { host, port } => process.resolver.backend(host, *port),
    };
    Pool::new(host.backends.iter().map(backend).collect(), process.workers())
}

pub(crate) fn liveness(host: &HostConfig) -> Liveness {
    Liveness { keepalive: host.tcp_keepalive, user_timeout: host.tcp_user_timeout }
}

impl BuiltListener {
    /// Logs what the listener serves, with which certificates and backends.
    pub(crate) fn log(&self) {
        let Self { settings, listener } = self;
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
            let (name, backends) = (&settings.name, backends.join(", "));
            log(
                Level::Info,
                format_args!("listener {name}, host {}: {served}; backends: {backends}", host.name),
            );
        }
    }
}
