//! Hosts on one network segment, on one machine: network namespaces behind a bridge, that go away with the test.
//!
//! A test of this kind runs itself again inside a namespace of its own, so that nothing it sets up is on the machine's
//! network, and no other test's addresses are in its way. What it mounts, such as a resolver's configuration, only it
//! sees.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

use crate::Process;
use crate::skip::{forward, leave_out};
use crate::tools::require;

/// Set in the copy of a test that runs in a network namespace of its own.
const INSIDE: &str = "COURSER_TEST_IN_NAMESPACE";

/// What has to work for these tests.
const TRIAL: &str = "ip link set lo up && ip link add br0 type bridge && ip link add g1 type veth peer name g2 \
                     && exec unshare --net true";

/// Whether the calling test runs in a namespace of its own. The first time it does not: then it is run again in one, by
/// its full name, and has nothing left to do. What it printed there is printed here.
///
/// # Panics
/// When the test fails in the namespace. Where none can be made, the test is left out.
#[must_use]
#[track_caller]
pub fn enter_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    if require("ip").is_none() {
        return false;
    }
    if !unshare(TRIAL).output().is_ok_and(|output| output.status.success()) {
        leave_out("no network namespaces can be made here (unshare, ip, bridges)");
        return false;
    }
    let program = std::env::current_exe().expect("a test has a program");
    let mut again = unshare("ip link set lo up && exec \"$@\"");
    again.arg(program).args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
    // Its own waits are bounded.
    let run = again.output().expect("unshare worked a moment ago");
    let text = [run.stdout, run.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    forward(&text);
    assert!(run.status.success() && text.contains("1 passed"), "{test} failed in its namespace");
    false
}

fn unshare(script: &str) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount"]);
    if !nix::unistd::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["sh", "-c", script, "sh"]);
    unshare
}

/// A segment: a bridge, on which the test itself is at [`Segment::OURS`], and hosts.
#[derive(Debug)]
pub struct Segment {
    hosts: Vec<Host>,
}

/// A host on a segment, as long as it lives.
#[derive(Debug)]
pub struct Host {
    holder: Process,
    /// Its number, from 1.
    pub number: u8,
}

impl Segment {
    /// The test's own address on the segment.
    pub const OURS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 83, 0, 254));

    /// A segment with so many hosts, at most 100.
    pub fn new(hosts: u8) -> Self {
        sh("ip link add br0 type bridge mcast_snooping 0
            ip addr add 10.83.0.254/24 dev br0
            ip -6 addr add fd83::fe/64 dev br0 nodad
            ip link set br0 up");
        Self { hosts: (1..=hosts).map(Host::new).collect() }
    }

    /// The hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

impl Host {
    fn new(number: u8) -> Self {
        let mut command = Command::new("unshare");
        let holder = Process::start(command.args(["--net", "sh", "-c", "echo made; exec sleep 600"]));
        holder.wait_stdout("its network", |lines| (!lines.is_empty()).then_some(()));
        let pid = holder.pid();
        sh(&format!(
            "ip link add h{number} type veth peer name eth0 netns {pid}
             ip link set h{number} master br0
             ip link set h{number} up"
        ));
        let host = Self { holder, number };
        host.sh(&format!(
            "ip link set lo up
             ip addr add 10.83.0.{number}/24 dev eth0
             ip -6 addr add fd83::{number:x}/64 dev eth0 nodad
             ip link set eth0 up
             ip route add 224.0.0.0/4 dev eth0"
        ));
        host
    }

    /// Its address in IPv4.
    pub fn ip(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 83, 0, self.number))
    }

    /// Its address in IPv6.
    pub fn ip6(&self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::new(0xfd83, 0, 0, 0, 0, 0, 0, u16::from(self.number)))
    }

    /// The command that runs a program there, which its name follows.
    pub fn prefix(&self) -> Vec<String> {
        ["nsenter", "--net", "--target", &self.holder.pid().to_string()].map(str::to_owned).to_vec()
    }

    /// Runs a program there.
    pub fn command(&self, program: &str) -> Command {
        let prefix = self.prefix();
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(program);
        command
    }

    /// Runs a script there.
    ///
    /// # Panics
    /// When a line of it fails.
    pub fn sh(&self, script: &str) {
        let run = Process::start(self.command("sh").args(["-ec", script])).finish();
        assert!(run.status.success(), "{script}: {run:?}");
    }

    /// Drops this part of the UDP packets that come in, from 0 to 1.
    pub fn drop_packets(&self, part: f64) {
        let rule = format!("-A INPUT -p udp -m statistic --mode random --probability {part} -j DROP");
        self.sh(&format!("iptables -F INPUT; iptables {rule}; ip6tables -F INPUT; ip6tables {rule}"));
    }

    /// Takes the host off the segment.
    pub fn unplug(&self) {
        sh(&format!("ip link set h{} down", self.number));
    }

    /// Puts the host back on the segment.
    pub fn plug_in(&self) {
        sh(&format!("ip link set h{} up", self.number));
    }
}

/// Runs a script in the test's own namespace.
///
/// # Panics
/// When a line of it fails.
pub fn sh(script: &str) {
    let run = Process::start(Command::new("sh").args(["-ec", script])).finish();
    assert!(run.status.success(), "{script}: {run:?}");
}
