//! From a draft to a configuration that cannot be wrong: what can only be judged by looking at several
//! settings together.

use std::collections::HashMap;
use std::time::Duration;

use crate::acme;
use crate::address::ListenAddress;
use crate::admin;
use crate::backend_tls;
use crate::client_auth;
use crate::config::{
    Backends, ClientAuth, Config, Fleet, HostConfig, ListenerConfig, Loaded, PoolConfig, Sessions,
    UnknownName,
};
use crate::draft::{ActionDraft, Draft, HostDraft, ListenerDraft, RuleDraft};
use crate::named::Named;
use crate::near::list;
use crate::pool;
use crate::problem::{Problem, Problems};
use crate::read::Located;
use crate::rule;
use crate::source::SourceSpan;
use crate::tls::{Group, Suite, TlsVersion};

/// The configuration, or everything that is wrong with it: `problems` are those found so far.
pub(crate) fn validate(draft: Draft, mut problems: Problems) -> Result<Loaded, Problems> {
    check_addresses(&draft.listeners, &mut problems);
    check_names(&draft.listeners, &mut problems);
    check_sessions(&draft.sessions, &mut problems);
    check_store(&draft.sessions, &draft.fleet, draft.process.state_folder.is_some(), &mut problems);
    check_fleet(&draft.fleet, &mut problems);
    admin::check(&draft.admin, &draft.listeners, &mut problems);
    acme::check(&draft.acme, &draft.listeners, draft.process.state_folder.as_ref(), &mut problems);
    pool::check(&draft.pools, &draft.listeners, &mut problems);
    backend_tls::check(&draft.pools, &draft.listeners, &mut problems);
    let any_certificate = draft.listeners.iter().any(has_certificate);
    for listener in draft.listeners.iter().filter(|listener| !listener.incomplete) {
        check_listener(listener, any_certificate, &mut problems);
        rule::check(listener, DEFAULT_HOST, &mut problems);
        problems.extend(check_accept_proxy(listener));
        client_auth::check(listener, &mut problems);
    }
    let listeners = draft.listeners.into_iter().enumerate();
    let listeners =
        listeners.map(|(index, listener)| finish(index, listener, &mut problems).into()).collect();
    problems.sort();
    if problems.has_errors() {
        return Err(problems);
    }
    let pools = draft.pools.into_iter().map(PoolConfig::from).collect();
    let Draft { process, sessions, fleet, admin, acme, written, .. } = draft;
    let config = Config { process, sessions, fleet, admin, acme, listeners, pools };
    Ok(Loaded { config, warnings: problems, written })
}

/// A warning where sources are listed that cannot connect, or where everybody is.
fn check_accept_proxy(listener: &ListenerDraft) -> Option<Problem> {
    let accept = listener.accept_proxy.as_ref()?;
    let (sources, origin) = (&accept.value, &accept.origin);
    let is_unix =
        |address: &ListenAddress| matches!(address, ListenAddress::Unix(_) | ListenAddress::Abstract(_));
    let may_be = |unix: bool| {
        let kind = |address: &ListenAddress| {
            matches!(address, ListenAddress::Systemd(_)) || is_unix(address) == unix
        };
        listener.listen.iter().any(|address| kind(&address.value))
    };
    let (message, help) = if sources.networks.iter().any(|network| network.prefix == 0) {
        ("any client may claim any address", "list the networks of whoever stands in front of this listener")
    } else if sources.unix && !may_be(true) {
        ("the listener has no unix socket", "leave `unix` out, or list the networks of whoever sends headers")
    } else if !sources.networks.is_empty() && !may_be(false) {
        ("the listener has unix sockets alone", "write `from = [\"unix\"]`")
    } else {
        return None;
    };
    Some(Problem::at(origin, message, Some(help.into())).as_warning())
}

fn has_certificate(listener: &ListenerDraft) -> bool {
    let hosts = listener.hosts.iter().chain([&listener.own]);
    hosts.into_iter().any(HostDraft::has_certificate)
}

