//! Reading a rule of `route`, and whether rules and listener fit together.

use std::net::IpAddr;

use crate::dns;
use crate::draft::{ActionDraft, HostDraft, ListenerDraft, RuleDraft, name, protocol};
use crate::near::suggest;
use crate::problem::{Problem, Problems};
use crate::proxy_protocol::SendProxy;
use crate::read::{self, wrong_kind};
use crate::route::{RouteAction, RouteConditions, RouteRule};
use crate::source::SourceSpan;
use crate::value::{Literal, Table, Value};

/// Reads a rule; all that is wrong with it is reported.
pub(crate) fn read(value: &Value) -> Result<RuleDraft, Problems> {
    let Literal::Table(table) = &value.literal else {
        return Err(wrong_kind(value, "a rule such as `{ when = { … }, relay = \"…\" }`"));
    };
    let mut problems = unknown_keys(table, &["when", "relay", "terminate", "refuse", "send_proxy"]);
    let mut collect = |found: Problems| problems.extend(found);
    let when = table.get("when").map(conditions).transpose().map_err(&mut collect).unwrap_or_default();
    let action = action(table, &value.origin).map_err(&mut collect).ok();
    let send_proxy = |value| read::named(value, "PROXY protocol version");
    let send_proxy = table.get("send_proxy").map(send_proxy).transpose().map_err(&mut collect).ok().flatten();
    if let (Some(ActionDraft::Terminate(_) | ActionDraft::Refuse), Some(header)) =
        (&action, table.get("send_proxy"))
    {
        let help = "leave it out: a host has a `send_proxy` of its own";
        collect(
            Problem::at(&header.origin, "`send_proxy` is for a rule that relays", Some(help.into())).into(),
        );
    }
    match action {
        Some(action) if problems.is_empty() => {
            Ok(RuleDraft { origin: value.origin.clone(), when, action, send_proxy })
        }
        _ => Err(problems),
    }
}

/// Exactly one of the three.
fn action(table: &Table, origin: &SourceSpan) -> Result<ActionDraft, Problems> {
    const ACTIONS: [&str; 3] = ["relay", "terminate", "refuse"];
    let mut given = table.entries.iter().filter(|entry| ACTIONS.contains(&entry.key.as_str()));
    let Some(first) = given.next() else {
        let help = "add `relay` with a pool, `terminate` with a host, or `refuse = true`";
        return Err(
            Problem::at(origin, "the rule does not say what becomes of a client", Some(help.into())).into()
        );
    };
    if let Some(second) = given.next() {
        let problem = Problem::at(&second.key_origin, "a rule does one thing", None);
        return Err(problem.related(&first.key_origin, "the other one").help("leave one of them out").into());
    }
    match first.key.as_str() {
        "relay" => read::located(&first.value, name).map(ActionDraft::Relay),
        "terminate" => read::located(&first.value, name).map(ActionDraft::Terminate),
        _ if read::boolean(&first.value)? => Ok(ActionDraft::Refuse),
        _ => {
            let help = "write `refuse = true`, or say where such clients go";
            Err(Problem::at(&first.value.origin, "a rule cannot refuse to refuse", Some(help.into())).into())
        }
    }
}

fn conditions(value: &Value) -> Result<RouteConditions, Problems> {
    let Literal::Table(table) = &value.literal else {
        return Err(wrong_kind(value, "conditions such as `{ server_name = \"a.example\" }`"));
    };
    let mut problems = unknown_keys(table, &["server_name", "alpn", "key", "version", "session"]);
    if table.entries.is_empty() {
        let help = "leave `when` out of a rule that is for every client";
        problems.push(Problem::at(&value.origin, "there is no condition", Some(help.into())));
    }
    let mut when = RouteConditions::default();
    let mut read = |key: &str, store: &mut dyn FnMut(&Value) -> Result<(), Problems>| {
        problems.extend(table.get(key).and_then(|value| store(value).err()).into_iter().flatten());
    };
    read("server_name", &mut |value| {
        read::distinct(value, server_name).map(|names| when.server_names = Some(names))
    });
    read("alpn", &mut |value| read::distinct(value, protocol).map(|it| when.alpn = it));
    read("key", &mut |value| read::named(value, "key").map(|it| when.key = Some(it)));
    read("version", &mut |value| read::named(value, "TLS version").map(|it| when.version = Some(it)));
    read("session", &mut |value| read::named(value, "session").map(|it| when.session = Some(it)));
    if problems.is_empty() { Ok(when) } else { Err(problems) }
}

