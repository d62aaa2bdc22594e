//! `courser serve` as a process: started on free ports, its addresses read from its output, stopped when dropped.

use std::{
    ffi::OsStr,
    fs::File,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    process::Command,
};

use nix::unistd::geteuid;
use serde_json::Value;

use crate::network::Host;
use crate::{Folder, Process, process::pinned};

/// What precedes the address in the line that the program prints for each socket.
const LISTENING: &str = "listening on ";

/// The folder that a service manager makes for a service (systemd.exec(5)).
const RUNTIME_FOLDER: &str = "RUNTIME_DIRECTORY";

/// How to start the program; [`Setup::start`] does it.
///
/// Unless `--listen` or `--config` is given, it listens on a free port of 127.0.0.1.
#[derive(Debug)]
pub struct Setup {
    program: PathBuf,
    arguments: Vec<std::ffi::OsString>,
    /// The command in front of the program: what puts it on another host.
    prefix: Vec<String>,
    core: Option<usize>,
    sockets: Option<usize>,
    environment: Vec<(String, String)>,
    stdout: Option<File>,
    stderr: Option<File>,
}

impl Setup {
    /// One argument to `serve`.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Arguments to `serve`, in order.
    pub fn args<S: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = S>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// `--cert FILE`.
    pub fn cert(self, file: impl AsRef<OsStr>) -> Self {
        self.arg("--cert").arg(file)
    }

    /// `--backend ADDRESS`.
    pub fn backend(self, address: impl AsRef<OsStr>) -> Self {
        self.arg("--backend").arg(address)
    }

    /// `--listen ADDRESS`.
    pub fn listen(self, address: impl AsRef<OsStr>) -> Self {
        self.arg("--listen").arg(address)
    }

    /// `--config FILE`; [`Setup::sockets`] sets how many sockets the file has if it is not one.
    pub fn config(self, file: &Path) -> Self {
        self.arg("--config").arg(file)
    }

    /// How many sockets it will print, to wait for all of them. Default: the number of `--listen`, at least one.
    pub fn sockets(mut self, count: usize) -> Self {
        self.sockets = Some(count);
        self
    }

    /// Runs on this core only.
    pub fn on_core(mut self, core: usize) -> Self {
        self.core = Some(core);
        self
    }

    /// Runs on this host.
    pub fn on_host(mut self, host: &Host) -> Self {
        self.prefix = host.prefix();
        self
    }