/// No address twice, in one listener or two.
fn check_addresses(listeners: &[ListenerDraft], problems: &mut Problems) {
    let mut seen: Vec<&Located<ListenAddress>> = Vec::new();
    for address in listeners.iter().flat_map(|listener| &listener.listen) {
        if let Some(first) = seen.iter().find(|first| first.value.overlaps(&address.value)) {
            let message = match first.value == address.value {
                true => format!("`{}` is listened on twice", address.value),
                false => {
                    format!("`{}` and `{}` would accept each other's connections", address.value, first.value)
                }
            };
            problems.push(Problem::at(&address.origin, message, None).related(&first.origin, "first here"));
        }
        seen.push(address);
    }
}

fn check_names(listeners: &[ListenerDraft], problems: &mut Problems) {
    let named: Vec<_> = listeners.iter().filter_map(listener_name).collect();
    refuse_repeated(&named, "two listeners have the name", problems);
    for listener in listeners {
        let named: Vec<_> = listener.hosts.iter().filter_map(host_name).collect();
        refuse_repeated(&named, "two hosts of the listener have the name", problems);
        let names: Vec<_> = listener.hosts.iter().flat_map(|host| &host.names).cloned().collect();
        refuse_repeated(&names, "two hosts of the listener have the server name", problems);
        for host in &listener.hosts {
            check_host_name(host, problems);
        }
    }
}

/// Its name as it will be, unless it was made of flags.
fn listener_name(listener: &ListenerDraft) -> Option<Located<String>> {
    listener.origin.as_ref()?;
    let from = |address: &Located<ListenAddress>| Located {
        value: address.value.to_string(),
        origin: address.origin.clone(),
    };
    listener.name.clone().or_else(|| listener.listen.first().map(from))
}

fn host_name(host: &HostDraft) -> Option<Located<String>> {
    host.name.clone().or_else(|| host.names.first().cloned())
}

/// One complaint for each place: an address that stands twice is not called a name that stands twice as well.
fn refuse_repeated(names: &[Located<String>], complaint: &str, problems: &mut Problems) {
    let mut seen: HashMap<&str, &Located<String>> = HashMap::new();
    let complained: Vec<_> = problems.iter().filter_map(|problem| problem.origin.clone()).collect();
    for name in names.iter().filter(|name| !complained.contains(&name.origin)) {
        if let Some(first) = seen.get(name.value.as_str()) {
            let message = format!("{complaint} `{}`", name.value);
            problems.push(Problem::at(&name.origin, message, None).related(&first.origin, "first here"));
        }
        seen.entry(&name.value).or_insert(name);
    }
}

fn check_host_name(host: &HostDraft, problems: &mut Problems) {
    if let Some(name) = host.name.as_ref().filter(|name| name.value == DEFAULT_HOST) {
        let help = "logs use that name for the listener's own settings; choose another";
        problems.push(Problem::at(&name.origin, "a host cannot have the name `default`", None).help(help));
    }
    if host.name.is_none() && host.names.is_empty() {
        problems.push(at(host.origin.as_ref(), "the host has neither `name` nor `names`"));
    }
}

fn check_sessions(sessions: &Sessions, problems: &mut Problems) {
    let mut warn = |message: &str| problems.push(Problem::nowhere(message).as_warning());
    if !sessions.tickets && !sessions.session_ids {
        warn("without tickets and session IDs no client can resume a session");
    } else if sessions.tickets && sessions.tickets_per_handshake == 0 {
        warn("with `tickets_per_handshake` at 0 no TLS 1.3 client can resume a session");
    }
}

