//! The servers of all pools, for the operator: what they do, and what he says of them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use courser_balance::{Availability, Drain};
use courser_config::nearest;
use courser_health::CheckerHandle;
use courser_proxy::{Backend, Orders, Pool, Target, since_start};
use courser_telemetry::Counts;
use courser_telemetry::event::{Level, log};
use courser_telemetry::metrics::Metric;

use crate::process::Process;
use crate::status::backends::{CheckRow, ServerRow};

/// The servers of all pools.
pub(crate) struct Backends {
    /// Of the generation that serves new connections.
    pools: Mutex<Vec<Arc<Pool>>>,
    orders: Arc<Orders>,
    /// Where a pool has checks, or had some.
    pub(crate) checker: OnceLock<CheckerHandle<Target>>,
}

/// What the operator wants of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Drain,
    Enable,
    Weight(u16),
}

impl Change {
    /// The words of a request after `backend`, up to the name.
    pub(crate) fn parse(words: &str) -> Option<(Self, &str)> {
        let (verb, rest) = words.split_once(' ')?;
        match verb {
            "drain" => Some((Self::Drain, rest)),
            "enable" => Some((Self::Enable, rest)),
            "weight" => {
                let (percent, name) = rest.split_once(' ')?;
                Some((Self::Weight(percent.parse().ok()?), name))
            }
            _ => None,
        }
    }
}

type Found = (Arc<Pool>, Arc<Backend>);

impl Backends {
    /// Without pools.
    pub(crate) fn new(process: &Process) -> Self {
        Self { pools: Mutex::default(), orders: Arc::clone(&process.orders), checker: OnceLock::new() }
    }

    /// The pools are these from now on.
    pub(crate) fn replace(&self, pools: Vec<Arc<Pool>>) {
        *self.pools.lock().unwrap_or_else(PoisonError::into_inner) = pools;
    }

    fn pools(&self) -> Vec<Arc<Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn rows(&self) -> Vec<ServerRow> {
        self.all().iter().map(|(pool, server)| self.row(pool, server)).collect()
    }

    /// Changes the servers of this name.
    ///
    /// # Errors
    /// Why there is no such server, or no one server, with what to write instead.
    pub(crate) fn change(&self, name: &str, change: Change) -> Result<Vec<ServerRow>, String> {
        let found = self.find(name)?;
        for (pool, server) in &found {
            self.orders.change(&pool.name, server, |order| match change {
                Change::Drain => order.is_drained = true,
                Change::Enable => order.is_drained = false,
                Change::Weight(percent) => order.percent = percent,
            });
            let said = match change {
                Change::Drain => "drained by the operator".to_owned(),
                Change::Enable => "enabled by the operator".to_owned(),
                Change::Weight(percent) => format!("weight set to {percent}% by the operator"),
            };
            log(Level::Info, format_args!("pool {}: server {}: {said}", pool.name, server.name));
        }
        Ok(found.iter().map(|(pool, server)| self.row(pool, server)).collect())
    }

    /// Puts in the numbers of servers.
    pub(crate) fn count(&self, counts: &mut Counts) {
        let (mut states, mut connections) = ([0; 5], 0);
        for (_, server) in self.all() {
            connections += u64::from(server.in_flight());
            states[match server.availability(since_start()) {
                Availability::Up => 0,
                Availability::Starting(_) => 1,
                Availability::Ejected => 2,
                Availability::Down => 3,
                Availability::Draining => 4,
            }] += 1;
        }
        let waiting: usize = self.pools().iter().map(|pool| pool.servers().waiting()).sum();
        counts.set(Metric::Backends, &states);
        counts.set(Metric::BackendConnections, &[connections]);
        counts.set(Metric::BackendQueue, &[waiting as u64]);
        let checks = self.checker.get().map(CheckerHandle::counts).unwrap_or_default();
        counts.set(Metric::BackendChecks, &[checks.passed, checks.failed]);
    }

    fn all(&self) -> Vec<Found> {
        let servers = |pool: Arc<Pool>| {
            let servers = pool.servers().servers().to_vec();
            servers.into_iter().map(move |server| (Arc::clone(&pool), server))
        };
        self.pools().into_iter().flat_map(servers).collect()
    }