    /// Runs it by this command, such as an instrument with its options. Not together with [`Setup::on_core`].
    pub fn under(mut self, command: &[&str]) -> Self {
        self.prefix = command.iter().map(|&part| part.to_owned()).collect();
        self
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where its standard output goes, which is not collected then.
    pub fn stdout(mut self, file: impl Into<File>) -> Self {
        self.stdout = Some(file.into());
        self
    }

    /// Where its standard error goes, which is not collected then; only [`Setup::launch`] can start it so.
    pub fn stderr(mut self, file: impl Into<File>) -> Self {
        self.stderr = Some(file.into());
        self
    }

    /// Starts it and waits until it has printed every socket.
    ///
    /// # Panics
    /// When it cannot be started or does not print its sockets.
    #[must_use]
    pub fn start(self) -> Courser {
        self.try_start().unwrap_or_else(|why| panic!("courser does not listen: {why}"))
    }

    /// As [`Setup::start`], for callers that can go on without it.
    ///
    /// # Errors
    /// When it ends or does not print its sockets in time; with what it printed.
    pub fn try_start(&self) -> Result<Courser, String> {
        let expected = self.sockets.unwrap_or_else(|| self.count("--listen").max(1));
        let process = self.launch();
        let addresses = process.try_wait_stderr(|lines| {
            let found = printed_addresses(lines);
            (found.len() >= expected).then_some(found)
        })?;
        Ok(Courser { process, addresses })
    }

    /// Starts it without waiting for anything: for set-ups that it has to refuse.
    #[must_use]
    pub fn launch(&self) -> Process {
        let mut command = match (self.core, self.prefix.split_first()) {
            (Some(core), _) => pinned(&self.program, core),
            (None, None) => Command::new(&self.program),
            (None, Some((first, rest))) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
        };
        command.arg("serve").args(&self.arguments);
        if self.count("--listen") + self.count("--config") == 0 {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        if !geteuid().is_root() && self.count("--core-dumps") == 0 {
            // What it hides from other processes of its user are its descriptors and memory too, which tests count.
            command.arg("--core-dumps");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = |file: &Option<File>| {
            file.as_ref().map(|file| file.try_clone().expect("there is a descriptor left"))
        };
        // Its default control socket is in a folder of its own: several run at a time.
        let folder = Folder::new();
        if !self.environment.iter().any(|(name, _)| name == RUNTIME_FOLDER) {
            command.env(RUNTIME_FOLDER, folder.path());
        }
        Process::start_with_outputs(&mut command, output(&self.stdout), output(&self.stderr))
            .with_folder(folder)
    }

    fn count(&self, flag: &str) -> usize {
        self.arguments.iter().filter(|argument| argument.as_os_str() == flag).count()
    }
}

/// A running terminator; a [`Process`] that knows where it listens.
#[derive(Debug)]
pub struct Courser {
    process: Process,
    addresses: Vec<String>,
}

impl Courser {
    /// Begins a set-up of the program at `program`: `env!("CARGO_BIN_EXE_courser")` in the tests of its crate.
    pub fn setup(program: impl Into<PathBuf>) -> Setup {
        Setup {
            program: program.into(),
            arguments: Vec::new(),
            prefix: Vec::new(),
            core: None,
            sockets: None,
            environment: Vec::new(),
            stdout: None,
            stderr: None,
        }
    }

    /// Every address as printed, in order, each once: `127.0.0.1:43121`, `unix:/run/x.sock`.
    pub fn addresses(&self) -> &[String] {
        &self.addresses
    }

    /// The first TCP address, to connect to: an unspecified address becomes the loopback address.
    ///
    /// # Panics
    /// When none of its addresses is a TCP address.
    pub fn address(&self) -> SocketAddr {
        self.addresses
            .iter()
            .find_map(|address| address.parse().ok())
            .map(reachable)
            .unwrap_or_else(|| panic!("no TCP address among {:?}", self.addresses))
    }

    /// Waits for `count` lines of the connection log and returns all there are.
    ///
    /// # Panics
    /// When fewer lines come in time.
    pub fn connections(&self, count: usize) -> Vec<String> {
        self.process.wait_stdout("connection log", |lines| (lines.len() >= count).then(|| lines.to_vec()))
    }

    /// As [`Courser::connections`], for a program started with `--log json`.
    ///
    /// # Panics
    /// When fewer lines come in time or one is not JSON.
    pub fn connections_json(&self, count: usize) -> Vec<Value> {
        let parse = |line: &String| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("log line is not JSON: {error}: {line}"))
        };
        self.connections(count).iter().map(parse).collect()
    }
}

impl Deref for Courser {
    type Target = Process;
    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Courser {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// The addresses in start-up lines: the word after "listening on", which may end in punctuation. Several workers may
/// print the same address.
fn printed_addresses(lines: &[String]) -> Vec<String> {
    let mut addresses: Vec<String> = Vec::new();
    for line in lines {
        let Some((_, rest)) = line.split_once(LISTENING) else { continue };
        let word = rest.split([' ', ',', '"']).next().unwrap_or_default();
        if !addresses.iter().any(|known| known == word) {
            addresses.push(word.to_owned());
        }
    }
    addresses
}

fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_start_up_lines() {
        let lines = [
            "courser 0.1.0, 2 workers",
            "listener web: listening on 127.0.0.1:43121",
            "listener web: listening on 127.0.0.1:43121",
            "info listening on unix:/tmp/a.sock, mode 0600",
            "msg=\"listening on [::]:443\"",
        ]
        .map(String::from);
        assert_eq!(printed_addresses(&lines), ["127.0.0.1:43121", "unix:/tmp/a.sock", "[::]:443"]);
    }

    #[test]
    fn an_unspecified_address_is_reached_over_loopback() {
        assert_eq!(reachable("[::]:443".parse().unwrap()), "[::1]:443".parse().unwrap());
        assert_eq!(reachable("10.0.0.1:443".parse().unwrap()), "10.0.0.1:443".parse().unwrap());
    }
}
