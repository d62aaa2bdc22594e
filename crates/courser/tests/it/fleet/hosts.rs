//! Hosts of a fleet on a segment of their own, each with the program; the client stands on the segment too.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use courser_testkit::courser::Setup;
use courser_testkit::network::{Host, Segment};
use courser_testkit::origin::Behaviour;
use courser_testkit::{Courser, Finished, KeyType, OriginServer, PATIENCE, Process};
use serde_json::Value;

use super::keygen;
use crate::support::Site;

/// A segment, a site that all its hosts serve, the fleet's key.
pub(super) struct Fleet {
    pub(super) segment: Segment,
    pub(super) site: Site,
    pub(super) key: PathBuf,
    /// One that opens only, while the fleet is re-keyed.
    pub(super) second_key: Option<PathBuf>,
}

/// The program on one host.
pub(super) struct Member {
    pub(super) courser: Courser,
    control: PathBuf,
}

impl Fleet {
    pub(super) fn new(hosts: u8) -> Self {
        let segment = Segment::new(hosts);
        let mut site = Site::new();
        // A socket in the file system is the one place that every host can reach.
        site.origin = OriginServer::setup(Behaviour::Http).unix(site.folder.join("origin.sock")).start();
        let key = keygen(site.folder.path(), "fleet.key");
        Self { segment, site, key, second_key: None }
    }

    pub(super) fn host(&self, number: usize) -> &Host {
        &self.segment.hosts()[number - 1]
    }

    /// The program on a host, with the fleet's key and nothing else about the others yet.
    pub(super) fn alone(&self, number: usize) -> Setup {
        let host = self.host(number);
        let setup = self.site.serve(&[KeyType::EcdsaP256]).on_host(host).listen(format!("{}:443", host.ip()));
        let setup = setup.arg("--fleet-key").arg(&self.key).arg("--control").arg(self.control(number));
        let setup = setup.args(["--fleet-name", &format!("host-{number}")]);
        self.second_key.iter().fold(setup, |setup, key| setup.arg("--fleet-key").arg(key))
    }

    /// The program on a host that tells the others by unicast.
    pub(super) fn unicast(&self, number: usize) -> Setup {
        let setup = self.alone(number).args(["--fleet-listen", &format!("{}:8888", self.host(number).ip())]);
        let others = self.segment.hosts().iter().filter(|other| usize::from(other.number) != number);
        others.fold(setup, |setup, other| setup.args(["--fleet-peer", &format!("{}:8888", other.ip())]))
    }

    /// The program on a host that tells the others by multicast.
    pub(super) fn multicast(&self, number: usize, group: &str) -> Setup {
        self.alone(number).args(["--fleet-listen", group, "--fleet-interface", "eth0,ttl=2"])
    }

    pub(super) fn start(&self, number: usize, setup: Setup) -> Member {
        Member { courser: setup.start(), control: self.control(number) }
    }

    fn control(&self, number: usize) -> PathBuf {
        self.site.folder.join(&format!("control-{number}.sock"))
    }
}

impl Member {
    /// What it says of itself and the others.
    pub(super) fn status(&self) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        let asked = command.args(["fleet", "status", "--json", "--control"]).arg(&self.control);
        let told = Process::start(asked).finish();
        assert!(told.status.success(), "{told:?}");
        serde_json::from_str(&told.stdout).unwrap()
    }

    /// Has another process take over.
    pub(super) fn upgrade(&self) -> Finished {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        Process::start(command.args(["upgrade", "--control"]).arg(&self.control)).finish()
    }

    /// What passes between it and the others, from now on.
    pub(super) fn watch(&self) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        Process::start(command.args(["fleet", "watch", "--control"]).arg(&self.control))
    }

    /// Waits until what it says is enough.
    #[track_caller]
    pub(super) fn wait<T>(&self, what: &str, enough: impl Fn(&Value) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if let Some(found) = enough(&status) {
                return found;
            }
            assert!(begun.elapsed() < PATIENCE, "waited too long for {what}: {status:#}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until it hears so many others.
    #[track_caller]
    pub(super) fn hears(&self, others: usize) {
        self.wait("its peers", |status| {
            let peers = status["messages"]["peers"].as_array()?;
            let live = peers.iter().filter(|peer| peer["is_silent"] == false && peer["name"] != "");
            (live.count() == others).then_some(())
        });
    }

    /// Waits until it is sent something from now on.
    #[track_caller]
    pub(super) fn hears_something_new(&self) {
        let received = |status: &Value| status["messages"]["received"]["messages"].as_u64();
        let before = received(&self.status());
        self.wait("a message", |status| (received(status) > before).then_some(()));
    }

    /// Waits until it holds so many sessions.
    #[track_caller]
    pub(super) fn holds(&self, sessions: u64) {
        self.wait("its sessions", |status| (status["cache"]["sessions"].as_u64()? >= sessions).then_some(()));
    }
}
