//! A guard over a started program: it collects what the program prints, and stops it in any case.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

pub use nix::sys::signal::Signal;
use nix::{sys::signal, unistd::Pid};

use crate::Folder;
use crate::usage::{self, Memory};

/// How long a program may take for what it does at once on an idle machine: generous, since it only bounds failures.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a program to its end. The bound is for judges that move a gigabyte on a machine that does other things too.
///
/// # Panics
/// When it still runs after five times [`PATIENCE`].
#[must_use]
pub fn run(command: &mut Command) -> Finished {
    let mut process = Process::start(command);
    let deadline = Instant::now() + 5 * PATIENCE;
    while process.is_running() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    process.finish()
}

/// A running program in a process group of its own. Dropping it sends SIGTERM, then SIGKILL to the whole group; if
/// the test is panicking, what the program printed is printed too.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdout: Arc<Output>,
    stderr: Arc<Output>,
    /// Goes away with it.
    folder: Option<Folder>,
}

impl Process {
    /// Starts `command` with both outputs collected and no input.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self::start_with_outputs(command, None, None)
    }

    /// As [`Process::start`], with outputs that go elsewhere and are not collected.
    #[must_use]
    pub fn start_with_outputs(command: &mut Command, stdout: Option<File>, stderr: Option<File>) -> Self {
        let piped = |file: Option<File>| file.map_or_else(Stdio::piped, Stdio::from);
        Self::spawn(command.stdin(Stdio::null()).stdout(piped(stdout)).stderr(piped(stderr)))
    }

    /// As [`Process::start`], with `input` and then an end of file on its standard input.
    #[must_use]
    pub fn start_with_input(command: &mut Command, input: impl Into<Vec<u8>>) -> Self {
        let mut process =
            Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let (mut pipe, input) = (process.child.stdin.take().expect("stdin is piped"), input.into());
        // A thread, for a program that fills its output before it reads; one that ends early need not read at all.
        thread::spawn(move || pipe.write_all(&input).ok());
        process
    }

    /// As [`Process::start`], with a standard input that the caller writes to and ends.
    #[must_use]
    pub fn start_with_stdin(command: &mut Command) -> (Self, ChildStdin) {
        let mut process =
            Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let input = process.child.stdin.take().expect("stdin is piped");
        (process, input)
    }

    fn spawn(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child =
            command.process_group(0).spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let stdout = child.stdout.take().map_or_else(Output::elsewhere, Output::collect);
        let stderr = child.stderr.take().map_or_else(Output::elsewhere, Output::collect);
        Self { name, child, stdout, stderr, folder: None }
    }

    /// Keeps a folder for as long as the process.
    #[must_use]
    pub(crate) fn with_folder(mut self, folder: Folder) -> Self {
        self.folder = Some(folder);
        self
    }

    /// The process id; with [`pinned`] that of the program, not of `taskset`.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Every line printed to standard output so far, the last one without its line end too once the output is closed.
    pub fn stdout(&self) -> Vec<String> {
        self.stdout.lines()
    }

    /// Every line printed to standard error so far.
    pub fn stderr(&self) -> Vec<String> {
        self.stderr.lines()
    }

    /// Waits until `enough` of the lines on standard output, and returns what it made of them.
    ///
    /// # Panics
    /// After [`PATIENCE`], or when the program closes the output first.
    pub fn wait_stdout<T>(&self, what: &str, enough: impl FnMut(&[String]) -> Option<T>) -> T {
        self.stdout.wait(enough).unwrap_or_else(|why| self.fail(what, &why))
    }

    /// As [`Process::wait_stdout`], for callers that can go on without the program.
    ///
    /// # Errors
    /// Why it did not come, with what the program printed.
    pub fn try_wait_stdout<T>(&self, enough: impl FnMut(&[String]) -> Option<T>) -> Result<T, String> {
        self.stdout.wait(enough).map_err(|why| format!("{why}\n{}", self.transcript()))
    }

    /// As [`Process::wait_stdout`], for standard error.
    ///
    /// # Panics
    /// After [`PATIENCE`], or when the program closes the output first.
    pub fn wait_stderr<T>(&self, what: &str, enough: impl FnMut(&[String]) -> Option<T>) -> T {
        self.try_wait_stderr(enough).unwrap_or_else(|why| self.fail(what, &why))
    }

    /// As [`Process::wait_stderr`], for callers that can go on without the program.
    ///
    /// # Errors
    /// Why it did not come, with what the program printed.
    pub fn try_wait_stderr<T>(&self, enough: impl FnMut(&[String]) -> Option<T>) -> Result<T, String> {
        self.stderr.wait(enough).map_err(|why| format!("{why}\n{}", self.transcript()))
    }

    /// Waits for a line on standard error that contains `part`, and returns the line.
    ///
    /// # Panics
    /// As [`Process::wait_stderr`].
    pub fn wait_stderr_line(&self, part: &str) -> String {
        self.wait_stderr(part, |lines| lines.iter().find(|line| line.contains(part)).cloned())
    }

    /// Sends a signal to the process.
    pub fn signal(&self, signal: Signal) {
        // It may have ended by itself in the meantime, which `wait` reports.
        let _ = signal::kill(raw_pid(&self.child), signal);
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, at most [`PATIENCE`].
    ///
    /// # Panics
    /// When it still runs after that.
    pub fn wait(&mut self) -> ExitStatus {
        match self.wait_for(PATIENCE) {
            Some(status) => status,
            None => self.fail("end of the process", "still running"),
        }
    }

    /// Waits for its end and for the last byte of both outputs, at most [`PATIENCE`] each: for a program that is run
    /// for what it prints.
    ///
    /// # Panics
    /// When it still runs after that.
    #[must_use]
    pub fn finish(mut self) -> Finished {
        let status = self.wait();
        let whole = |output: &Output| {
            output.wait_closed().unwrap_or_else(|why| self.fail("the end of its output", &why)).join("\n")
        };
        Finished { status, stdout: whole(&self.stdout), stderr: whole(&self.stderr) }
    }

    /// Sends SIGTERM and waits for the end.
    ///
    /// # Panics
    /// As [`Process::wait`].
    pub fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.wait()
    }

    /// Processor time of the process and its descendants, see [`usage::cpu_time`].
    ///
    /// # Panics
    /// When the process has ended.
    pub fn cpu_time(&self) -> Duration {
        // A descendant that ends between the listing and the reading counts nothing: workers of servers live on.
        let times = self.family().into_iter().map(|pid| usage::cpu_time(pid).unwrap_or_default());
        times.sum()
    }

    /// Memory of the process and its descendants.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn memory(&self) -> Memory {
        self.family().into_iter().map(|pid| usage::memory(pid).unwrap_or_default()).sum()
    }

    /// How many descriptors the process itself has open.
    ///
    /// # Panics
    /// When the process has ended.
    pub fn descriptors(&self) -> usize {
        usage::descriptors(self.pid())
            .unwrap_or_else(|error| self.fail("its descriptors", &error.to_string()))
    }

    fn family(&self) -> Vec<u32> {
        usage::family(self.pid()).unwrap_or_else(|error| self.fail("its processes", &error.to_string()))
    }

    /// Polls, because the standard library has no wait with a limit; only endings pay the 5 ms.
    fn wait_for(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Everything it printed, for a person to read.
    fn transcript(&self) -> String {
        let mut text = String::new();
        for (stream, output) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            for line in output.lines() {
                text.push_str(&format!("  {} {stream}: {line}\n", self.name));
            }
        }
        text
    }

    fn fail(&self, what: &str, why: &str) -> ! {
        panic!("waiting for {what} of {}: {why}", self.name)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- {} (process {}) printed:\n{}---", self.name, self.pid(), self.transcript());
        }
        if self.is_running() {
            self.signal(Signal::SIGTERM);
            // Enough for a program that is idle; a test of draining calls `stop`.
            let _ = self.wait_for(Duration::from_secs(1));
        }
        // Children too: a master that was killed, or that ended badly, leaves its workers behind.
        let _ = signal::killpg(raw_pid(&self.child), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// A program that has ended, and what it printed, without the last line's end.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A command that runs `program` on one core only, through `taskset`, which the program replaces.
pub fn pinned(program: &Path, core: usize) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(core.to_string()).arg(program);
    command
}

