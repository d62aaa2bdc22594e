//! Active checks of servers, where a pool has some.

use std::sync::{Arc, OnceLock};

use courser_config::{CheckConfig, CheckKind, Config, SendProxy};
use courser_health::{Check, CheckedPool, Checker, CheckerHandle, Endpoint, Probe, ProbeKind};
use courser_net::confinement::Confinement;
use courser_proxy::{Pool, Target, Threads, since_start};
use courser_wire::proxy::{Addresses, v1, v2};

use super::{STOP_TIME, Service};
use crate::exit::Failure;

pub(crate) struct ChecksService {
    config: Config,
    pools: Vec<Arc<Pool>>,
    confinement: Option<Arc<Confinement>>,
    handle: Arc<OnceLock<CheckerHandle<Target>>>,
}

impl ChecksService {
    /// `None` where no pool has checks. What is known of checks is in `handle` once it is started.
    pub(crate) fn new(
        config: &Config,
        pools: &[Arc<Pool>],
        confinement: Option<Arc<Confinement>>,
        handle: &Arc<OnceLock<CheckerHandle<Target>>>,
    ) -> Option<Self> {
        let has_checks = config.pools.iter().any(|pool| !pool.checks.is_empty());
        has_checks.then(|| Self {
            config: config.clone(),
            pools: pools.to_vec(),
            confinement,
            handle: Arc::clone(handle),
        })
    }

    fn checked_pools(&self) -> Vec<CheckedPool<Target>> {
        let checked = self.config.pools.iter().filter(|pool| !pool.checks.is_empty());
        let pool = |settings: &courser_config::PoolConfig| {
            let pool = self.pools.iter().find(|pool| pool.name == settings.name)?;
            let header = sent_to(&self.config, &settings.name);
            Some(CheckedPool {
                name: settings.name.clone(),
                pool: Arc::clone(pool) as _,
                checks: settings.checks.iter().map(|settings| check(settings, header)).collect(),
            })
        };
        checked.filter_map(pool).collect()
    }
}

impl Service for ChecksService {
    fn name(&self) -> &'static str {
        "checks of servers"
    }

    fn start(&self, threads: &Threads) -> Result<(), Failure> {
        let checker = Checker {
            pools: self.checked_pools(),
            endpoint: |target| Endpoint { address: &target.address },
            now: since_start,
            confinement: self.confinement.clone(),
        };
        let started = checker.start(|name, work| threads.spawn(name, work));
        let handle =
            started.map_err(|error| Failure::runtime("cannot start the checks of servers", error))?;
        // It is started once.
        drop(self.handle.set(handle));
        Ok(())
    }

    fn stop(&self) -> bool {
        self.handle.get().is_none_or(|handle| handle.stop(STOP_TIME))
    }
}

/// The header that connections to the pool begin with. Where hosts differ, the servers take either way what most send.
fn sent_to(config: &Config, pool: &str) -> SendProxy {
    let uses = |host: &&courser_config::HostConfig| matches!(&host.backends, courser_config::Backends::Pool(name) if name == pool);
    config
        .hosts()
        .filter(uses)
        .map(|host| host.send_proxy)
        .find(|sent| *sent != SendProxy::Off)
        .unwrap_or_default()
}

fn check(settings: &CheckConfig, sent: SendProxy) -> Check {
    let kind = match &settings.kind {
        CheckKind::Tcp => ProbeKind::Tcp,
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
        SendProxy::V2 => {
            let local = v2::ProxyHeader { command: v2::Command::Local, ..Default::default() };
            v2::write(&local, &mut bytes).expect("a header without fields can be written");
        }
    }
    bytes
}
