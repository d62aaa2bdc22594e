//! Other terminators, set up to do what `courser serve` does in a benchmark: one worker, one certificate, one suite,
//! X25519, logging off, a TCP backend on loopback.
//!
//! Each runs in the foreground as the process that is measured, with its files in a temporary folder.

mod haproxy;
mod hitch;
mod nginx;
mod stunnel;

use std::{
    ffi::OsString,
    fs, io,
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Folder, KeyType, PATIENCE, Process,
    client::{Terms, Version},
    find, free_port,
    process::pinned,
};

/// What every terminator of a comparison is set up with.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What connections are to agree on. `Resume::Never` leaves tickets as they are by default (two per TLS 1.3 handshake):
    /// the client does not use them. `Ticket` turns the session cache off, `SessionId` turns tickets off.
    pub terms: Terms,
    /// Chain and key in one file.
    pub certificate: PathBuf,
    /// Where plain bytes go.
    pub backend: SocketAddr,
    /// Length of the listen queue.
    pub backlog: u32,
    /// The core that it runs on, if it is to be pinned.
    pub core: Option<usize>,
}

impl Setting {
    /// The TLS 1.2 suite by its OpenSSL name.
    pub fn tls12_suite(&self) -> &'static str {
        match self.terms.key {
            KeyType::Rsa2048 => "ECDHE-RSA-AES128-GCM-SHA256",
            _ => "ECDHE-ECDSA-AES128-GCM-SHA256",
        }
    }

    /// `one` or `other` by the version: for the names that each program has for the versions.
    fn by_version<T>(&self, tls12: T, tls13: T) -> T {
        match self.terms.version {
            Version::Tls12 => tls12,
            Version::Tls13 => tls13,
        }
    }
}

/// A terminator to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Competitor {
    /// nginx with its stream module.
    Nginx,
    /// HAProxy in TCP mode.
    Haproxy,
    /// hitch.
    Hitch,
    /// stunnel, which has a thread for each connection.
    Stunnel,
}

impl Competitor {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nginx, Self::Haproxy, Self::Hitch, Self::Stunnel];

    /// Its name, as in reports and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Hitch => "hitch",
            Self::Stunnel => "stunnel",
        }
    }

    /// Where its program is, if it is installed.
    pub fn program(self) -> Option<PathBuf> {
        find(if self == Self::Stunnel { "stunnel4" } else { self.name() })
    }

    /// The version that it prints, in one line.
    pub fn version(self, program: &Path) -> String {
        let flag = if matches!(self, Self::Hitch) { "--version" } else { "-v" };
        let flag = if self == Self::Stunnel { "-version" } else { flag };
        let output = Command::new(program).arg(flag).output();
        let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| line.contains(|c: char| c.is_ascii_digit()));
        line.unwrap_or("unknown").trim().to_owned()
    }

    /// Starts it on a free port and waits until it accepts connections.
    ///
    /// # Errors
    /// When it is not installed, ends at once, or does not listen in time; with what it printed.
    pub fn start(self, setting: &Setting) -> io::Result<Running> {
        let program = self.program().ok_or_else(|| io::Error::other("not installed"))?;
        self.start_program(&program, setting)
    }

    /// As [`Self::start`], but this build of it.
    ///
    /// # Errors
    /// When it ends at once, or does not listen in time; with what it printed.
    pub fn start_program(self, program: &Path, setting: &Setting) -> io::Result<Running> {
        let folder = Folder::new();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let arguments = match self {
            Self::Nginx => nginx::arguments(setting, address, &folder),
            Self::Haproxy => haproxy::arguments(setting, address, &folder),
            Self::Hitch => hitch::arguments(setting, address, &folder),
            Self::Stunnel => stunnel::arguments(setting, address, &folder),
        };
        let mut process =
            Process::start(command(program, &arguments, setting.core).current_dir(folder.path()));
        wait_until_accepting(address, &mut process)?;
        Ok(Running { process, address, _folder: folder })
    }
}

/// A competitor that accepts connections; it ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    /// Its first process; the workers are its children.
    pub process: Process,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its configuration, for as long as it runs.
    _folder: Folder,
}

fn command(program: &Path, arguments: &[OsString], core: Option<usize>) -> Command {
    let mut command = match core {
        Some(core) => pinned(program, core),
        None => Command::new(program),
    };
    command.args(arguments);
    command
}

/// None of them reports that it is ready in a way that the others share, so connecting is tried until it succeeds.
fn wait_until_accepting(address: SocketAddr, process: &mut Process) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_err() {
        if !process.is_running() || Instant::now() > deadline {
            let printed = [process.stdout(), process.stderr()].concat().join(" | ");
            return Err(io::Error::other(format!("does not listen: {printed}")));
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Splits chain and key of a combined file into two, for programs that want them apart.
fn split_certificate(setting: &Setting, folder: &Folder) -> (PathBuf, PathBuf) {
    let combined = fs::read_to_string(&setting.certificate).expect("the setting's certificate can be read");
    let key_begin = combined.find("-----BEGIN PRIVATE KEY").expect("a combined file ends with a PKCS #8 key");
    (folder.write("site.crt", &combined[..key_begin]), folder.write("site.key", &combined[key_begin..]))
}
