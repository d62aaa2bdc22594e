//! The service under test: started once, and from then on known by its sockets.

use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{
    Courser, Folder, KeyType, OriginServer, PATIENCE, Pebble, Process, TestCa, free_port, usage,
};
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_courser");

pub(crate) struct Service {
    process: Courser,
    folder: Folder,
    origin: OriginServer,
    echo: OriginServer,
    drain: Duration,
    certificates: [PathBuf; 2],
    /// Orders certificates in their place.
    authority: Option<Pebble>,
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
    /// With `renew_every` its certificates are ordered from Pebble, and renewed as often as that.
    ///
    /// # Panics
    /// When Pebble is wanted and not installed.
    pub(crate) fn start(drain: Duration, renew_every: Option<Duration>) -> Self {
        let (folder, ca) = (Folder::new(), TestCa::new());
        let certificates = ["one", "other"].map(|name| ca.localhost(KeyType::EcdsaP256, &folder, name));
        let (origin, echo) = (OriginServer::http(), OriginServer::echo());
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        // The authority has to know where to look for its challenges.
        let port = renew_every.map_or(0, |_| free_port());
        let authority = renew_every.map(|every| {
            // Of so short a life a half is left when it is renewed.
            let setup = Pebble::setup(port).profile("seconds", 2 * every.as_secs().max(1));
            setup.start().expect("pebble and pebble-challtestsrv are installed")
        });
        let root = authority.as_ref().map_or_else(|| ca.write_root(&folder), Pebble::root);
        let config = folder.join("courser.toml");
        let text = Text { drain, origin: &origin, echo: &echo, port, authority: authority.as_ref() };
        fs::write(&config, text.with(&certificates[0], 0)).expect("a file can be written");
        fs::DirBuilder::new().mode(0o700).create(folder.join("state")).expect("a folder can be made");
        let control = folder.join("control.sock").display().to_string();
        let setup = Courser::setup(PROGRAM).config(&config).sockets(2);
        let courser = setup.args(["--log", "off", "--no-reload-on-change", "--control", &control]).start();
        let addresses = courser.addresses().iter().filter_map(|address| address.parse().ok());
        let addresses: Vec<SocketAddr> = addresses.collect();
        let [address, echo_address] = addresses[..].try_into().unwrap_or([unknown; 2]);
        let reloads = AtomicUsize::new(0);
        let service = Self {
            process: courser,
            folder,
            origin,
            echo,
            drain,
            certificates,
            authority,
            reloads,
            root,
            address,
            echo_address,
        };
        service.wait_for_certificate();
        service
    }

    /// Certificates that were issued, where they are ordered.
    pub(crate) fn issued(&self) -> Option<usize> {
        self.authority.as_ref().map(Pebble::issued)
    }

    /// What the program says of orders that failed.
    pub(crate) fn failed_orders(&self) -> Vec<String> {
        self.process.stderr().into_iter().filter(|line| line.contains("not ordered")).collect()
    }

    /// The first one is served when the program says that it is there.
    fn wait_for_certificate(&self) {
        let deadline = Instant::now() + PATIENCE;
        let is_there = |status: Value| status["acme"][0]["not_after"].is_i64();
        while self.authority.is_some() && !self.status().is_some_and(is_there) {
            assert!(Instant::now() < deadline, "no certificate is issued");
            thread::sleep(Duration::from_millis(50));
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
        let (port, authority) =
            (self.authority.as_ref().map_or(0, |_| self.address.port()), self.authority.as_ref());
        let text = Text { drain: self.drain, origin: &self.origin, echo: &self.echo, port, authority };
        let text = text.with(&self.certificates[number % 2], number);
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

    /// Once no process drains any more, the one that serves is the one that orders, and the control socket has closed the question
    /// about it.
    pub(crate) fn at_rest(&self) -> Held {
        const PAUSE: Duration = Duration::from_millis(50);
        let deadline = Instant::now() + PATIENCE + self.drain;
        let mut held = self.held();
        while (held.old > 0 || !self.may_order()) && Instant::now() < deadline {
            thread::sleep(PAUSE);
            held = self.held();
        }
        if self.authority.is_some() {
            // A renewal may be under way: its connections to the CA are short.
            let looks = std::iter::repeat_with(|| {
                thread::sleep(PAUSE);
                self.held().descriptors
            });
            held.descriptors = looks.take(20).min().expect("they are twenty");
        }
        held
    }

    /// Whether the process that serves has the lock of whoever orders certificates, which stays open as long as it lives: it takes it
    /// when the process before it has let go. Where none are ordered, yes.
    fn may_order(&self) -> bool {
        let pid = self.status().and_then(|status| status["pid"].as_u64()).unwrap_or(0);
        let mut open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let is_lock =
            |entry: fs::DirEntry| fs::read_link(entry.path()).is_ok_and(|file| file.ends_with("acme/lock"));
        self.authority.is_none() || open.any(is_lock)
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

/// What the configuration is made of.
struct Text<'a> {
    drain: Duration,
    origin: &'a OriginServer,
    echo: &'a OriginServer,
    /// Where the service listens; 0 for any port.
    port: u16,
    authority: Option<&'a Pebble>,
}

impl Text<'_> {
    fn with(&self, certificate: &std::path::Path, number: usize) -> String {
        let (drain, idle, certificate) = (self.drain.as_secs(), 60 + number % 7, certificate.display());
        let listener = |name: &str, port: u16, backend: &str, certificate: &str| {
            format!(
                "[[listener]]\nname = '{name}'\nlisten = '127.0.0.1:{port}'\nbackend = '{backend}'\n\
                 idle_timeout = '{idle}s'\n{certificate}"
            )
        };
        let file = format!("cert = '{certificate}'\n");
        let (acme, of_web) = match self.authority {
            None => (String::new(), file.clone()),
            Some(authority) => (
                format!(
                    "state_folder = 'state'\n[acme]\ndirectory = '{}'\ndirectory_ca = '{}'\nprofile = 'seconds'\n",
                    authority.directory(),
                    authority.authority().display(),
                ),
                "unknown_name = 'refuse'\n[[listener.host]]\nnames = ['localhost']\ncert = { acme = true }\n"
                    .into(),
            ),
        };
        let web = listener("web", self.port, self.origin.backend(), &of_web);
        let echo = listener("echo", 0, self.echo.backend(), &file);
        format!("workers = 2\nhard_stop_after = '{drain}s'\n{acme}{web}{echo}")
    }
}
