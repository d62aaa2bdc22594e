//! Pools of servers: reading an entry of `servers`, and whether pools and hosts fit together.

use std::num::NonZeroU32;

use crate::address::{self, BackendAddress};
use crate::affinity;
use crate::config::{BackendName, CheckConfig, CheckKind, PoolConfig, ServerConfig};
use crate::draft::{ActionDraft, HostDraft, ListenerDraft, PoolDraft};
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::read::{self, wrong_kind};
use crate::value::{Literal, Table, Value};

/// Reads a server: an address, or a table with one.
pub(crate) fn server(value: &Value) -> Result<ServerConfig, Problems> {
    match &value.literal {
        Literal::Text(_) => {
            let address = address::backend(value)?;
            Ok(ServerConfig { address, weight: NonZeroU32::MIN, max_connections: None, backup: false })
        }
        Literal::Table(table) => from_table(value, table),
        _ => Err(wrong_kind(value, "an address or `{ address = \"…\", weight = … }`")),
    }
}

fn from_table(value: &Value, table: &Table) -> Result<ServerConfig, Problems> {
    const KEYS: [&str; 4] = ["address", "weight", "max_connections", "backup"];
    if let Some(entry) = table.entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
        let message = format!("unknown key `{}`", entry.key);
        return Err(Problem::at(&entry.key_origin, message, Some(suggest(&entry.key, KEYS))).into());
    }
    let Some(address) = table.get("address") else {
        return Err(Problem::at(&value.origin, "the server has no `address`", None).into());
    };
    let address = address::backend(address)?;
    if let (BackendAddress::Service(_), Some(weight)) = (&address, table.get("weight")) {
        let message = "the weights of a service are in its SRV records";
        return Err(Problem::at(&weight.origin, message, Some("leave `weight` out".to_owned())).into());
    }
    let number = |key: &str, most: u32| {
        let read = |value| read::count(value, 1..=most).map(NonZeroU32::new);
        table.get(key).map(read).transpose().map(Option::flatten)
    };
    Ok(ServerConfig {
        address,
        weight: number("weight", 1000)?.unwrap_or(NonZeroU32::MIN),
        max_connections: number("max_connections", u32::MAX)?,
        backup: table.get("backup").map(read::boolean).transpose()?.unwrap_or(false),
    })
}

/// Whether each pool has servers, and each host's pool exists.
pub(crate) fn check(pools: &[PoolDraft], listeners: &[ListenerDraft], problems: &mut Problems) {
    for pool in pools.iter().filter(|pool| pool.servers.is_empty() && !pool.incomplete) {
        problems.push(Problem::at(&pool.name.origin, "the pool has no servers", None));
    }
    pools.iter().for_each(|pool| problems.extend(unreachable(pool).into_iter().chain(handshakeless(pool))));
    let mut used = Vec::new();
    let of_hosts = hosts(listeners).filter_map(|host| Some((Some(host), host.pool.as_ref()?)));
    let rules = listeners.iter().flat_map(|listener| &listener.routes);
    let of_rules = rules.filter_map(|rule| match &rule.action {
        ActionDraft::Relay(pool) => Some((None, pool)),
        _ => None,
    });
    for (host, name) in of_hosts.chain(of_rules) {
        if !pools.iter().any(|pool| pool.name.value == name.value) {
            let names = pools.iter().map(|pool| pool.name.value.as_str());
            let help = match pools.is_empty() {
                true => format!("add `[pool.{}]` with `servers`", name.value),
                false => suggest(&name.value, names),
            };
            problems.push(Problem::at(
                &name.origin,
                format!("there is no pool `{}`", name.value),
                Some(help),
            ));
        }
        used.push(&name.value);
        let affinity =
            pools.iter().find(|pool| pool.name.value == name.value).and_then(|pool| pool.affinity.as_ref());
        problems.extend(affinity.and_then(|affinity| affinity::useless(affinity, host, name)));
    }
    for pool in pools.iter().filter(|pool| !used.contains(&&pool.name.value)) {
        let message = format!("no listener, host or rule has the pool `{}`", pool.name.value);
        problems.push(Problem::at(&pool.name.origin, message, None).as_warning());
    }
}

fn hosts(listeners: &[ListenerDraft]) -> impl Iterator<Item = &HostDraft> {
    listeners.iter().flat_map(|listener| listener.hosts.iter().chain([&listener.own]))
}

/// A check by a handshake of servers that speak no TLS, or whose name only clients know.
fn handshakeless(pool: &PoolDraft) -> Option<Problem> {
    let is_tls = |check: &CheckConfig| match check.kind {
        CheckKind::Tls => true,
        CheckKind::Http { .. } => pool.tls.is_some() && check.port.is_none(),
        CheckKind::Tcp | CheckKind::Agent => false,
    };
    let check = pool.checks.iter().find(|check| is_tls(&check.value))?;
    let Some(tls) = &pool.tls else {
        let message = "a check of the kind `tls`, and the pool has no `tls`";
        return Some(
            Problem::at(&check.origin, message, None).help("set `tls` in the pool, or `check = \"tcp\"`"),
        );
    };
    if tls.value.server_name != BackendName::FromClient {
        return None;
    }
    let message = "the check makes a handshake, and which name the server has only clients know";
    let help = "`check = \"tcp\"`, an agent, or a `server_name` that is fixed";
    Some(Problem::at(&check.origin, message, None).related(&tls.origin, "`from-client` here").help(help))
}

/// Checks at a port, where a server has none.
fn unreachable(pool: &PoolDraft) -> Option<Problem> {
    let check = pool.checks.iter().find(|check| check.value.port.is_some())?;
    let is_unix =
        |address: &BackendAddress| matches!(address, BackendAddress::Unix(_) | BackendAddress::Abstract(_));
    let unix = pool.servers.iter().find(|server| is_unix(&server.address))?;
    let message = format!("the check has a port, and the server `{}` has none", unix.address);
    Some(Problem::at(&check.origin, message, Some("give such servers a pool of their own".to_owned())))
}

impl From<PoolDraft> for PoolConfig {
    fn from(draft: PoolDraft) -> Self {
        let PoolDraft { name, servers, balance, affinity, queue_timeout, checks, tls, .. } = draft;
        let affinity = affinity.map(|affinity| affinity.value);
        let checks = checks.into_iter().map(|check| check.value).collect();
        Self { name: name.value, servers, balance, affinity, queue_timeout, checks, tls }
    }
}