/// What leaves the process is sealed, and what it is sealed with has to be known elsewhere.
fn check_store(sessions: &Sessions, fleet: &Fleet, has_folder: bool, problems: &mut Problems) {
    let file = sessions.file.as_ref().filter(|_| !has_folder).map(|file| &file.origin);
    let leaving = [file, sessions.store.as_ref().map(|url| &url.origin)];
    for origin in leaving.into_iter().flatten().filter(|_| !fleet.has_keys()) {
        problems.push(Problem::at(origin, "there is no key to seal sessions with", Some(MAKE_A_KEY.into())));
    }
    let files = [&sessions.store_password, &sessions.store_ca].into_iter().flatten().map(|file| &file.origin);
    let details = files.chain(sessions.store_cert.as_ref().map(|files| &files.origin));
    for origin in details.filter(|_| sessions.store.is_none()) {
        problems.push(Problem::at(origin, "there is no session store that this is for", None));
    }
}

const MAKE_A_KEY: &str =
    "make one with `courser fleet keygen --out FILE`, and name it in `fleet.key` (`--fleet-key`)";

fn check_fleet(fleet: &Fleet, problems: &mut Problems) {
    if let [first, second, ..] = &fleet.keys[..]
        && first.value == second.value
    {
        let problem = Problem::at(&second.origin, "the same key twice", None);
        problems.push(problem.related(&first.origin, "first here"));
    }
    if let Some(third) = fleet.keys.get(2) {
        let help = "one that seals, and one whose sessions still live";
        problems.push(Problem::at(&third.origin, "a fleet has at most two keys", Some(help.into())));
    }
    let Some(listen) = &fleet.listen else {
        if let Some(interface) = &fleet.interface {
            let message = "this interface is of no use without `fleet.listen`";
            let help = "add `fleet.listen` (`--fleet-listen`), for example `239.1.1.1:8888`";
            problems.push(Problem::at(&interface.origin, message, None).help(help));
        }
        if fleet.has_peers() {
            let message = "the fleet's peers get no messages without an address of this host";
            let help = "add `fleet.listen` (`--fleet-listen`), for example `10.0.3.20:8888`";
            problems.push(Problem::nowhere(message).help(help).as_warning());
        }
        return;
    };
    if !fleet.has_keys() {
        let message = "there is no key to seal messages with";
        problems.push(Problem::at(&listen.origin, message, None).help(MAKE_A_KEY));
    }
    let multicast = listen.value.ip().is_multicast();
    if multicast && fleet.has_peers() {
        let message = "messages go either to a multicast group or to peers";
        let help = "leave `peer` out, or listen on an address of this host";
        problems.push(Problem::at(&listen.origin, message, None).help(help));
    }
    if !multicast && !fleet.has_peers() {
        let help = "add the other hosts as `peer` (`--fleet-peer`)";
        problems.push(Problem::at(&listen.origin, "the fleet has no peer", Some(help.into())).as_warning());
    }
    if let Some(interface) = fleet.interface.as_ref().filter(|_| !multicast) {
        let message = "an interface is chosen for multicast alone";
        let help = "listen on a multicast group, or leave it out";
        problems.push(Problem::at(&interface.origin, message, None).help(help).as_warning());
    }
    if let Some(peer) = fleet.peers.iter().find(|peer| peer.is_ipv4() != listen.value.is_ipv4()) {
        let message =
            format!("the peer {peer} cannot be reached from {}: one is IPv4, the other IPv6", listen.value);
        problems.push(Problem::at(&listen.origin, message, None));
    }
}

/// Each host that clients can reach needs a backend and, where there are certificates, one of them.
fn check_listener(listener: &ListenerDraft, any_certificate: bool, problems: &mut Problems) {
    let by_name = !listener.routes.iter().any(RuleDraft::is_for_all);
    let by_rule = |name: &str| {
        let is_named =
            |rule: &RuleDraft| matches!(&rule.action, ActionDraft::Terminate(host) if host.value == name);
        listener.routes.iter().any(is_named)
    };
    let alone = listener.hosts.is_empty() && (listener.routes.is_empty() || listener.own.has_certificate());
    let is_default = listener.unknown_name == UnknownName::Default || alone;
    let reachable = (by_name && is_default) || by_rule(DEFAULT_HOST);
    if reachable && !listener.own.has_backend() {
        problems.push(no_backend(listener));
    }
    if reachable && any_certificate && listener.own.certificates.is_empty() && !orders_alone(listener) {
        problems.push(no_certificate(listener));
    }
    let hosts = listener.hosts.iter().chain([&listener.own]);
    let mut without: Vec<_> = hosts.filter_map(staple_without_certificate).collect();
    without.dedup();
    problems.extend(without);
    for host in &listener.hosts {
        let by_rule = host_name(host).is_some_and(|name| by_rule(&name.value));
        if by_name || by_rule {
            check_host(host, any_certificate, by_rule, problems);
        } else {
            problems.push(at(host.origin.as_ref(), "no rule leaves this host a client").as_warning());
        }
    }
}

