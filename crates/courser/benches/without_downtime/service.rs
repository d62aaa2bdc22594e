//! The service under test: started once, and from then on known by its sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{Courser, Folder, KeyType, OriginServer, PATIENCE, Process, TestCa, usage};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_courser");

pub(crate) struct Service {
    _courser: Courser,
    folder: Folder,
    origin: OriginServer,
    echo: OriginServer,
    drain: Duration,
    certificates: [PathBuf; 2],
    reloads: AtomicUsize,
    pub(crate) root: PathBuf,
    pub(crate) address: SocketAddr,
    echo_address: SocketAddr,
}

/// What the service holds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Held {
    /// Bytes, of all its processes.
    pub(crate) memory: u64,
    /// Processes that were replaced and still drain.
    pub(crate) old: usize,
    /// Descriptors of the process that serves.
    pub(crate) descriptors: usize,
}

impl Service {
    pub(crate) fn start(drain: Duration) -> Self {
        let (folder, ca) = (Folder::new(), TestCa::new());
        let certificates = ["one", "other"].map(|name| ca.localhost(KeyType::EcdsaP256, &folder, name));
        let (origin, echo) = (OriginServer::http(), OriginServer::echo());
        let root = ca.write_root(&folder);
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let config = folder.join("courser.toml");
        fs::write(&config, text(drain, &certificates[0], &origin, &echo, 0)).expect("a file can be written");
        let control = folder.join("control.sock").display().to_string();
        let setup = Courser::setup(PROGRAM).config(&config).sockets(2);
        let courser = setup.args(["--log", "off", "--no-reload-on-change", "--control", &control]).start();
        let addresses = courser.addresses().iter().filter_map(|address| address.parse().ok());
        let addresses: Vec<SocketAddr> = addresses.collect();
        let [address, echo_address] = addresses[..].try_into().unwrap_or([unknown; 2]);
        let reloads = AtomicUsize::new(0);
        Self {
            _courser: courser,
            folder,
            origin,
            echo,
            drain,
            certificates,
            reloads,
            root,
            address,
            echo_address,
        }
    }

    fn courser(&self, command: &str) -> Result<String, String> {
        let control = self.folder.join("control.sock");
        let mut process = Command::new(PROGRAM);
        let process = process.arg(command).arg("--json").arg("--control").arg(control);
        let finished = Process::start(process).finish();
        if finished.status.success() {
            return Ok(finished.stdout);
        }
        Err(format!("{}: {}{}", finished.status, finished.stdout, finished.stderr))
    }

    /// With another certificate and another setting than before.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let number = self.reloads.fetch_add(1, Ordering::Relaxed) + 1;
        let text = text(self.drain, &self.certificates[number % 2], &self.origin, &self.echo, number);
        // An upgrade may read it at any time.
        let next = self.folder.join("next.toml");
        let written =
            fs::write(&next, text).and_then(|()| fs::rename(&next, self.folder.join("courser.toml")));
        written.map_err(|error| error.to_string())?;
        self.courser("reload").map(drop)
    }

    pub(crate) fn upgrade(&self) -> Result<(), String> {
        self.courser("upgrade").map(drop)
    }

    /// Sends a byte now and then, gets each back, and ends after this time.
    pub(crate) fn relay(&self, lasts: Duration) -> Result<(), String> {
        const PAUSE: Duration = Duration::from_millis(250);
        let client = Client::new(self.echo_address, Version::Tls13, KeyType::EcdsaP256, Resume::Never);
        let (begun, mut byte) = (Instant::now(), [0]);
        let mut connection = client.connect().map_err(|error| error.to_string())?;
        while begun.elapsed() < lasts {
            let echoed =
                connection.stream().write_all(b"?").and_then(|()| connection.stream().read_exact(&mut byte));
            echoed.map_err(|error| format!("cut after {:?}: {error}", begun.elapsed()))?;
            thread::sleep(PAUSE);
        }
        connection.close().map_err(|error| error.to_string())
    }

    fn status(&self) -> Option<Value> {
        serde_json::from_str(&self.courser("status").ok()?).ok()
    }

    /// What it holds now. A process that ends meanwhile holds nothing.
    pub(crate) fn held(&self) -> Held {
        let Some(status) = self.status() else { return Held::default() };
        let pid =
            |process: &Value| process["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0);
        let old = status["old_processes"].as_array().cloned().unwrap_or_default();
        let memory = |pid| usage::memory(pid).map_or(0, |memory| memory.pss);
        let serves = pid(&status);
        Held {
            memory: memory(serves) + old.iter().map(|old| memory(pid(old))).sum::<u64>(),
            old: old.len(),
            descriptors: usage::descriptors(serves).unwrap_or(0),
        }
    }

    /// Once no process drains any more, and the control socket has closed the question about it.
    pub(crate) fn at_rest(&self) -> Held {
        let deadline = Instant::now() + PATIENCE + self.drain;
        let mut held = self.held();
        while held.old > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(50));
            held = self.held();
        }
        held
    }

    /// Processes of this service beside the one that serves and its questioner.
    pub(crate) fn left_over(&self) -> usize {
        let serves = self.status().and_then(|status| status["pid"].as_u64()).unwrap_or(0).to_string();
        let ours = self.folder.join("courser.toml").display().to_string();
        let is_left = |entry: &fs::DirEntry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            entry.file_name().to_string_lossy() != *serves
                && String::from_utf8_lossy(&line).split('\0').any(|argument| argument == ours)
        };
        let Ok(processes) = fs::read_dir("/proc") else { return 0 };
        processes.flatten().filter(is_left).count()
    }
}

fn text(
    drain: Duration,
    certificate: &std::path::Path,
    origin: &OriginServer,
    echo: &OriginServer,
    number: usize,
) -> String {
    let (drain, idle, certificate) = (drain.as_secs(), 60 + number % 7, certificate.display());
    let listener = |name: &str, backend: &str| {
        format!(
            "[[listener]]\nname = '{name}'\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\nbackend = '{backend}'\n\
             idle_timeout = '{idle}s'\n"
        )
    };
    let listeners = [listener("web", origin.backend()), listener("echo", echo.backend())].concat();
    format!("workers = 2\nhard_stop_after = '{drain}s'\n{listeners}")
}
