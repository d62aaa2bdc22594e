//! Active checks of servers, where a pool has some.

use std::sync::{Arc, OnceLock};

use courser_config::{CheckConfig, CheckKind, Config, RouteAction, SendProxy};
use courser_health::{Check, CheckedPool, Checker, Endpoint, Probe, ProbeKind};
use courser_net::confinement::Confinement;
use courser_proxy::{Target, Threads, since_start};
use courser_wire::proxy::{Addresses, v1, v2};

use super::{STOP_TIME, Service};
use crate::backends::Backends;
use crate::exit::Failure;
use crate::pools::Pools;

pub(crate) struct ChecksService {
    backends: Arc<Backends>,
    confinement: Option<Arc<Confinement>>,
    /// From its start on.
    threads: OnceLock<Threads>,
}

impl ChecksService {
    pub(crate) fn new(backends: &Arc<Backends>, confinement: Option<Arc<Confinement>>) -> Self {
        Self { backends: Arc::clone(backends), confinement, threads: OnceLock::new() }
    }

    /// The pools are these from now on, for the operator as well. The thread is started with the first check: most
    /// configurations have none.
    pub(crate) fn apply(&self, config: &Config, pools: &Pools) -> Result<(), Failure> {
        self.backends.replace(pools.list());
        let checked = checked_pools(config, pools);
        if let Some(handle) = self.backends.checker.get() {
            handle.replace(checked);
            return Ok(());
        }
        let Some(threads) = self.threads.get().filter(|_| !checked.is_empty()) else { return Ok(()) };
        let checker = Checker {
            endpoint: |target: &Target| Endpoint { address: &target.address, tls: target.tls.as_deref() },
            now: since_start,
            confinement: self.confinement.clone(),
        };
        let started = checker.start(|name, work| threads.spawn(name, work));
        let handle =
            started.map_err(|error| Failure::runtime("cannot start the checks of servers", error))?;
        handle.replace(checked);
        // One thread at a time comes here.
        drop(self.backends.checker.set(handle));
        Ok(())
    }
}

fn checked_pools(config: &Config, pools: &Pools) -> Vec<CheckedPool<Target>> {
    let checked = config.pools.iter().filter(|pool| !pool.checks.is_empty());
    let pool = |settings: &courser_config::PoolConfig| {
        let pool = pools.named(&settings.name)?;
        let header = sent_to(config, &settings.name);
        Some(CheckedPool {
            name: settings.name.clone(),
            pool: Arc::clone(pool) as _,
            checks: settings.checks.iter().map(|settings| check(settings, header)).collect(),
        })
    };
    checked.filter_map(pool).collect()
}

impl Service for ChecksService {
    fn name(&self) -> &'static str {
        "checks of servers"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        // It is started once.
        drop(self.threads.set(threads.clone()));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.backends.checker.get().is_none_or(|handle| handle.stop(STOP_TIME))
    }
}

/// The header that connections to the pool begin with. Hosts and rules that share a pool mostly agree; where one sends none, its
/// servers have to do without as well.
fn sent_to(config: &Config, pool: &str) -> SendProxy {
    let hosts = config.hosts().filter_map(|host| match &host.backends {
        courser_config::Backends::Pool(name) if name == pool => Some(host.send_proxy),
        _ => None,
    });
    let rules = config.listeners.iter().flat_map(|listener| &listener.routes);
    let relayed = rules.filter_map(|rule| match &rule.action {
        RouteAction::Relay { pool: name, send_proxy } if name == pool => Some(*send_proxy),
        _ => None,
    });
    hosts.chain(relayed).find(|sent| *sent != SendProxy::Off).unwrap_or_default()
}

fn check(settings: &CheckConfig, sent: SendProxy) -> Check {
    let kind = match &settings.kind {
        CheckKind::Tcp => ProbeKind::Tcp,
        CheckKind::Tls => ProbeKind::Tls,
        CheckKind::Agent => ProbeKind::Agent,
        CheckKind::Http { path, host, status } => {
            ProbeKind::Http { path: path.clone(), host: host.clone(), status: status.clone() }
        }
    };
    // Who listens at another port is somebody else, and mostly expects no header: as in HAProxy.
    let sent = settings.send_proxy.unwrap_or(if settings.port.is_some() { SendProxy::Off } else { sent });
    Check {
        probe: Probe { kind, port: settings.port, header: header(sent), timeout: settings.timeout },
        interval: settings.interval,
        up: settings.up,
        down: settings.down,
    }
}

/// A PROXY header that says that the connection is the proxy's own (sections 2.1 and 2.2 of the specification).
fn header(version: SendProxy) -> Vec<u8> {
    let mut bytes = Vec::new();
    match version {
        SendProxy::Off => {}
        SendProxy::V1 => v1::write(&Addresses::Unspecified, &mut bytes),
        SendProxy::V2Addresses | SendProxy::V2 | SendProxy::V2ClientCert => {
            let local = v2::ProxyHeader { command: v2::Command::Local, ..Default::default() };
            v2::write(&local, &mut bytes).expect("a header without fields can be written");
        }
    }
    bytes
}
