//! The running process: starts its successor, hands over, and serves on unless the successor serves.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use courser_net::channel::{Channel, MOST_DESCRIPTORS};
use courser_net::{Address, ListenSocket, limits};
use courser_proxy::{Admission, Command as WorkerCommand, Threads};
use courser_telemetry::event::{Level, log};
use rustix::io::Errno;
use tokio::sync::mpsc::UnboundedSender;

use super::message::{self, Message, TakenOver};
use super::{
    Endpoints, OldProcess, Outcome, PREDECESSOR, PROTOCOL, Refusal, Shared, State, Step, Success, memory,
};
use crate::process::Process;
use crate::sockets::{Named, SocketName, Sockets, TAKE_OVER};
use crate::supervisor::{Event, Superseded};

/// Hands this process over to another one.
pub(crate) struct Upgrader {
    /// What is started where the request names no program.
    pub(crate) program: PathBuf,
    pub(crate) process: Arc<Process>,
    pub(crate) threads: Threads,
    pub(crate) admission: Arc<Admission>,
    pub(crate) endpoints: Endpoints,
    pub(crate) supervisor: Sender<Event>,
    /// Processes that may drain at a time.
    pub(crate) most_old: usize,
    /// How long this process may drain.
    pub(crate) drain_timeout: Duration,
    pub(crate) state: Arc<Mutex<State>>,
    /// The way to the successor once it serves.
    pub(crate) successor: Arc<OnceLock<Channel>>,
}

/// Descriptors that a hand-over takes beside those of sockets.
const SPARE_DESCRIPTORS: usize = 32;

/// Between two messages about what has changed.
const CHANGES: Duration = Duration::from_millis(100);

/// How long a process without connections waits for the answer about its end to be written.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// What ends an upgrade, without the step.
struct Stop {
    exit_code: u8,
    why: String,
}

impl Stop {
    /// The successor's fault, or that of who asked.
    fn wrong(why: impl Into<String>) -> Self {
        Self { exit_code: 2, why: why.into() }
    }

    fn system(what: &str, error: impl std::fmt::Display) -> Self {
        Self { exit_code: 1, why: format!("{what}: {error}") }
    }
}

impl Upgrader {
    /// Has another process take over, and waits for it. The successor may be silent for `silence` at each step.
    pub(crate) fn upgrade(
        &self,
        program: Option<PathBuf>,
        silence: Duration,
        sockets: &Sockets,
        workers: &[UnboundedSender<WorkerCommand>],
    ) -> Outcome {
        let program = program.unwrap_or_else(|| self.program.clone());
        log(Level::Info, format_args!("upgrade: starting {}", program.display()));
        let upgraded = self.check().and_then(|()| self.hand_over(&program, silence, sockets, workers));
        match upgraded {
            Ok(success) => {
                *self.state() = State::Done { pid: success.pid, is_answered: false };
                Outcome::Done(success)
            }
            Err(Stop { exit_code, why }) => {
                workers.iter().for_each(|worker| drop(worker.send(WorkerCommand::Reclaim)));
                let step = match &*self.state() {
                    State::Running { step: Some(step), .. } => format!("{step}: "),
                    _ => String::new(),
                };
                *self.state() = State::None;
                self.process.pending.keep();
                if let Some(cache) = &self.process.sessions.cache {
                    cache.note_changes(false);
                }
                let why = format!("{step}{why}");
                log(
                    Level::Error,
                    format_args!("upgrade refused: {}; this process serves on", why.trim_end()),
                );
                Outcome::Refused(Refusal { exit_code, why })
            }
        }
    }

    /// What would end badly is not begun.
    fn check(&self) -> Result<(), Stop> {
        if std::process::id() == 1 {
            let why = "this is process 1, whose end is the end of its container: replace the container";
            return Err(Stop::wrong(why));
        }
        let old = self.endpoints.old.list();
        if old.len() >= self.most_old {
            let soonest = old.iter().map(|old| old.ends_in_s).min().unwrap_or_default();
            return Err(Stop::wrong(format!(
                "earlier processes that still drain: {}, as many as max_old_processes allows; the next one ends \
                 within {soonest} s",
                old.len()
            )));
        }
        Ok(())
    }

