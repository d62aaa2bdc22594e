//! Peers by a name that stands for several hosts, as a headless Service of Kubernetes has one.

use std::fs;
use std::path::Path;
use std::process::Command;

use courser_testkit::{Courser, Folder, free_port, leave_out};
use serde_json::Value;

use super::keygen;
use crate::stage::{courser, eventually, run, run_courser};

/// Puts the file in place of the machine's names, for the program alone.
const WITH_NAMES: [&str; 4] = ["unshare", "--mount", "sh", "-c"];
const NAMES: &str = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";

struct Host {
    _courser: Courser,
    control: String,
}

impl Host {
    fn start(number: u8, folder: &Folder, key: &Path, names: &Path, port: u16) -> Self {
        let control = folder.join(&format!("{number}.sock")).display().to_string();
        let names = names.display().to_string();
        let setup = courser().under(&[&WITH_NAMES[..], &[NAMES, &names]].concat());
        let setup = setup.backend("127.0.0.1:9").args(["--workers", "1", "--fleet-key"]).arg(key);
        let setup = setup.args(["--fleet-name", &format!("host-{number}"), "--control", &control]);
        let setup = setup.args(["--fleet-listen", &format!("127.0.0.{number}:{port}")]);
        let _courser = setup.args(["--fleet-peer", &format!("fleet.test:{port}")]).start();
        Self { _courser, control }
    }

    fn hears(&self, others: usize) -> bool {
        let status = run_courser(&["status", "--json", "--control", &self.control]);
        let status: Value = serde_json::from_str(&status.stdout).unwrap();
        let peers = status["messages"]["peers"].as_array().unwrap();
        let live = peers.iter().filter(|peer| peer["is_silent"] == false && peer["name"] != "");
        live.count() == others
    }
}

#[test]
fn every_host_behind_a_name_is_a_peer_and_one_that_joins_it_becomes_one() {
    if !run(Command::new("unshare").args(["--mount", "true"])).status.success() {
        return leave_out("names of its own take root");
    }
    let (folder, port) = (Folder::new(), free_port());
    let key = keygen(folder.path(), "fleet.key");
    let names = folder.write("hosts", "127.0.0.1 fleet.test\n127.0.0.2 fleet.test\n");
    let start = |number| Host::start(number, &folder, &key, &names, port);
    let mut hosts = vec![start(1), start(2)];
    eventually("the two hear each other", || hosts.iter().all(|host| host.hears(1)));
    // Into the same file, which is what the programs have.
    fs::write(&names, "127.0.0.1 fleet.test\n127.0.0.2 fleet.test\n127.0.0.3 fleet.test\n").unwrap();
    hosts.push(start(3));
    eventually("all three do", || hosts.iter().all(|host| host.hears(2)));
}
