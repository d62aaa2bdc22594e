//! Upgrades of the running program: what goes over, what they leave alone, and that it serves on whatever its successor does.

mod limits;
mod meanwhile;
mod ports;
mod removal;
pub(crate) mod store;
mod under_load;

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use courser_testkit::{
    Courser, KeyType, OriginServer, Signal,
    client::{Client, Resume, Version},
    process::Finished,
    require, usage,
};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::Value;

use crate::stage::{Stage, courser, eventually, run, run_courser};

/// A service: the process that was started, and those that have replaced it since.
pub(crate) struct Service {
    pub(crate) stage: Stage,
    _courser: Courser,
    pub(crate) file: PathBuf,
    pub(crate) control: String,
    pub(crate) address: SocketAddr,
}

impl Service {
    /// Starts it with this text, in which `CERT` is the stage's certificate.
    pub(crate) fn start(text: &str) -> Self {
        Self::start_with(text, &[], &[])
    }

    pub(crate) fn start_with(text: &str, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let stage = Stage::new();
        let control = stage.folder.join("control.sock").display().to_string();
        let file = stage.folder.join("courser.toml");
        fs::write(&file, text.replace("CERT", &stage.certificate.display().to_string())).unwrap();
        let setup = courser().config(&file);
        let setup = setup.args(["--log", "json", "--control", &control, "--no-reload-on-change"]);
        let setup = environment.iter().fold(setup.args(flags), |setup, (name, value)| setup.env(name, value));
        let courser = setup.start();
        let address = courser.address();
        Self { stage, _courser: courser, file, control, address }
    }

    pub(crate) fn change(&self, text: &str) {
        fs::write(&self.file, text.replace("CERT", &self.stage.certificate.display().to_string())).unwrap();
    }

    pub(crate) fn upgrade(&self, more: &[&str]) -> Finished {
        run_courser(&[&["upgrade", "--control", &self.control], more].concat())
    }

    pub(crate) fn upgraded(&self) {
        let done = self.upgrade(&[]);
        assert!(done.status.success(), "{}", done.stderr);
    }

    pub(crate) fn status(&self) -> Value {
        let status = run_courser(&["status", "--json", "--control", &self.control]);
        serde_json::from_str(&status.stdout).unwrap_or_else(|_| panic!("{}", status.stderr))
    }

