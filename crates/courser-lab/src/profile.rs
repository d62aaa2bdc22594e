//! Where a server's processor time goes: its program counter and its stack, looked at many times a second.
//!
//! `perf` looks, from outside, at whole cores and not at processes: a thread that lives for a millisecond
//! never reaches its own first tick, and a server with a thread per connection would look idle. Whoever is
//! not of the server's family is left out afterwards. The clock is the kernel's (cpu-clock): virtual machines
//! often have no counters. Stacks are unwound by what compilers leave for exceptions, since distributions
//! build without frame pointers.
//!
//! It stays out of a measurement's figures: what it takes is taken from the server as well.

mod class;
mod fold;
mod script;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use courser_machine::usage;
use courser_record::lab;
use script::Script;

/// What is asked of `perf record`, but for the cores and the file: no idle loop; nothing kept in the user's home. With
/// 8 KB of stack a sample, which is usual, one in six of a Rust server's stacks has no outer end; with 24, none. The
/// largest file is far more than a run makes.
const LOOK: [&str; 9] = [
    "record",
    "--quiet",
    "--no-buildid-cache",
    "--event",
    "cpu-clock:I",
    "--call-graph",
    "dwarf,24576",
    "--max-size",
    "1G",
];

/// How its file is read: one line for each process that was born or was there, then samples with a line per
/// frame.
const READ: [&str; 6] =
    ["script", "--no-inline", "--show-task-events", "--fields", "comm,pid,ip,sym,dso", "--input"];

/// Whether sampling can be had here.
///
/// # Errors
/// Why not, and what to do about it.
pub fn available() -> Result<(), String> {
    let tried = perf(&LOOK).args(["--freq", "99", "--all-cpus", "--output", "-", "--", "true"]).output();
    match tried {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err("perf is not installed: Debian's package is linux-perf".to_owned())
        }
        Err(error) => Err(format!("perf cannot be started: {error}")),
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "perf may not look at whole cores here (be root, or set kernel.perf_event_paranoid to 0): {}",
            last_line(&String::from_utf8_lossy(&output.stderr))
        )),
    }
}

/// Sampling that is under way. Dropped, or its owner killed, it ends by itself and leaves no process.
pub struct Sampling {
    perf: Child,
    root: u32,
    hertz: u32,
    data: PathBuf,
    said: PathBuf,
}

impl Sampling {
    /// Begins to look at the cores that the family of `root` may use, `hertz` times a second of each. Its
    /// files are `perf.data` (removed in the end) and `perf.log` in `folder`.
    ///
    /// # Errors
    /// Perf cannot be started, or a file not be made.
    pub fn start(root: u32, hertz: u32, folder: &Path) -> Result<Self, String> {
        let (data, said) = (folder.join("perf.data"), folder.join("perf.log"));
        let log = File::create(&said).map_err(|error| format!("cannot write {}: {error}", said.display()))?;
        let mut command = perf(&LOOK);
        command.args(["--freq", &hertz.to_string()]).arg("--output").arg(&data);
        match cores(root) {
            Some(cores) => command.args(["--cpu", &cores]),
            None => command.arg("--all-cpus"),
        };
        // It looks until `cat` ends, and that ends with our end of the pipe: when we close it, or are no
        // more.
        command.args(["--", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let perf = command.spawn().map_err(|error| format!("perf cannot be started: {error}"))?;
        Ok(Self { perf, root, hertz, data, said })
    }

    /// Ends it, and says where the time of the family went.
    ///
    /// # Errors
    /// Perf failed, or saw nothing of the family.
    pub fn finish(mut self) -> Result<lab::Profile, String> {
        let ended = self.end();
        if !ended.is_ok_and(|status| status.success()) {
            let said = fs::read_to_string(&self.said).unwrap_or_default();
            return Err(format!("perf failed: {}", last_line(&said)));
        }
        let read = perf(&READ).arg(&self.data).stdin(Stdio::null()).output();
        let output = read.map_err(|error| format!("perf cannot be started: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "perf cannot read its own file: {}",
                last_line(&String::from_utf8_lossy(&output.stderr))
            ));
        }
        profile(&String::from_utf8_lossy(&output.stdout), self.root, self.hertz)
    }

    fn end(&mut self) -> io::Result<std::process::ExitStatus> {
        drop(self.perf.stdin.take());
        self.perf.wait()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // There is nobody to tell, and nothing to do about it.
        let _ = self.end();
        let _ = fs::remove_file(&self.data);
    }
}

/// Perf, whatever this user has set up for it; asking no server for symbols.
fn perf(arguments: &[&str]) -> Command {
    let mut command = Command::new("perf");
    command.args(arguments).stdin(Stdio::null()).env("PERF_CONFIG", "/dev/null").env("LC_ALL", "C");
    command.env_remove("DEBUGINFOD_URLS");
    command
}

/// The CPUs that the family may use, as a list of ranges; none when it cannot be told.
fn cores(root: u32) -> Option<String> {
    let allowed = |pid: u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(list.trim().to_owned())
    };
    let lists: Vec<String> = usage::family(root).ok()?.into_iter().filter_map(allowed).collect();
    (!lists.is_empty()).then(|| lists.join(","))
}

fn last_line(said: &str) -> &str {
    said.lines().rev().find(|line| !line.trim().is_empty()).map_or("it said nothing", str::trim)
}

/// What the text of `perf script` says about a process and all that descend from it.
fn profile(text: &str, root: u32, hertz: u32) -> Result<lab::Profile, String> {
    let script = Script::parse(text);
    let stacks: Vec<_> = script.of_family(root).collect();
    if stacks.is_empty() {
        return Err(format!(
            "none of perf's {} samples is of process {root}: was it idle?",
            script.samples.len()
        ));
    }
    let mut classes: BTreeMap<String, u64> = BTreeMap::new();
    let mut system_calls: BTreeMap<String, u64> = BTreeMap::new();
    for stack in &stacks {
        *classes.entry(class::of(stack).name().to_owned()).or_default() += 1;
        if let Some(call) = class::system_call(stack) {
            *system_calls.entry(call.to_owned()).or_default() += 1;
        }
    }
    Ok(lab::Profile {
        samples: stacks.len() as u64,
        hertz,
        classes,
        system_calls,
        symbols: fold::symbols(&stacks),
        folded: fold::folded(&stacks),
    })
}

#[cfg(test)]
mod tests;
