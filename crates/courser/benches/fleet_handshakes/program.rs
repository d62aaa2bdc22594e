//! The program as a host of a fleet, and what all of them have: certificate, origin, key.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use courser_session::{EpochLength, FleetKey};
use courser_testkit::{
    Courser, Folder, KeyType, Leaf, OriginServer, PATIENCE, TestCa, courser::Setup, process::Process,
    tools::cores,
};
use serde_json::Value;

use crate::hosts;

const PROGRAM: &str = env!("CARGO_BIN_EXE_courser");

/// What is the same for every host.
pub(crate) struct Stage {
    pub(crate) server_core: usize,
    pub(crate) client_core: usize,
    folder: Folder,
    certificate: PathBuf,
    key: PathBuf,
    origin: OriginServer,
}

/// The program on a host.
pub(crate) struct Host {
    pub(crate) courser: Courser,
    control: PathBuf,
}

impl Stage {
    pub(crate) fn new() -> io::Result<Self> {
        let cores = cores()?;
        let (server_core, client_core) = (cores[0], cores[cores.len() - 1]);
        if server_core == client_core {
            eprintln!("warning: one core only: the client and the program disturb each other");
        }
        let folder = Folder::new();
        let certificate = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).write_combined(&folder, "site");
        let key = FleetKey::generate(EpochLength::DEFAULT, hosts::now()).map_err(io::Error::other)?;
        let key = secret(&folder, "fleet.key", key.to_text().as_bytes())?;
        Ok(Self { server_core, client_core, folder, certificate, key, origin: OriginServer::http() })
    }

    pub(crate) fn key(&self) -> &Path {
        &self.key
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The program with one worker, without a fleet.
    pub(crate) fn alone(&self) -> Setup {
        let setup = Courser::setup(PROGRAM).cert(&self.certificate).backend(self.origin.backend());
        setup.args(["--workers", "1", "--log", "off", "--groups", "X25519"])
    }

    /// The program as a member at `own`.
    pub(crate) fn member(&self, name: &str, own: SocketAddr, peers: &[SocketAddr]) -> Setup {
        let setup = self.alone().arg("--fleet-key").arg(&self.key);
        let setup = setup.args(["--fleet-name", name, "--fleet-allow", "127.0.0.0/8"]);
        let setup = setup.arg("--control").arg(self.control(name)).arg("--fleet-listen").arg(own.to_string());
        peers.iter().fold(setup, |setup, peer| setup.arg("--fleet-peer").arg(peer.to_string()))
    }

    /// Starts such a member on the program's core.
    pub(crate) fn start(&self, name: &str, setup: Setup) -> io::Result<Host> {
        let courser = setup.on_core(self.server_core).try_start().map_err(io::Error::other)?;
        Ok(Host { courser, control: self.control(name) })
    }

    fn control(&self, name: &str) -> PathBuf {
        self.folder.join(&format!("{name}.sock"))
    }
}

impl Host {
    /// How many sessions it holds.
    pub(crate) fn sessions(&self) -> io::Result<u64> {
        self.status()?["cache"]["sessions"].as_u64().ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Waits until it hears so many others.
    pub(crate) fn hears(&self, others: usize) -> io::Result<()> {
        self.wait(|host| {
            let status = host.status()?;
            let peers = status["messages"]["peers"].as_array();
            Ok(peers.is_some_and(|peers| {
                peers.iter().filter(|peer| peer["is_silent"] == false).count() >= others
            }))
        })
    }

    /// Waits until it holds so many sessions.
    pub(crate) fn holds(&self, sessions: u64) -> io::Result<()> {
        self.wait(|host| Ok(host.sessions()? >= sessions))
    }

    fn wait(&self, is_there: impl Fn(&Self) -> io::Result<bool>) -> io::Result<()> {
        let begun = Instant::now();
        while !is_there(self)? {
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("waited too long; status: {:#}", self.status()?)));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn status(&self) -> io::Result<Value> {
        let mut command = Command::new(PROGRAM);
        let told =
            Process::start(command.args(["fleet", "status", "--json", "--control"]).arg(&self.control))
                .finish();
        serde_json::from_str(&told.stdout).map_err(|_| io::Error::other(told.stderr))
    }
}

/// An address of a loopback host that was free a moment ago: its peers have to know it before it starts.
pub(crate) fn free(number: u8) -> io::Result<SocketAddr> {
    UdpSocket::bind(hosts::loopback(number))?.local_addr()
}

/// A file that only its owner can read: the program takes no other.
fn secret(folder: &Folder, name: &str, content: &[u8]) -> io::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.write(name, content);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    Ok(file)
}
