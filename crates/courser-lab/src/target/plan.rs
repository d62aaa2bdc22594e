//! What is to be run for a specification: programs, their files, where they listen. Also whether a target can do it at
//! all.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use courser_record::lab::File;

use super::definition::{Definition, Role};
use super::fleet::{self, FleetHost};
use super::folder::{make_folder, write};
use super::installed::{Installed, LIBRARIES};
use super::keeper::KeptCommand;
use super::messages::Ask;
use super::template::{Context, LaunchContext, holds, render};
use super::{KeyKind, NotStarted, TargetSpec, Tls};

/// Everything that is needed to start a target.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// What is to be run: one program, or two of a chain, the one in front first; so for each host.
    pub(super) commands: Vec<KeptCommand>,
    /// Where each listens.
    pub(super) addresses: Vec<SocketAddr>,
    /// Where hosts after the first take clients.
    pub(super) others: Vec<SocketAddr>,
    /// The files that were written for them.
    pub(super) files: Vec<File>,
    /// The program in front.
    pub(super) installed: Installed,
    /// What a reader has to know.
    pub(super) remarks: Vec<String>,
    /// How hosts are asked what they told each other.
    pub(super) asks: Vec<Ask>,
    /// Whether the children of the program in front are its workers, which do not bind themselves to processors.
    pub(super) worker_processes: bool,
}

/// Plans a target, and writes its files.
pub(super) fn plan(definition: &Definition, spec: &TargetSpec) -> Result<Plan, NotStarted> {
    let parts: Vec<&Definition> = definition.parts().collect();
    let failed = |what: &str, why: &dyn std::fmt::Display| NotStarted::Failed(format!("{what}: {why}"));
    let hosts = spec.fleet.as_ref().map_or(1, |fleet| fleet.hosts);
    let addresses = free_addresses(parts.len() * hosts).map_err(|why| failed("no free port", &why))?;
    let mut plan: Option<Plan> = None;
    for host in fleet::hosts(&addresses, parts.len()) {
        for (index, part) in parts.iter().enumerate() {
            let spec = of_part(spec, definition.role, index, &host.addresses);
            let installed = part.installed().map_err(|how| missing(part, &how))?;
            let planned = plan_part(part, &spec, &host, host.addresses[index], installed)?;
            plan = Some(match plan {
                None => planned,
                Some(front) => front.and(planned),
            });
        }
    }
    let mut plan = plan.ok_or_else(|| NotStarted::Failed(format!("{} has no parts", definition.name)))?;
    plan.others = addresses.iter().copied().step_by(parts.len()).skip(1).collect();
    Ok(plan)
}

impl Plan {
    fn and(mut self, behind: Self) -> Self {
        self.commands.extend(behind.commands);
        self.addresses.extend(behind.addresses);
        self.files.extend(behind.files);
        self.asks.extend(behind.asks);
        // Copies of one program have the same to say.
        let new = behind.remarks.into_iter().filter(|remark| !self.remarks.contains(remark));
        self.remarks.extend(new.collect::<Vec<_>>());
        self
    }
}

fn missing(part: &Definition, how: &str) -> NotStarted {
    NotStarted::Missing(format!("{} is not installed: {how}", part.own_name()))
}

/// Of a chain, only the first part has to do with clients, and only the last with backends; behind a relay that is TLS too.
fn of_part(spec: &TargetSpec, front: Role, index: usize, addresses: &[SocketAddr]) -> TargetSpec {
    let mut own = spec.clone();
    if index > 0 && front != Role::Relay {
        own.tls = None;
    }
    if let Some(next) = addresses.get(index + 1) {
        own.backends = vec![*next];
        own.backend_tls = false;
    }
    own
}

fn plan_part(
    part: &Definition,
    spec: &TargetSpec,
    host: &FleetHost,
    listen: SocketAddr,
    installed: Installed,
) -> Result<Plan, NotStarted> {
    let name = match &spec.fleet {
        None => part.own_name().to_owned(),
        Some(_) => format!("{}-{}", part.own_name(), host.number),
    };
    let folder = spec.folder.join(&name);
    let place = LaunchContext {
        folder: folder.display().to_string(),
        listen,
        host: host.clone(),
        version: installed.version.clone(),
        library: installed.library.clone().unwrap_or_default(),
        needed: installed.needed.clone(),
        backlog: part.backlog,
        connections: part.connections,
    };
    let context = Context::new(spec, place);
    check(part, spec, &context)?;
    let failed = |why| NotStarted::Failed(format!("{} cannot be set up: {why}", part.own_name()));
    set_up(part, &context, &folder, &name, listen, installed).map_err(failed)
}

/// Whether it can do what is wanted.
pub(super) fn check(part: &Definition, spec: &TargetSpec, context: &Context) -> Result<(), NotStarted> {
    let cannot = |why: &str| NotStarted::Cannot(format!("{} cannot: {why}", part.title));
    if let Some(why) = spec.tls.as_ref().and_then(|tls| beyond(part, tls)) {
        return Err(cannot(&why));
    }
    for one in &part.cannot {
        if holds(&one.when, context).map_err(NotStarted::Failed)? {
            let why = render(&part.name, &one.reason, context).map_err(NotStarted::Failed)?;
            return Err(cannot(&why));
        }
    }
    Ok(())
}