fn staple_without_certificate(host: &HostDraft) -> Option<Problem> {
    let staple = host.staples.first().filter(|_| !host.has_certificate())?;
    let message = "`staple` is set, but there is no certificate that it could be about";
    let help = "name it beside the `cert` that it is about";
    Some(Problem::at(&staple.origin, message, Some(help.into())))
}

/// Whether it is to order certificates and has no hosts, which is complained of there.
fn orders_alone(listener: &ListenerDraft) -> bool {
    listener.own.acme.is_some() && listener.hosts.is_empty()
}

fn no_backend(listener: &ListenerDraft) -> Problem {
    match (&listener.origin, listener.hosts.is_empty()) {
        (None, _) => Problem::nowhere("there is no backend")
            .help("add `--backend ADDRESS`, for example `--backend 127.0.0.1:8080`, or `--config FILE`"),
        (origin, true) => at(origin.as_ref(), "the listener has no backend")
            .help("add where plaintext goes, for example `backend = [\"127.0.0.1:8080\"]`"),
        (origin, false) => {
            at(origin.as_ref(), "the listener has no backend for clients that name none of its hosts").help(
                "add `backend` to the listener, or set `unknown_name = \"refuse\"` if all its hosts have one",
            )
        }
    }
}

fn no_certificate(listener: &ListenerDraft) -> Problem {
    let origin = listener.origin.as_ref();
    match listener.hosts.is_empty() {
        true => at(origin, "the listener has no certificate")
            .help("add `cert`; a self-signed one is made only where there is no certificate anywhere"),
        false => at(origin, "the listener has no certificate for clients that name none of its hosts")
            .help("add `cert` to the listener, or set `unknown_name = \"refuse\"` if all its hosts have one"),
    }
}

/// `by_rule`: a rule names it.
fn check_host(host: &HostDraft, any_certificate: bool, by_rule: bool, problems: &mut Problems) {
    let origin = host.origin.as_ref();
    if !host.has_backend() {
        problems.push(at(origin, "the host has no backend, nor has its listener"));
    }
    if any_certificate && !host.has_certificate() {
        problems.push(at(origin, "the host has no certificate, nor has its listener"));
    }
    if host.name.is_some() && host.names.is_empty() && !host.own_certificates && !by_rule {
        let help = "add `names`, or a `cert` of its own whose names it takes";
        problems
            .push(at(origin, "no client can name this host: it has neither `names` nor `cert`").help(help));
    }
}

/// The kernel counts milliseconds in 32 signed bits: 24 days. A day is long enough for a machine that is gone.
const LONGEST_USER_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// Name of a listener's own settings among its hosts.
const DEFAULT_HOST: &str = "default";

fn finish(index: usize, draft: ListenerDraft, problems: &mut Problems) -> ListenerConfig {
    let name = listener_name(&draft);
    // No configured name has a space in it.
    let position = || format!("listener {}", index + 1);
    ListenerConfig {
        session_scope: draft.name.as_ref().map_or_else(position, |name| name.value.clone()),
        name: name.map_or_else(|| DEFAULT_HOST.to_owned(), |name| name.value),
        listen: draft.listen.into_iter().map(|address| address.value).collect(),
        backlog: draft.backlog,
        unknown_name: draft.unknown_name,
        handshake_timeout: draft.handshake_timeout,
        accept_proxy: draft.accept_proxy.map(|sources| sources.value),
        routes: draft.routes.into_iter().map(|rule| rule.finish(draft.own.send_proxy)).collect(),
        default: finish_host(draft.own, problems),
        hosts: draft.hosts.into_iter().map(|host| finish_host(host, problems)).collect(),
    }
}