    /// The servers that `name` stands for: one, or all addresses of a name in one pool.
    fn find(&self, name: &str) -> Result<Vec<Found>, String> {
        let mut found = self.all();
        found.retain(|(pool, server)| stands_for(name, &pool.name, server));
        let Some((first, _)) = found.first() else { return Err(self.unknown(name)) };
        if found.iter().all(|(pool, _)| Arc::ptr_eq(pool, first)) {
            return Ok(found);
        }
        let names: Vec<_> = found.iter().map(|(pool, server)| full_name(&pool.name, server)).collect();
        Err(format!("`{name}` is in several pools: name one, {}", quoted(&names)))
    }

    fn unknown(&self, name: &str) -> String {
        let all = self.all();
        let names: Vec<_> = all.iter().map(|(_, server)| plain_name(server).to_owned()).collect();
        let full: Vec<_> = all.iter().map(|(pool, server)| full_name(&pool.name, server)).collect();
        let known = names.iter().chain(&full).map(String::as_str);
        let help = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.len() <= SHOWN => format!("one of {}", quoted(&names)),
            None => "`courser backend list` shows all".to_owned(),
        };
        format!("there is no server `{name}`: {help}")
    }

    fn row(&self, pool: &Pool, server: &Arc<Backend>) -> ServerRow {
        let now = since_start();
        let (state, starting) = match server.availability(now) {
            Availability::Up => ("up", None),
            Availability::Starting(percent) => ("starting", Some(percent)),
            Availability::Ejected => ("ejected", None),
            Availability::Down => ("down", None),
            Availability::Draining => ("draining", None),
        };
        let by = [(Drain::Operator, "operator"), (Drain::Agent, "agent"), (Drain::Resolver, "resolver")];
        let drained = by.iter().filter(|(by, _)| server.is_drained_by(*by));
        let checks = self.checker.get().map(|checker| checker.last(server)).unwrap_or_default();
        let check = |check: courser_health::LastCheck| CheckRow {
            kind: check.kind.to_owned(),
            passed: check.passed,
            seen: check.seen,
            ago_ms: millis(now.saturating_sub(check.at)),
            taken_us: u64::try_from(check.taken.as_micros()).unwrap_or(u64::MAX),
        };
        ServerRow {
            pool: pool.name.clone(),
            server: server.name.clone(),
            address: server.target.address.to_string(),
            state: state.to_owned(),
            starting_percent: starting,
            ejected_ms: (state == "ejected").then(|| millis(server.ejected_for(now))),
            drained_by: drained.map(|(_, name)| (*name).to_owned()).collect(),
            weight: server.weight.get(),
            weight_percent: server.percent(),
            connections: server.in_flight(),
            max_connections: server.limit().map(std::num::NonZero::get),
            waiting: pool.servers().waiting(),
            served: server.connections(),
            failures: server.failures(),
            ejections: server.ejections(),
            connect_us: whole(server.latency_micros(now)),
            checks: checks.into_iter().map(check).collect(),
        }
    }
}

/// Whether the operator means this server: by its name with or without the address behind it, by its address, or by one of
/// these behind its pool's.
fn stands_for(name: &str, pool: &str, server: &Backend) -> bool {
    let is_it = |name: &str| {
        name == server.name || name == plain_name(server) || name == server.target.address.to_string()
    };
    is_it(name) || name.strip_prefix(pool).and_then(|rest| rest.strip_prefix('/')).is_some_and(is_it)
}

/// As it is configured.
fn plain_name(server: &Backend) -> &str {
    server.name.split(" (").next().unwrap_or_default()
}

fn full_name(pool: &str, server: &Backend) -> String {
    format!("{pool}/{}", plain_name(server))
}

fn quoted(names: &[String]) -> String {
    let mut names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    names.dedup();
    names.join(", ")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a time, not below 0")]
fn whole(micros: f64) -> u64 {
    micros.round() as u64
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Names that an error shows.
const SHOWN: usize = 8;