/// What is beyond the limits of a target.
fn beyond(part: &Definition, tls: &Tls) -> Option<String> {
    let first = |asked: &[String], limit: &Option<Vec<String>>| {
        let limit = limit.as_ref()?;
        asked.iter().find(|one| !limit.contains(one)).cloned()
    };
    let unknown = tls.alpn.iter().find(|protocol| !part.alpn.contains(protocol));
    let least = part.only.least_rsa_bits.unwrap_or(0);
    let small = tls.certificates.iter().find(|one| matches!(one.kind, KeyKind::Rsa(bits) if bits < least));
    first(&tls.versions, &part.only.versions)
        .map(|version| format!("it does not speak TLS {version}"))
        .or_else(|| {
            first(&tls.suites, &part.only.suites).map(|suite| format!("it does not have the suite {suite}"))
        })
        .or_else(|| {
            first(&tls.groups, &part.only.groups).map(|group| format!("it does not have the group {group}"))
        })
        .or_else(|| unknown.map(|protocol| format!("it is not set up to agree on {protocol} (ALPN)")))
        .or_else(|| {
            small.map(|one| format!("it takes no RSA key under {least} bits, and {} is asked for", one.kind))
        })
}

fn set_up(
    part: &Definition,
    context: &Context,
    folder: &Path,
    name: &str,
    listen: SocketAddr,
    installed: Installed,
) -> Result<Plan, String> {
    make_folder(folder)?;
    let mut files = Vec::new();
    for (file, text) in &part.files {
        let mut text = render(file, text, context)?;
        if !text.is_empty() && !text.ends_with('\n') {
            // HAProxy takes a file without it for one that was cut off.
            text.push('\n');
        }
        write(&folder.join(file), &text)?;
        files.push(File { name: format!("{name}/{file}"), text });
    }
    for (file, text) in &part.secrets {
        let text = render(file, text, context)?;
        let path = folder.join(file);
        if !text.is_empty() {
            make_folder(path.parent().unwrap_or(folder))?;
            write(&path, &text)?;
        }
    }
    let filled = |text: &String| render(&part.name, text, context);
    let arguments = part.arguments.iter().map(filled).collect::<Result<Vec<_>, _>>()?;
    let environment = part.environment.iter().map(|(name, text)| Ok((name.clone(), filled(text)?)));
    let mut environment = environment.collect::<Result<Vec<(String, String)>, String>>()?;
    let libraries = part.program.as_ref().and_then(|program| program.libraries.clone());
    environment.extend(libraries.map(|folder| (LIBRARIES.to_owned(), folder)));
    let command = KeptCommand {
        name: name.to_owned(),
        command: std::iter::once(installed.program.display().to_string()).chain(arguments).collect(),
        environment: environment.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        log: folder.join("output.log"),
        folder: folder.to_owned(),
    };
    let remarks = remarks(part, context)?;
    let asks = ask(part, context, &installed.program)?.into_iter().collect();
    Ok(Plan {
        commands: vec![command],
        addresses: vec![listen],
        others: Vec::new(),
        files,
        installed,
        remarks,
        asks,
        worker_processes: part.worker_processes,
    })
}

/// How this host is asked what it told others, where there are any.
fn ask(part: &Definition, context: &Context, program: &Path) -> Result<Option<Ask>, String> {
    let Some(messages) = &part.messages else { return Ok(None) };
    if !holds(&messages.when, context)? {
        return Ok(None);
    }
    let arguments = messages.arguments.iter().map(|text| render(&part.name, text, context));
    let command = std::iter::once(Ok(program.display().to_string())).chain(arguments);
    Ok(Some(Ask {
        command: command.collect::<Result<_, _>>()?,
        bytes: messages.bytes.clone(),
        sessions: messages.sessions.clone(),
    }))
}

fn remarks(part: &Definition, context: &Context) -> Result<Vec<String>, String> {
    let mut said = Vec::new();
    for remark in &part.remark {
        if holds(&remark.when, context)? {
            said.push(render(&part.name, &remark.text, context)?);
        }
    }
    Ok(said)
}

/// Free ports of 127.0.0.1, all different.
///
/// They are below those that connections get by themselves, if there is room, so that no client takes one before its
/// server does.
pub(super) fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let listeners = (0..count).map(|_| free_listener()).collect::<Result<Vec<_>, _>>()?;
    listeners.iter().map(TcpListener::local_addr).collect()
}

fn free_listener() -> std::io::Result<TcpListener> {
    // Runs at the same time begin at different ports, and one run never has a port twice in a row.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 10_000;
    let room = first_of_clients().saturating_sub(FIRST);
    for _ in 0..room.min(1000) {
        let number = std::process::id().wrapping_mul(131).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % room).unwrap_or(0);
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return Ok(listener);
        }
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
}

/// The lowest port that connections get by themselves.
fn first_of_clients() -> u32 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    range.split_whitespace().next().and_then(|port| port.parse().ok()).unwrap_or(0)
}
