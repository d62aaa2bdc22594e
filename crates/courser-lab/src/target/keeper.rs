//! Our end of a keeper: a process that has the target, and ends it when we end.
//!
//! It is this program again (`keep`), in a process group of its own, so that Ctrl-C in a terminal reaches us alone. Its
//! standard input is a pipe from us: when we are gone, however, it reads the end of it. When it is the keeper that was
//! killed, its processes become our children, and we end them.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::family;

/// This program, also when its file was replaced meanwhile.
const OURSELVES: &str = "/proc/self/exe";
/// How long a keeper may take to end everything: a second for the polite way, and then some. After that it is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// What stands before the process numbers, in the first line that a keeper prints.
pub const PIDS: &str = "pids ";
/// What stands before the reason, in the line that a keeper prints when a target has ended by itself.
pub const ENDED: &str = "ended ";

/// What a keeper is to keep. It is handed over as a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Processors to stay on; empty for all.
    pub cpus: Vec<usize>,
    /// Commands, in the order in which they are started.
    pub commands: Vec<KeptCommand>,
}

/// A program that is to run for as long as the keeper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptCommand {
    /// What messages call it.
    pub name: String,
    /// The program, then its arguments.
    pub command: Vec<String>,
    /// Variables on top of our own environment.
    pub environment: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// The file that has what it prints.
    pub log: PathBuf,
}

/// A keeper that runs, or has ended. Dropping it ends it, with all that it keeps.
#[derive(Debug)]
pub(super) struct Keeper {
    /// Its number.
    pub(super) pid: u32,
    /// The numbers of what it started, in order.
    pub(super) kept: Vec<u32>,
    /// As long as it is open, the keeper goes on.
    input: Option<ChildStdin>,
    state: Arc<State>,
    watcher: Option<JoinHandle<()>>,
}

/// What is known of a keeper's end.
#[derive(Debug, Default)]
struct State {
    /// Why; none while it runs.
    ended: Mutex<Option<String>>,
    /// Told once nothing of it is left.
    over: Condvar,
}

impl Keeper {
    /// Starts a keeper, which starts what is in the file `spec`.
    pub(super) fn start(spec: &Path) -> Result<Self, String> {
        adopt_orphans()?;
        let mut child = command(spec).spawn().map_err(|why| format!("cannot start a keeper: {why}"))?;
        let (input, pid) = (child.stdin.take(), child.id());
        let output = child.stdout.take().expect("standard output is a pipe");
        let state = Arc::new(State::default());
        let (pids, started) = channel();
        let watched = Arc::clone(&state);
        let watcher = Some(thread::spawn(move || watch(child, output, &pids, &watched)));
        let mut keeper = Self { pid, kept: Vec::new(), input, state, watcher };
        keeper.kept = keeper.started(&started)?;
        Ok(keeper)
    }

    fn started(&self, pids: &Receiver<Vec<u32>>) -> Result<Vec<u32>, String> {
        pids.recv().map_err(|_| {
            self.state.wait(PATIENCE);
            self.ended().unwrap_or_else(|| "its keeper says nothing".into())
        })
    }

    /// Why what it keeps has ended; none while it runs. What has just ended is waited for: its keeper ends the rest
    /// before it says why.
    pub(super) fn ended(&self) -> Option<String> {
        if self.kept.iter().any(|pid| !family::is_running(*pid)) {
            self.state.wait(PATIENCE);
        }
        self.state.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.input.take();
        if !self.state.wait(PATIENCE) {
            kill(self.pid);
        }
        if let Some(watcher) = self.watcher.take() {
            // It has no way to fail that somebody could do something about.
            let _ = watcher.join();
        }
    }
}

impl State {
    /// Waits for the end; false when it has not come.
    fn wait(&self, patience: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.over.wait_timeout_while(ended, patience, |ended| ended.is_none());
        waited.is_ok_and(|(ended, _)| ended.is_some())
    }

    fn end(&self, why: String) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.over.notify_all();
    }
}

fn command(spec: &Path) -> Command {
    let mut command = Command::new(OURSELVES);
    command.arg0("courser-bench").arg("supervise").arg(spec);
    // Its own complaints are ours.
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).process_group(0);
    command
}

/// Reads what a keeper says until it has ended, and ends what it may have left.
fn watch(mut child: Child, output: ChildStdout, pids: &Sender<Vec<u32>>, state: &State) {
    let mut why = None;
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some(numbers) = line.strip_prefix(PIDS) {
            // Nobody listens when the start was given up.
            let _ = pids.send(numbers.split(' ').filter_map(|pid| pid.parse().ok()).collect());
        }
        why = why.or_else(|| Some(line.strip_prefix(ENDED)?.to_owned()));
    }
    let status = child.wait();
    family::end_orphans(child.id());
    state.end(why.unwrap_or_else(|| match status {
        Ok(status) => format!("its keeper has ended ({status})"),
        Err(why) => format!("its keeper cannot be waited for: {why}"),
    }));
}

/// What a killed keeper leaves becomes our child, and not that of the first process of the system.
fn adopt_orphans() -> Result<(), String> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).map_err(|why| format!("cannot adopt processes: {why}"))
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // The watcher has not waited for it yet, so the number is still its own.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