    fn hand_over(
        &self,
        program: &Path,
        silence: Duration,
        sockets: &Sockets,
        workers: &[UnboundedSender<WorkerCommand>],
    ) -> Result<Success, Stop> {
        let begun = Instant::now();
        let (mut successor, version) =
            self.start(program, silence, sockets.addresses().count() * workers.len())?;
        self.enter(Step::Sockets);
        let named = share(workers)
            .and_then(|shared| sockets.named(shared))
            .map_err(|error| Stop::system("cannot share the listening sockets", error))?;
        let count = named.len();
        successor.send_sockets(named)?;
        self.enter(Step::Memory);
        let sessions = self.send_memory(&mut successor)?;
        self.enter(Step::Process);
        self.send_process(&mut successor)?;
        self.enter(Step::Build);
        let Message::Ready(kept) = successor.receive()? else { return Err(successor.nonsense()) };
        self.enter(Step::Switch);
        successor.send_changes(&self.process)?;
        let Message::Serves = successor.receive()? else { return Err(successor.nonsense()) };
        let is_kept = |address: &&Address| kept.sockets.contains(&address.to_string());
        let addresses = sockets.addresses().filter(is_kept).cloned().collect();
        let pid = successor.pid();
        self.leave(successor.release(), pid, addresses, &kept);
        let taken_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Success { pid, version, sockets: count, sessions, taken_ms })
    }

    /// Returns the successor's version as well.
    fn start(&self, program: &Path, silence: Duration, sockets: usize) -> Result<(Successor, String), Stop> {
        self.enter(Step::Start);
        count_descriptors(sockets)?;
        let mut successor = Successor::start(program, silence)?;
        let hello = successor.receive()?;
        let Message::Hello { protocol, version } = hello else { return Err(successor.nonsense()) };
        if protocol != PROTOCOL {
            return Err(Stop::wrong(format!(
                "{} (version {version}) speaks version {protocol} of the protocol of upgrades, this program \
                 {PROTOCOL}: restart the service instead",
                program.display()
            )));
        }
        Ok((successor, version))
    }

    fn send_memory(&self, successor: &mut Successor) -> Result<usize, Stop> {
        if let Some(cache) = &self.process.sessions.cache {
            cache.note_changes(true);
        }
        let failed = |error| Stop::system("cannot write down the sessions", error);
        let (file, sessions) = memory::write_all(&self.process).map_err(failed)?;
        successor.send(&Message::Memory, &[file])?;
        let Message::Memory = successor.receive()? else { return Err(successor.nonsense()) };
        Ok(sessions)
    }

    fn send_process(&self, successor: &mut Successor) -> Result<(), Stop> {
        let shared = self.endpoints.share();
        let Shared { process, descriptors } =
            shared.map_err(|error| Stop::system("cannot share sockets", error))?;
        successor.send(&Message::Process(process), &descriptors)?;
        let Message::Process(_) = successor.receive()? else { return Err(successor.nonsense()) };
        Ok(())
    }

    /// The successor serves: this process accepts, answers and sends no more, and drains.
    fn leave(&self, channel: Channel, pid: u32, addresses: HashSet<Address>, kept: &TakenOver) {
        // First of all: from here on the files of keys and sessions are the successor's.
        self.process.is_superseded.store(true, Ordering::Relaxed);
        let superseded = Superseded { pid, kept: Arc::new(addresses), drain_timeout: self.drain_timeout };
        // A main thread that is gone needs no event.
        let _ = self.supervisor.send(Event::Superseded(superseded));
        self.endpoints.end(kept);
        let deadline = Instant::now() + self.drain_timeout;
        // Its first message is the leave to speak for the fleet and at the control socket.
        let _ = message::send(&channel, &drains(&self.admission, self.process.started, deadline), &[]);
        let _ = self.successor.set(channel);
        let (this, admission) = (Farewell::of(self), Arc::clone(&self.admission));
        let started = self.process.started;
        let spawned = self.threads.spawn("hand-over", move || {
            for round in 1_u64.. {
                thread::sleep(CHANGES);
                let drains = round.is_multiple_of(10).then(|| drains(&admission, started, deadline));
                if !this.send_changes() || drains.is_some_and(|drains| !this.send(&drains)) {
                    return;
                }
            }
        });
        // Without it the last sessions cost full handshakes.
        drop(spawned);
    }

    fn enter(&self, step: Step) {
        if let State::Running { step: now, .. } = &mut *self.state() {
            *now = Some(step);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drains(admission: &Admission, started: Instant, deadline: Instant) -> Message {
    Message::Drains(OldProcess {
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        connections: admission.open(),
        up_s: started.elapsed().as_secs(),
        ends_in_s: deadline.saturating_duration_since(Instant::now()).as_secs(),
    })
}

/// What a process that drains still has to say.
pub(crate) struct Farewell {
    process: Arc<Process>,
    successor: Arc<OnceLock<Channel>>,
    state: Arc<Mutex<State>>,
}

impl Farewell {
    pub(crate) fn of(upgrader: &Upgrader) -> Self {
        let Upgrader { process, successor, state, .. } = upgrader;
        Self { process: Arc::clone(process), successor: Arc::clone(successor), state: Arc::clone(state) }
    }

    /// Before the process ends: the last changes go over, and whoever asked for the upgrade has the answer.
    pub(crate) fn finish(&self) {
        self.send_changes();
        let deadline = Instant::now() + LAST_ANSWER;
        let is_answered = || match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Done { is_answered, .. } => *is_answered,
            State::None | State::Running { .. } => !self.process.is_superseded.load(Ordering::Relaxed),
        };
        while !is_answered() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends what has changed in the cache. Returns whether the successor still listens.
    pub(crate) fn send_changes(&self) -> bool {
        let Some(channel) = self.successor.get() else { return false };
        let changes = self.process.sessions.cache.as_ref().map(|cache| cache.changes()).unwrap_or_default();
        if changes.is_empty() {
            return true;
        }
        // Sessions that cannot be written down cost full handshakes.
        let Ok(file) = memory::write_changes(&self.process, changes) else { return true };
        message::send(channel, &Message::Memory, &[file.as_fd()]).is_ok()
    }

    fn send(&self, message: &Message) -> bool {
        self.successor.get().is_some_and(|channel| message::send(channel, message, &[]).is_ok())
    }
}

/// A descriptor of each worker's listening sockets.
fn share(workers: &[UnboundedSender<WorkerCommand>]) -> io::Result<Vec<ListenSocket>> {
    let (answer, answers) = mpsc::channel();
    // A worker that has ended takes the program with it.
    workers.iter().for_each(|worker| drop(worker.send(WorkerCommand::Share(answer.clone()))));
    drop(answer);
    let deadline = Instant::now() + TAKE_OVER;
    let mut sockets = Vec::new();
    for _ in workers {
        let left = deadline.saturating_duration_since(Instant::now());
        let shared = answers.recv_timeout(left).map_err(|_| io::Error::other("a worker does not answer"))?;
        sockets.append(&mut shared?);
    }
    Ok(sockets)
}

/// Two processes need more descriptors than one: here for the sockets on their way, and in the whole system.
fn count_descriptors(sockets: usize) -> Result<(), Stop> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let needed = sockets + SPARE_DESCRIPTORS;
    let limit = usize::try_from(limits::raise_descriptors()).unwrap_or(usize::MAX);
    if open + needed > limit {
        let why = format!("{open} of {limit} are open, and {needed} more are needed: raise LimitNOFILE=");
        return Err(Stop::system("descriptors would run out", why));
    }
    let numbers = fs::read_to_string("/proc/sys/fs/file-nr").unwrap_or_default();
    let numbers: Vec<usize> = numbers.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    if let [open_in_all, _, limit] = numbers[..]
        && open_in_all + open + needed > limit
    {
        let why = format!("{open_in_all} of {limit} are open in the system: raise fs.file-max");
        return Err(Stop::system("descriptors would run out", why));
    }
    Ok(())
}

/// The process that is to take over. It is killed when it is dropped before it serves.
struct Successor {
    /// `None` once it serves.
    child: Option<Child>,
    channel: Option<Channel>,
    silence: Duration,
}

impl Successor {
    fn start(program: &Path, silence: Duration) -> Result<Self, Stop> {
        let failed = |error| Stop::system("cannot make a channel", error);
        let (channel, theirs) = Channel::pair().map_err(failed)?;
        channel.set_timeout(silence).map_err(failed)?;
        let mut command = Command::new(program);
        command.args(env::args_os().skip(1)).env(PREDECESSOR, std::process::id().to_string());
        let started = command.stdin(Stdio::from(theirs)).spawn();
        let child = started.map_err(|error| cannot_start(program, &error))?;
        Ok(Self { child: Some(child), channel: Some(channel), silence })
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    fn channel(&self) -> &Channel {
        self.channel.as_ref().expect("it has its channel until it is released")
    }

    fn send(&mut self, message: &Message, descriptors: &[OwnedFd]) -> Result<(), Stop> {
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        match message::send(self.channel(), message, &borrowed) {
            Ok(()) => Ok(()),
            // What it said at last says more.
            Err(_) => self.receive().and(Err(self.nonsense())),
        }
    }

    /// In as few messages as the kernel passes; the names have to come back.
    fn send_sockets(&mut self, named: Vec<Named>) -> Result<(), Stop> {
        let (names, sockets): (Vec<SocketName>, Vec<ListenSocket>) = named.into_iter().unzip();
        let mut batches = names.chunks(MOST_DESCRIPTORS).zip(sockets.chunks(MOST_DESCRIPTORS)).peekable();
        while let Some((names, sockets)) = batches.next() {
            let message = Message::Sockets { names: names.to_vec(), more: batches.peek().is_some() };
            let descriptors: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
            if message::send(self.channel(), &message, &descriptors).is_err() {
                return self.receive().and(Err(self.nonsense()));
            }
        }
        let Message::Sockets { names: arrived, .. } = self.receive()? else { return Err(self.nonsense()) };
        if arrived.iter().map(SocketName::place).eq(names.iter().map(SocketName::place)) {
            return Ok(());
        }
        let has_arrived = |name: &&SocketName| arrived.iter().any(|arrived| arrived.place() == name.place());
        let missing: Vec<_> = names.iter().filter(|name| !has_arrived(name)).collect();
        let missing: Vec<_> = missing
            .iter()
            .map(|name| format!("{} {} #{}", name.listener, name.address, name.index))
            .collect();
        Err(Stop::wrong(format!("sockets that did not arrive: {}", missing.join(", "))))
    }

    fn send_changes(&mut self, process: &Process) -> Result<(), Stop> {
        let changes = process.sessions.cache.as_ref().map(|cache| cache.changes()).unwrap_or_default();
        let file = memory::write_changes(process, changes);
        let file = file.map_err(|error| Stop::system("cannot write down the sessions", error))?;
        self.send(&Message::Memory, &[file])
    }

    fn receive(&mut self) -> Result<Message, Stop> {
        match message::receive(self.channel()) {
            Ok(Some((Message::Failed { exit_code, why }, _))) => Err(Stop { exit_code, why }),
            Ok(Some((message, _))) => Ok(message),
            Ok(None) => Err(Stop::wrong(format!("the new program has ended{}", self.ending()))),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                Err(Stop::wrong(format!("the new program has said nothing for {:?}", self.silence)))
            }
            Err(error) => Err(Stop::wrong(format!("the new program sent {error}"))),
        }
    }

    fn nonsense(&self) -> Stop {
        Stop::wrong("the new program does not keep to the protocol of upgrades")
    }

    /// How it has ended, if it has by now.
    fn ending(&mut self) -> String {
        let deadline = Instant::now() + Duration::from_secs(1);
        let Some(child) = &mut self.child else { return String::new() };
        while Instant::now() < deadline {
            if let Ok(Some(status)) = child.try_wait() {
                return format!(" ({status})");
            }
            thread::sleep(Duration::from_millis(5));
        }
        String::new()
    }

    /// It serves, and lives on.
    fn release(mut self) -> Channel {
        // Whoever adopts it waits for its end.
        drop(self.child.take());
        self.channel.take().expect("it is released once")
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn cannot_start(program: &Path, error: &io::Error) -> Stop {
    let why = format!("cannot start {}: {error}", program.display());
    let is_wrong = [Errno::NOENT, Errno::ACCESS, Errno::NOEXEC, Errno::NOTDIR, Errno::ISDIR, Errno::LOOP];
    let exit_code = if is_wrong.map(Some).contains(&Errno::from_io_error(error)) { 2 } else { 1 };
    Stop { exit_code, why }
}