/// As the name of a host; empty for clients that send none.
fn server_name(value: &Value) -> Result<String, Problems> {
    let text = read::text(value, "a server name")?;
    if text.is_empty() {
        return Ok(String::new());
    }
    if text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        let message = format!("`{text}` is not a server name: it is an IP address");
        let help = "clients send no server name for one; write `\"\"` for all that send none";
        return Err(Problem::at(&value.origin, message, Some(help.into())).into());
    }
    dns::server_name(value)
}

fn unknown_keys(table: &Table, known: &[&str]) -> Problems {
    let mut problems = Problems::default();
    for entry in table.entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
        let help = suggest(&entry.key, known.iter().copied());
        let message = format!("unknown key `{}`", entry.key);
        problems.push(Problem::at(&entry.key_origin, message, Some(help)));
    }
    problems
}

/// Whether each rule can be reached, and each host that a rule names is there. Pools are checked with the others.
pub(crate) fn check(listener: &ListenerDraft, default_host: &str, problems: &mut Problems) {
    let named = |host: &HostDraft| host.name.clone().or_else(|| host.names.first().cloned());
    let mut hosts: Vec<String> = listener.hosts.iter().filter_map(named).map(|name| name.value).collect();
    hosts.push(default_host.to_owned());
    for (position, rule) in listener.routes.iter().enumerate() {
        if let ActionDraft::Terminate(host) = &rule.action
            && !hosts.contains(&host.value)
        {
            let message = format!("the listener has no host `{}`", host.value);
            let help = suggest(&host.value, hosts.iter().map(String::as_str));
            problems.push(Problem::at(&host.origin, message, Some(help)));
        }
        if let Some(first) = listener.routes[..position].iter().find(|earlier| earlier.covers(rule)) {
            let problem = Problem::at(&rule.origin, "no client reaches this rule", None);
            let help = "rules are tried in order: put the narrower one first";
            problems.push(problem.related(&first.origin, "this one fits all of its clients").help(help));
        }
    }
}

impl RuleDraft {
    /// Whether it is for every client.
    pub(crate) fn is_for_all(&self) -> bool {
        self.when.is_none()
    }

    /// Whether it fits all clients that `other` fits, as far as that is simple to see.
    fn covers(&self, other: &Self) -> bool {
        match (&self.when, &other.when) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(when), Some(other)) => when.covers(other),
        }
    }

    /// The rule of a listener that sends this header where the rule has none of its own.
    pub(crate) fn finish(self, send_proxy: SendProxy) -> RouteRule {
        let action = match self.action {
            ActionDraft::Relay(pool) => {
                RouteAction::Relay { pool: pool.value, send_proxy: self.send_proxy.unwrap_or(send_proxy) }
            }
            ActionDraft::Terminate(host) => RouteAction::Terminate(host.value),
            ActionDraft::Refuse => RouteAction::Refuse,
        };
        RouteRule { when: self.when.unwrap_or_default(), action }
    }
}

impl RouteConditions {
    fn covers(&self, other: &Self) -> bool {
        fn same<T: PartialEq + Copy>(condition: Option<T>, other: Option<T>) -> bool {
            condition.is_none() || condition == other
        }
        let is_named = |name: &String| self.server_names.iter().flatten().any(|pattern| is_in(name, pattern));
        let names = match &other.server_names {
            _ if self.server_names.is_none() => true,
            Some(names) => names.iter().all(is_named),
            None => false,
        };
        let alpn = self.alpn.is_empty()
            || (!other.alpn.is_empty() && other.alpn.iter().all(|protocol| self.alpn.contains(protocol)));
        names
            && alpn
            && same(self.key, other.key)
            && same(self.version, other.version)
            && same(self.session, other.session)
    }
}

/// Whether all names of `name`, which may be a wildcard, are among those of `pattern`.
fn is_in(name: &str, pattern: &str) -> bool {
    let parent = pattern.strip_prefix("*.");
    name == pattern
        || parent.is_some_and(|parent| name.split_once('.').is_some_and(|(_, rest)| rest == parent))
}
