//! Servers by SRV records, which Knot DNS serves, in a namespace where /etc and port 53 are the test's own.

use std::fmt::Write as _;
use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use courser_testkit::client::Version;
use courser_testkit::network::{enter_namespace, sh};
use courser_testkit::{Behaviour, Courser, Folder, OriginServer, Process, Signal, require};
use serde_json::Value;

use crate::stage::{Stage, assert_closed, courser, eventually, run};

#[test]
fn records_that_come_and_go_are_followed_by_their_weights_and_priorities() {
    let test = "backends::services::records_that_come_and_go_are_followed_by_their_weights_and_priorities";
    let Some(program) = require("knotd") else { return };
    if !enter_namespace(test) {
        return;
    }
    let origins = Origins::start();
    let mut dns = Dns::start(program, &origins.records(&[(1, 10, 3), (2, 10, 1), (3, 20, 1)]));
    let service = Service::start();
    for _ in 0..40 {
        assert!(service.get());
    }
    let [heavy, light, spare, _] = origins.accepted();
    assert!((27..=33).contains(&heavy) && heavy + light == 40 && spare == 0, "{:?}", origins.accepted());
    // One more: it is there with the next answer.
    dns.answer(&origins.records(&[(1, 10, 3), (2, 10, 1), (3, 20, 1), (4, 10, 4)]));
    eventually("the new server gets connections", || service.get() && origins.accepted()[3] > 0);
    // One less: it goes with the second answer without it.
    dns.answer(&origins.records(&[(1, 10, 3), (3, 20, 1), (4, 10, 4)]));
    eventually("a server goes", || service.servers().iter().all(|server| !server.contains("two")));
    // Those of the lower number are gone: the spare one takes over.
    dns.answer(&origins.records(&[(3, 20, 1)]));
    eventually("all but one go", || service.servers().len() == 1);
    assert!(service.get() && origins.accepted()[2] > 0);
}

#[test]
fn records_outlive_a_resolver_that_hangs_or_fails_and_end_with_a_denial() {
    let test = "backends::services::records_outlive_a_resolver_that_hangs_or_fails_and_end_with_a_denial";
    let Some(program) = require("knotd") else { return };
    if !enter_namespace(test) {
        return;
    }
    let origins = Origins::start();
    let mut dns = Dns::start(program, &origins.records(&[(1, 10, 1)]));
    let service = Service::start();
    assert!(service.get());
    dns.process.signal(Signal::SIGSTOP);
    service.courser.wait_stderr_line("backend _http._tcp.shop.test: cannot look the name up");
    let begun = Instant::now();
    assert!(service.get() && begun.elapsed() < Duration::from_secs(4), "no connection waits for a look-up");
    dns.process.signal(Signal::SIGCONT);
    service.courser.wait_stderr_line("the name has addresses again");
    // A zone that cannot be loaded is SERVFAIL.
    dns.restart(None);
    service.courser.wait_stderr("a failure", |lines| {
        (lines.iter().filter(|line| line.contains("cannot look the name up")).count() == 2).then_some(())
    });
    assert!(service.get());
    dns.restart(Some(""));
    service.courser.wait_stderr_line("no such name, or no address; what it had stays for one more look");
    service.courser.wait_stderr_line("no such name, or no address; it had 1, which get no more connections");
    assert!(!service.get());
    assert_closed(service.courser.connections_json(4).last().unwrap(), "no_backend", "backend");
}

const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// Four servers at addresses of their own, with one port.
struct Origins(Vec<OriginServer>);

impl Origins {
    fn start() -> Self {
        let at = |number: u8, port| {
            OriginServer::setup(Behaviour::Http).listen(([127, 0, 1, number], port).into())
        };
        let first = at(1, 0).start();
        let port = first.address().port();
        let others = (2..=4).map(|number| at(number, port).start());
        Self([first].into_iter().chain(others).collect())
    }

    fn accepted(&self) -> [u64; 4] {
        std::array::from_fn(|index| self.0[index].accepted())
    }

    /// Records for some of them: number, priority, weight.
    fn records(&self, some: &[(usize, u16, u16)]) -> String {
        let mut records = String::new();
        for (number, priority, weight) in some {
            let (name, port) = (NAMES[number - 1], self.0[0].address().port());
            let _ = writeln!(records, "_http._tcp 1 SRV {priority} {weight} {port} {name}");
            let _ = writeln!(records, "{name} 1 A 127.0.1.{number}");
        }
        records
    }
}

/// A terminator in front of the service.
struct Service {
    stage: Stage,
    courser: Courser,
    control: PathBuf,
}

impl Service {
    fn start() -> Self {
        let stage = Stage::new();
        let (certificate, control) = (stage.certificate.display(), stage.folder.join("control.sock"));
        let text = format!(
            "workers = 1\nlog = 'json'\ncontrol = '{}'\n[pool.shop]\nservers = 'srv:_http._tcp.shop.test'\n\
             balance = 'round-robin'\n\
             [[listener]]\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\npool = 'shop'\n",
            control.display()
        );
        let courser = courser().config(&stage.folder.write("courser.toml", text)).start();
        Self { stage, courser, control }
    }

    fn get(&self) -> bool {
        self.stage.client(&self.courser, Version::Tls13).connect().unwrap().get(10, true).is_ok()
    }

    fn servers(&self) -> Vec<String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        let done = run(command.args(["backend", "list", "--json", "--control"]).arg(&self.control));
        let row = |line: &str| serde_json::from_str::<Value>(line).unwrap()["server"].to_string();
        done.stdout.lines().map(row).collect()
    }
}

/// Knot DNS with the zone `shop.test`.
struct Dns {
    program: PathBuf,
    folder: Folder,
    process: Process,
}

impl Dns {
    fn start(program: PathBuf, records: &str) -> Self {
        let folder = Folder::new();
        let resolver = folder.write("resolv.conf", "nameserver 127.0.0.1\n");
        let switch = folder.write("nsswitch.conf", "hosts: files dns\n");
        sh(&format!(
            "mount --bind {} /etc/resolv.conf; mount --bind {} /etc/nsswitch.conf",
            resolver.display(),
            switch.display()
        ));
        let path = folder.path().display();
        folder.write(
            "knot.conf",
            format!(
                "server:\n  rundir: {path}\n  listen: 127.0.0.1@53\ndatabase:\n  storage: {path}/db\n\
                 zone:\n  - domain: shop.test\n    storage: {path}\n    file: shop.zone\n    journal-content: none\n"
            ),
        );
        write_zone(&folder, Some(records));
        let process = run_knot(&program, &folder);
        Self { program, folder, process }
    }

    /// Serves these records from now on.
    fn answer(&mut self, records: &str) {
        self.restart(Some(records));
    }

    /// Serves these records from now on; without any, no zone.
    fn restart(&mut self, records: Option<&str>) {
        self.process.stop();
        write_zone(&self.folder, records);
        self.process = run_knot(&self.program, &self.folder);
    }
}

fn write_zone(folder: &Folder, records: Option<&str>) {
    let Some(records) = records else {
        return fs::remove_file(folder.join("shop.zone")).unwrap();
    };
    let head = "$ORIGIN shop.test.\n@ 1 SOA ns admin 1 60 60 60 1\n@ 1 NS ns\nns 1 A 127.0.0.1\n";
    folder.write("shop.zone", format!("{head}{records}"));
}

fn run_knot(program: &PathBuf, folder: &Folder) -> Process {
    let process = Process::start(Command::new(program).arg("-c").arg(folder.join("knot.conf")));
    eventually("knotd listens", || UdpSocket::bind("127.0.0.1:53").is_err());
    process
}