fn finish_host(draft: HostDraft, problems: &mut Problems) -> HostConfig {
    let versions = versions(&draft);
    let suites = suites(&draft, &versions, problems);
    let groups = groups(&draft, &versions, problems);
    let names: Vec<String> = draft.names.into_iter().map(|name| name.value).collect();
    let name = draft.name.map(|name| name.value).or_else(|| names.first().cloned());
    let client_auth = draft.client_auth.map_or(ClientAuth::None, |mode| mode.value);
    HostConfig {
        name: name.unwrap_or_else(|| DEFAULT_HOST.to_owned()),
        names,
        certificates: draft.certificates,
        staples: draft.staples,
        acme: draft.acme,
        client_auth,
        client_ca: if client_auth == ClientAuth::None { Vec::new() } else { draft.client_ca },
        client_crl: draft.client_crl.filter(|_| client_auth != ClientAuth::None),
        backends: match draft.pool {
            Some(pool) => Backends::Pool(pool.value),
            None => Backends::Own(draft.backends),
        },
        backend_tls: draft.backend_tls,
        send_proxy: draft.send_proxy,
        versions,
        suites,
        groups,
        alpn: draft.alpn,
        connect_timeout: draft.connect_timeout,
        idle_timeout: draft.idle_timeout,
        client_fin_timeout: draft.client_fin_timeout,
        backend_fin_timeout: draft.backend_fin_timeout,
        max_connection_age: draft.max_connection_age,
        tcp_keepalive: draft.tcp_keepalive,
        tcp_user_timeout: draft
            .tcp_user_timeout
            .unwrap_or((2 * draft.idle_timeout).min(LONGEST_USER_TIMEOUT)),
        on_truncation: draft.on_truncation,
    }
}

fn versions(draft: &HostDraft) -> Vec<TlsVersion> {
    let mut versions = match &draft.versions {
        Some(versions) => versions.value.clone(),
        None => draft.profile.versions().to_vec(),
    };
    versions.sort_unstable();
    versions
}

/// The suites that fit the versions: those of a profile are left out silently, those that are named are not.
fn suites(draft: &HostDraft, versions: &[TlsVersion], problems: &mut Problems) -> Vec<Suite> {
    let fits = |suite: &Suite| versions.contains(&suite.version());
    let Some(given) = &draft.suites else { return Suite::ALL.iter().copied().filter(fits).collect() };
    for version in versions {
        if !given.value.iter().any(|suite| suite.version() == *version) {
            let message = format!("{version} is allowed but has no suite");
            let help = format!("add a suite of {version}, or leave it out of `versions`");
            problems.push(Problem::at(&given.origin, message, Some(help)));
        }
    }
    let useless: Vec<_> = given.value.iter().filter(|suite| !fits(suite)).map(|suite| suite.name()).collect();
    if !useless.is_empty() {
        let message = format!("never used, as their version of TLS is not allowed: {}", list(useless));
        problems.push(Problem::at(&given.origin, message, None).as_warning());
    }
    given.value.iter().copied().filter(fits).collect()
}

fn groups(draft: &HostDraft, versions: &[TlsVersion], problems: &mut Problems) -> Vec<Group> {
    let Some(given) = &draft.groups else { return Group::ALL.to_vec() };
    for version in versions {
        if !given.value.iter().any(|group| group.works_with(*version)) {
            let message = format!("{version} is allowed but has no group");
            problems.push(Problem::at(&given.origin, message, Some(format!("add `{}`", Group::X25519))));
        }
    }
    given.value.clone()
}

fn at(origin: Option<&SourceSpan>, message: &str) -> Problem {
    match origin {
        Some(origin) => Problem::at(origin, message, None),
        None => Problem::nowhere(message),
    }
}