fn raw_pid(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("process ids are positive and below 2^22"))
}

/// The lines of one output, filled by a thread of its own so that the program never blocks on a full pipe.
#[derive(Debug, Default)]
struct Output {
    state: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    all: Vec<String>,
    closed: bool,
}

impl Output {
    fn collect(pipe: impl Read + Send + 'static) -> Arc<Self> {
        let output = Arc::new(Self::default());
        let filled = Arc::clone(&output);
        thread::spawn(move || filled.fill(BufReader::new(pipe)));
        output
    }

    /// Of which nothing is known.
    fn elsewhere() -> Arc<Self> {
        let output = Self::default();
        output.change(|lines| lines.closed = true);
        Arc::new(output)
    }

    fn fill(&self, mut pipe: impl BufRead) {
        let mut bytes = Vec::new();
        while matches!(pipe.read_until(b'\n', &mut bytes), Ok(1..)) {
            let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
            self.change(|lines| lines.all.push(line));
            bytes.clear();
        }
        self.change(|lines| lines.closed = true);
    }

    fn change(&self, change: impl FnOnce(&mut Lines)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    fn lines(&self) -> Vec<String> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    fn wait<T>(&self, mut enough: impl FnMut(&[String]) -> Option<T>) -> Result<T, String> {
        self.wait_state(|lines| match enough(&lines.all) {
            None if lines.closed => {
                Some(Err(format!("the output ended first, after {} lines", lines.all.len())))
            }
            found => found.map(Ok),
        })?
    }

    fn wait_closed(&self) -> Result<Vec<String>, String> {
        self.wait_state(|lines| lines.closed.then(|| lines.all.clone()))
    }

    fn wait_state<T>(&self, mut enough: impl FnMut(&Lines) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut lines = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = enough(&lines) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("nothing for too long, after {} lines", lines.all.len()));
            }
            lines = self.changed.wait_timeout(lines, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
