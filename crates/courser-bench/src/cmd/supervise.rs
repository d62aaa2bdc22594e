//! `keep`: has programs that another run of this program wants, and ends them when that run ends. Not for people.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use courser_lab::scratch::Scratch;
use courser_lab::target::{ENDED, KeptCommand, PIDS, Spec, end_family, reap};
use rustix::process::{Pid, Resource, getpid, getppid, getrlimit, set_child_subreaper, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::SuperviseArgs;
use crate::exit::{Ended, Failure};

/// Lines of a log that a reason has.
const LAST_LINES: usize = 5;

/// What a keeper waits for.
enum Event {
    /// Whoever started us is gone, or wants us to end.
    Over,
    /// A child has ended.
    Child,
}

/// A program that was started.
struct SupervisedChild<'a> {
    pid: u32,
    command: &'a KeptCommand,
}

/// Starts what the file says, tells the numbers, and waits. Nothing of it is left when this returns.
pub(crate) fn supervise(args: &SuperviseArgs) -> Result<Ended, Failure> {
    let spec = read(&args.spec)?;
    let events = events()?;
    set_child_subreaper(Some(getpid())).map_err(|why| Failure::system("adopting processes", why))?;
    pin(&spec.cpus)?;
    raise_limit();
    let parent = getppid();
    let why = run(&spec, &events);
    end_family();
    if getppid() != parent {
        remove_left(&args.spec, parent);
    }
    if let Some(why) = why {
        say(&format!("{ENDED}{why}"));
    }
    Ok(Ended::Well)
}

fn read(path: &Path) -> Result<Spec, Failure> {
    let text = fs::read_to_string(path).map_err(|why| Failure::system(path.display(), why))?;
    serde_json::from_str(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display())))
}

/// Removes the folder, with private keys, of a parent that was killed and could not do it itself: the one that has its
/// number in its name.
fn remove_left(spec: &Path, parent: Option<Pid>) {
    let Some(prefix) = parent.map(|pid| Scratch::prefix(pid.as_raw_nonzero().get().unsigned_abs())) else {
        return;
    };
    let is_theirs = |path: &&Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&prefix))
    };
    if let Some(folder) = spec.ancestors().find(is_theirs) {
        Scratch::remove(folder);
    }
}

/// Runs until there is a reason to stop; gives it, unless we were told to.
fn run(spec: &Spec, events: &Receiver<Event>) -> Option<String> {
    let mut kept = Vec::new();
    for command in &spec.commands {
        match start(command) {
            Ok(pid) => kept.push(SupervisedChild { pid, command }),
            Err(why) => return Some(format!("{} cannot be started: {why}", command.name)),
        }
    }
    let pids: Vec<String> = kept.iter().map(|one| one.pid.to_string()).collect();
    say(&format!("{PIDS}{}", pids.join(" ")));
    while let Ok(Event::Child) = events.recv() {
        if let Some(why) = ended(&kept) {
            return Some(why);
        }
    }
    None
}

/// Why one of them has ended, with the last it said.
fn ended(kept: &[SupervisedChild<'_>]) -> Option<String> {
    let mut found = None;
    reap(|pid, how| {
        let one = kept.iter().find(|one| one.pid == pid);
        found = found.take().or_else(|| {
            one.map(|one| format!("{} ended by itself ({how}){}", one.command.name, said(one.command)))
        });
    });
    found
}

/// The last lines of its log, on one line.
fn said(command: &KeptCommand) -> String {
    let text = fs::read(&command.log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
    if last.is_empty() { String::new() } else { format!(": {}", last.join(" | ")) }
}

fn start(command: &KeptCommand) -> io::Result<u32> {
    let log = File::create(&command.log)?;
    let (program, arguments) = command.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program)
        .args(arguments)
        .envs(command.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&command.folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()?;
    Ok(child.id())
}

fn events() -> Result<Receiver<Event>, Failure> {
    let (sender, events) = channel();
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD]);
    let signals = signals.map_err(|why| Failure::system("taking over signals", why))?;
    let other = sender.clone();
    thread::spawn(move || forward(signals, &other));
    thread::spawn(move || {
        // The end of input is all that matters; nothing is ever written.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        let _ = sender.send(Event::Over);
    });
    Ok(events)
}

fn forward(mut signals: Signals, events: &Sender<Event>) {
    for signal in signals.forever() {
        let event = if signal == SIGCHLD { Event::Child } else { Event::Over };
        if events.send(event).is_err() {
            return;
        }
    }
}

/// What is started inherits it.
fn pin(cpus: &[usize]) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Failure::usage(format!("there is no processor {cpu}")));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
        .map_err(|why| Failure::system(format!("staying on processors {cpus:?}"), why))
}

/// As many descriptors as we may have: some programs take the soft limit as it is.
fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // It stays as it was; programs that need more say so.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Says something to whoever started us, if they are still there.
fn say(line: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
