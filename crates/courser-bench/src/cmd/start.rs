//! `start`: one terminator, set up as a suite would, for as long as somebody wants it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use courser_lab::scratch::Scratch;
use courser_lab::selector::{TargetSelector, TargetSource};
use courser_lab::share::{self, ShareChoice};
use courser_lab::target::{self, Definition, Fleet, NotStarted, Preset, Role, Running, TargetSpec, Tls};
use courser_machine::quota::LimitGroup;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::StartArgs;
use crate::deliver::print;
use crate::exit::{Ended, Failure};

/// How often it is looked whether the target still runs.
const LOOK: Duration = Duration::from_millis(100);

/// Starts a target, tells where it is, and ends it when standard input ends or we are told to.
pub(crate) fn start(args: &StartArgs) -> Result<Ended, Failure> {
    let (definition, preset) = definition(&args.target)?;
    let over = over()?;
    let folder = Folder::new(args.folder.as_deref())?;
    let origin = origin(args, &definition, folder.path())?;
    let backends = origin.as_ref().map_or(args.backend.clone(), |(addresses, _)| addresses.clone());
    let preset = if args.stock { Preset::Stock } else { preset };
    let spec = spec(args, preset, backends, folder.path())?;
    let mut running = target::start(&definition, &spec).map_err(|why| failure(&why))?;
    let held = held(args, &running)?;
    print(&greeting(&running, origin.as_ref().map(|(_, running)| running), args));
    let ended = loop {
        match (over.recv_timeout(LOOK).is_ok(), running.ended()) {
            (true, _) => break Ok(Ended::Well),
            (false, Some(why)) => break Err(Failure::Unreachable(why)),
            (false, None) => {}
        }
    };
    // The group can be removed once it is empty.
    drop(running);
    drop(held);
    ended
}

/// What holds it to the share that was asked for.
fn held(args: &StartArgs, running: &Running) -> Result<Option<LimitGroup>, Failure> {
    let ShareChoice::Of(share) = args.server_share else { return Ok(None) };
    let held = share::hold(running.pid, share, args.workers as usize * args.hosts as usize);
    held.map(|(group, _)| Some(group)).map_err(|why| Failure::System(format!("--server-share: {why}")))
}

/// What is to be started: one that is built in, with a program by its path too, or a target file.
fn definition(text: &str) -> Result<(Definition, Preset), Failure> {
    let selector = TargetSelector::parse(text)?;
    match selector.source {
        TargetSource::Definition(definition) => Ok((*definition, selector.preset)),
        TargetSource::Url(url) => {
            Err(Failure::usage(format!("{url} runs already: there is nothing to start")))
        }
    }
}

fn failure(why: &NotStarted) -> Failure {
    match why {
        NotStarted::Missing(_) | NotStarted::Cannot(_) => Failure::Usage(why.to_string()),
        NotStarted::Failed(_) => Failure::System(why.to_string()),
    }
}

/// An origin for it to send to; none where the caller has one, or the target is one itself.
fn origin(
    args: &StartArgs,
    definition: &Definition,
    folder: &Path,
) -> Result<Option<(Vec<std::net::SocketAddr>, Running)>, Failure> {
    let is_direct = definition.role == Role::Direct;
    if is_direct && !args.backend.is_empty() {
        return Err(Failure::usage("direct has no backend: it is an origin itself"));
    }
    if is_direct || !args.backend.is_empty() {
        return Ok(None);
    }
    target::origin(1, &[], &folder.join("origin")).map(Some).map_err(Failure::System)
}

fn spec(
    args: &StartArgs,
    preset: Preset,
    backends: Vec<std::net::SocketAddr>,
    folder: &Path,
) -> Result<TargetSpec, Failure> {
    Ok(TargetSpec {
        tls: tls(args, folder)?,
        preset,
        workers: args.workers as usize,
        cpus: args.cpus.as_ref().map(|cpus| cpus.0.clone()).unwrap_or_default(),
        backends,
        backend_tls: args.backend_tls,
        http: true,
        keep_alive: args.keep_alive,
        backlog: 4096,
        fleet: (args.hosts > 1)
            .then(|| Fleet::new(args.hosts as usize))
            .transpose()
            .map_err(Failure::System)?,
        folder: folder.to_owned(),
    })
}

fn tls(args: &StartArgs, folder: &Path) -> Result<Option<Tls>, Failure> {
    if args.versions.iter().any(|version| version == "clear") {
        return Ok(None);
    }
    let keys = folder.join("certificates");
    let certificates = args.key.iter().map(|&kind| target::certificate(kind, &keys));
    Ok(Some(Tls {
        versions: args.versions.clone(),
        suites: args.suites.clone(),
        groups: args.groups.clone(),
        alpn: args.alpn.clone(),
        certificates: certificates.collect::<Result<Vec<_>, _>>().map_err(Failure::System)?,
        tickets: !args.no_tickets,
        session_cache: Some(args.session_cache).filter(|&entries| entries > 0),
    }))
}

/// A line for each fact, its name first, so that programs can read it too.
fn greeting(running: &Running, origin: Option<&Running>, args: &StartArgs) -> String {
    let clear = args.versions.iter().any(|version| version == "clear");
    let scheme = if clear { "http" } else { "https" };
    let address = |address| format!("listening on {scheme}://{address}");
    let mut lines: Vec<String> = vec![address(running.address)];
    lines.extend(running.others.iter().copied().map(address));
    lines.push(format!("pid {}", running.pid));
    lines.push(format!("keeper {}", running.keeper()));
    lines.extend(origin.map(|origin| format!("origin http://{} pid {}", origin.address, origin.pid)));
    let library = running.library.as_deref().unwrap_or_default();
    lines.push(
        format!("program {} {} {library}", running.program.display(), running.version).trim_end().to_owned(),
    );
    lines.push(format!("command {}", running.command.join(" ")));
    lines.extend(running.files.iter().map(|file| format!("file {} {} bytes", file.name, file.text.len())));
    lines.extend(running.remarks.iter().map(|remark| format!("remark {remark}")));
    lines.join("\n") + "\n"
}

/// Told once it is time to end.
fn over() -> Result<Receiver<()>, Failure> {
    let (sender, over) = channel();
    let signals = Signals::new([SIGTERM, SIGINT]);
    let mut signals = signals.map_err(|why| Failure::system("taking over Ctrl-C", why))?;
    let other: Sender<()> = sender.clone();
    thread::spawn(move || signals.forever().next().map(|_| other.send(())));
    thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    Ok(over)
}

/// The folder of a start; one of our own making is removed in the end.
enum Folder {
    Asked(PathBuf),
    Ours(Scratch),
}

impl Folder {
    fn new(asked: Option<&Path>) -> Result<Self, Failure> {
        Ok(match asked {
            Some(path) => Self::Asked(path.to_owned()),
            None => Self::Ours(Scratch::new()?),
        })
    }

    fn path(&self) -> &Path {
        match self {
            Self::Asked(path) => path,
            Self::Ours(scratch) => scratch.path(),
        }
    }
}