    /// The process that serves.
    pub(crate) fn pid(&self) -> u32 {
        u32::try_from(self.status()["pid"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn client(&self, version: Version, resume: Resume) -> Client {
        Client::new(self.address, version, KeyType::EcdsaP256, resume)
    }

    pub(crate) fn serves(&self) {
        self.client(Version::Tls13, Resume::Never).connect().unwrap().get(1000, true).unwrap();
    }
}

pub(crate) fn text(backend: &OriginServer) -> String {
    format!(
        "workers = 2\ndrain_timeout = '5s'\n[[listener]]\nname = 'web'\nlisten = '127.0.0.1:0'\ncert = 'CERT'\nbackend = '{}'\n",
        backend.backend()
    )
}

/// Whether a process has ended; its parent may not have noticed.
fn is_gone(pid: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

/// A program to upgrade to that does as `then` says, instead of its message number `upto`.
fn stand_in(folder: &Path, upto: usize, then: &str) -> Option<String> {
    require("python3")?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/judges/successor.py");
    let path = folder.join(format!("{then}-{upto}"));
    let text = format!("#!/bin/sh\nUPTO={upto} AS={then} exec python3 {}\n", script.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    Some(path.display().to_string())
}

#[test]
fn another_process_serves_and_sessions_of_every_kind_are_resumed() {
    let Some(openssl) = require("openssl") else { return };
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    let kinds = [("id", "-tls1_2 -no_ticket"), ("ticket", "-tls1_2"), ("psk", "-tls1_3")];
    let fetch = |flags: &str, file: &Path, session: &str| {
        let mut command = Command::new(&openssl);
        command.args(["s_client", "-ign_eof", "-connect", &service.address.to_string()]);
        command.args(flags.split(' ')).arg(session).arg(file);
        let mut process = courser_testkit::Process::start_with_input(&mut command, "GET / HTTP/1.0\r\n\r\n");
        process.wait();
        process.finish().stdout
    };
    let session = |name: &str| service.stage.folder.join(name);
    for (name, flags) in kinds {
        assert!(fetch(flags, &session(name), "-sess_out").contains("New, TLSv1"));
    }
    let before = service.pid();
    for _ in 0..3 {
        service.upgraded();
        for (name, flags) in kinds {
            let said = fetch(flags, &session(name), "-sess_in");
            assert!(said.contains("Reused, TLSv1"), "{name}: {said}");
        }
    }
    assert_ne!(service.pid(), before);
    assert_eq!(service.status()["handshakes"]["resumed"]["session_id"], 1);
}

#[test]
fn open_connections_go_on_and_the_status_shows_whose_they_are() {
    let origin = OriginServer::echo();
    let service = Service::start(&text(&origin).replace("'5s'", "'60s'"));
    let mut old = service.client(Version::Tls13, Resume::Never).connect().unwrap();
    old.stream().write_all(b"before").unwrap();
    old.stream().read_exact(&mut [0; 6]).unwrap();
    let first = service.pid();
    service.upgraded();
    old.stream().write_all(b"behind").unwrap();
    old.stream().read_exact(&mut [0; 6]).unwrap();
    eventually("the old process has one connection", || {
        service.status()["old_processes"][0]["connections"] == 1
    });
    assert_eq!(service.status()["old_processes"][0]["pid"], first);
    let table = run_courser(&["status", "--control", &service.control]).stdout;
    assert!(table.contains(&format!("{first}, courser {}, up ", env!("CARGO_PKG_VERSION"))), "{table}");
    assert!(table.contains(", drains: connections: 1, at most"), "{table}");
    old.close().unwrap();
    eventually("the old process has ended", || service.status()["old_processes"] == Value::Array(vec![]));
    eventually("it is gone", || is_gone(first));
}

#[test]
fn the_running_process_serves_on_whatever_its_successor_does() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    let folder = service.stage.folder.path().to_owned();
    let steps = ["step 1 (start)", "step 2", "step 3", "step 4", "step 5", "step 6"];
    let Some(_) = stand_in(&folder, 0, "die") else { return };
    let pid = service.pid();
    let mut cases: Vec<(usize, &str, &str, &str)> =
        (0..6).map(|upto| (upto, "die", steps[upto], "has ended")).collect();
    cases.extend((0..6).map(|upto| (upto, "hang", "", "has said nothing for 2s")));
    cases.push((0, "babble", steps[0], "makes no sense"));
    cases.push((0, "newer", steps[0], "speaks version 2 of the protocol"));
    cases.push((9, "lose", steps[1], "sockets that did not arrive: web 127.0.0.1:"));
    cases.push((4, "refuse", steps[4], "I do not want to"));
    for (upto, then, step, why) in cases {
        let program = stand_in(&folder, upto, then).unwrap();
        // How far a program gets that hangs in time depends on the machine.
        let timeout = if then == "hang" { "2s" } else { "60s" };
        let done = service.upgrade(&["--timeout", timeout, "--binary", &program]);
        assert_eq!(done.status.code(), Some(2), "{then} at {upto}: {}", done.stderr);
        assert!(done.stderr.contains(step) && done.stderr.contains(why), "{then} at {upto}: {}", done.stderr);
        assert!(done.stderr.contains("the running process serves on"), "{}", done.stderr);
        service.serves();
    }
    assert_eq!(service.pid(), pid);
    service.upgraded();
    service.serves();
}

#[test]
fn a_program_or_a_configuration_that_is_wrong_is_refused_with_the_reason() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    let plain = service.stage.folder.write("plain", "#!/bin/true\n").display().to_string();
    for (program, why) in [
        ("/nowhere/courser", "No such file"),
        (&plain, "Permission denied"),
        ("/bin/true", "has ended (exit status: 0)"),
    ] {
        let done = service.upgrade(&["--binary", program]);
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains("step 1") && done.stderr.contains(why), "{}", done.stderr);
    }
    let good = text(&origin);
    let wrong = [
        (format!("colour = 'red'\n{good}"), "unknown key `colour`", 2),
        (good.replace("CERT", "missing.pem"), "missing.pem", 2),
        (
            format!(
                "{good}[[listener]]\nname = 'b'\nlisten = '192.0.2.1:443'\ncert = 'CERT'\nbackend = 'localhost:1'\n"
            ),
            "cannot listen on 192.0.2.1:443",
            1,
        ),
    ];
    for (text, why, code) in wrong {
        service.change(&text);
        let done = service.upgrade(&[]);
        assert_eq!(done.status.code(), Some(code), "{}", done.stderr);
        assert!(done.stderr.contains("step 5") && done.stderr.contains(why), "{}", done.stderr);
        service.serves();
    }
    service.change(&good);
    service.upgraded();
}

#[test]
fn one_upgrade_runs_at_a_time_and_only_so_many_processes_drain() {
    let origin = OriginServer::echo();
    let service =
        Service::start(&format!("max_old_processes = 1\n{}", text(&origin).replace("'5s'", "'60s'")));
    if let Some(hanging) = stand_in(service.stage.folder.path(), 2, "hang") {
        thread::scope(|scope| {
            let first = scope.spawn(|| service.upgrade(&["--binary", &hanging]));
            // A second one that comes first would be the one that runs.
            let pid = service.pid();
            eventually("the first is under way", || usage::family(pid).unwrap().len() > 1);
            eventually("the second is refused", || {
                let second = service.upgrade(&["--binary", "/nowhere"]);
                second.stderr.contains("an upgrade is under way") && second.stderr.contains("step 3")
            });
            for successor in usage::family(pid).unwrap().into_iter().filter(|one| *one != pid) {
                kill(Pid::from_raw(successor.cast_signed()), Signal::SIGKILL).unwrap();
            }
            assert_eq!(first.join().unwrap().status.code(), Some(2));
        });
    }
    let mut open = service.client(Version::Tls13, Resume::Never).connect().unwrap();
    open.stream().write_all(b"?").unwrap();
    open.stream().read_exact(&mut [0]).unwrap();
    service.upgraded();
    let done = service.upgrade(&[]);
    assert_eq!(done.status.code(), Some(2));
    assert!(done.stderr.contains("earlier processes that still drain: 1"), "{}", done.stderr);
    drop(open);
    eventually("a place is free", || service.upgrade(&[]).status.success());
}

#[test]
fn more_and_fewer_workers_serve_at_the_same_sockets() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    for workers in [1, 4, 3] {
        service.change(&text(&origin).replace("workers = 2", &format!("workers = {workers}")));
        service.upgraded();
        for _ in 0..20 {
            service.serves();
        }
    }
}

#[test]
fn a_unix_socket_and_the_sockets_for_control_and_operators_go_over_with_their_files() {
    let origin = OriginServer::http();
    let stage = Stage::new();
    let [front, admin] = ["front.sock", "admin.sock"].map(|name| stage.folder.join(name));
    let text =
        text(&origin).replace("'127.0.0.1:0'", &format!("['127.0.0.1:0', 'unix:{}']", front.display()));
    let flags = ["--admin".to_owned(), format!("unix:{}", admin.display())];
    let service = Service::start_with(&text, &flags.each_ref().map(String::as_str), &[]);
    for _ in 0..2 {
        let old = service.pid();
        service.upgraded();
        eventually("the old process has ended", || is_gone(old));
        let curl = |socket: &Path, url: &str| {
            let mut command = Command::new("curl");
            run(command.args(["-sk", "--max-time", "20", "--unix-socket"]).arg(socket).arg(url))
        };
        assert!(curl(&front, "https://localhost/1000").status.success());
        assert_eq!(curl(&admin, "http://localhost/readyz").stdout.trim(), "ok");
    }
    kill(Pid::from_raw(service.pid().cast_signed()), Signal::SIGTERM).unwrap();
    eventually("control and admin are removed by the last process", || {
        !admin.exists() && !Path::new(&service.control).exists()
    });
    assert!(front.exists());
}

#[test]
fn upgrades_under_load_fail_no_connection_and_leave_nothing_behind() {
    const UPGRADES: usize = 6;
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    let (is_over, connections, full) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    service.upgraded();
    let descriptors = || usage::descriptors(service.pid()).unwrap();
    let before = descriptors();
    let kinds = [
        (Version::Tls12, Resume::Ticket),
        (Version::Tls12, Resume::SessionId),
        (Version::Tls13, Resume::Ticket),
    ];
    let load = |(version, resume)| {
        let client = service.client(version, resume);
        while !is_over.load(Ordering::Relaxed) {
            let mut connection = client.connect().expect("no handshake fails");
            connection.get(1000, true).expect("no answer is cut short");
            full.fetch_add(usize::from(!connection.is_resumed()), Ordering::Relaxed);
            connections.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let clients = kinds.map(|kind| scope.spawn(move || load(kind)));
        for _ in 0..UPGRADES {
            let goal = connections.load(Ordering::Relaxed) + 50;
            eventually("clients are served", || connections.load(Ordering::Relaxed) >= goal);
            service.upgraded();
        }
        is_over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
    });
    let (connections, full) = (connections.into_inner(), full.into_inner());
    assert_eq!(origin.accepted(), connections as u64);
    // The first of each client, and who was in the middle of a handshake when its process was replaced.
    assert!(full <= kinds.len() + connections / 100, "{full} of {connections} handshakes were full");
    eventually("the old processes have ended", || service.status()["old_processes"] == Value::Array(vec![]));
    eventually("no descriptor is left", || descriptors() <= before);
}

#[test]
fn what_the_operator_has_said_of_a_server_holds_over_an_upgrade() {
    let (one, other) = (OriginServer::http(), OriginServer::http());
    let pool = format!("[pool.p]\nservers = ['{}', '{}']\n", one.backend(), other.backend());
    let listener = "[[listener]]\nlisten = '127.0.0.1:0'\ncert = 'CERT'\npool = 'p'\n";
    let service = Service::start(&format!("{pool}{listener}"));
    let drained = run_courser(&["backend", "drain", one.backend(), "--control", &service.control]);
    assert!(drained.status.success(), "{}", drained.stderr);
    service.upgraded();
    for _ in 0..10 {
        service.serves();
    }
    assert_eq!((one.accepted(), other.accepted()), (0, 10));
}

#[test]
fn a_client_in_the_queue_of_a_process_that_hangs_is_served_by_its_successor() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    // Connected and silent over the upgrade: whoever has it serves it.
    let sockets: Vec<_> = (0..20).map(|_| TcpStream::connect(service.address).unwrap()).collect();
    service.upgraded();
    drop(sockets);
    service.serves();
}
