//! Reloads of the running program: what they change, what they leave alone, and what they refuse.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use courser_testkit::{
    Courser, KeyType, OriginServer, PATIENCE, TestCa,
    ca::Leaf,
    client::{Client, Resume, Version},
    free_port,
    process::{Finished, Signal},
};
use serde_json::Value;

use crate::stage::{Stage, courser, eventually, run_courser};

/// A program with a file that tests change.
struct Program {
    stage: Stage,
    courser: Courser,
    file: PathBuf,
    control: String,
}

impl Program {
    /// Starts it with this text, in which `CERT` is the stage's certificate. It reloads on request alone.
    fn start(text: &str) -> Self {
        Self::start_with(text, &["--no-reload-on-change"])
    }

    fn start_with(text: &str, flags: &[&str]) -> Self {
        let stage = Stage::new();
        let control = stage.folder.join("control.sock").display().to_string();
        let file = stage.folder.join("courser.toml");
        let program = Self::write(&stage, &file, text);
        let courser = courser()
            .config(&program)
            .args(["--workers", "2", "--log", "json", "--control", &control])
            .args(flags.iter().copied())
            .start();
        Self { stage, courser, file, control }
    }

    fn write(stage: &Stage, file: &PathBuf, text: &str) -> PathBuf {
        fs::write(file, text.replace("CERT", &stage.certificate.display().to_string())).unwrap();
        file.clone()
    }

    fn change(&self, text: &str) {
        Self::write(&self.stage, &self.file, text);
    }

    fn reload(&self, more: &[&str]) -> Finished {
        run_courser(&[&["reload", "--control", &self.control], more].concat())
    }

    fn status(&self) -> Value {
        let status = run_courser(&["fleet", "status", "--json", "--control", &self.control]);
        serde_json::from_str(&status.stdout).unwrap()
    }

    /// A page through the terminator, by what the client was told: the backend's port is in the log.
    fn client(&self) -> Client {
        Client::new(self.courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never)
    }
}

fn text(backend: &OriginServer) -> String {
    format!(
        "[[listener]]\nname = 'web'\nlisten = '127.0.0.1:0'\ncert = 'CERT'\nbackend = '{}'\n",
        backend.backend()
    )
}

#[test]
fn new_connections_go_by_the_new_file_and_open_ones_go_on() {
    let (one, other) = (OriginServer::echo(), OriginServer::http());
    let program = Program::start(&text(&one));
    let mut old = program.client().connect().unwrap();
    eventually("the first backend has it", || one.accepted() == 1);
    program.change(&text(&other));
    let done = program.reload(&[]);
    assert!(done.status.success(), "{}", done.stderr);
    assert!(done.stdout.contains("listener web: backend: "), "{}", done.stdout);
    assert!(done.stdout.trim_end().ends_with("generation 2 serves; changed: 1"), "{}", done.stdout);
    program.client().connect().unwrap().get(1000, true).unwrap();
    assert_eq!((one.accepted(), other.accepted()), (1, 1));
    old.stream().write_all(b"still here").unwrap();
    let mut echoed = [0; 10];
    old.stream().read_exact(&mut echoed).unwrap();
    assert_eq!(&echoed, b"still here");
}

#[test]
fn a_renewed_certificate_is_served_and_sessions_of_the_old_one_are_resumed() {
    let origin = OriginServer::http();
    let program = Program::start(&text(&origin));
    let client = Client::new(program.courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Ticket);
    client.connect().unwrap().get(1000, true).unwrap();
    let serial = |client: &Client| {
        let mut connection = client.connect().unwrap();
        connection.tls().peer_certificates().unwrap()[0].to_vec()
    };
    let before = serial(&program.client());
    let ca = TestCa::new();
    let renewed = ca.issue(&Leaf::new(KeyType::EcdsaP256));
    fs::write(&program.stage.certificate, format!("{}{}", renewed.chain_pem, renewed.key_pem)).unwrap();
    let done = program.reload(&[]);
    assert!(
        done.stdout.contains("file ") && done.stdout.contains("site.pem"),
        "{}{}",
        done.stdout,
        done.stderr
    );
    assert_eq!(serial(&program.client()), renewed.certificate.to_vec());
    assert_ne!(before, renewed.certificate.to_vec());
    let mut again = client.connect().unwrap();
    again.get(1000, true).unwrap();
    assert!(again.is_resumed(), "sessions are not bound to a certificate");
}

#[test]
fn a_mistake_changes_nothing_and_says_why() {
    let origin = OriginServer::http();
    let program = Program::start(&text(&origin));
    let good = text(&origin);
    let key = fs::read_to_string(&program.stage.certificate).unwrap();
    let without_key = &key[..key.find("-----BEGIN PRIVATE KEY").unwrap()];
    program.stage.folder.write("broken-ca.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
    let mistakes: [(String, &str, i32); 5] = [
        (
            format!("{good}client_auth = 'optional'\nclient_ca = 'broken-ca.pem'\n"),
            "broken-ca.pem: the file is not well-formed PEM",
            2,
        ),
        (format!("{good}colour = 'red'\n"), "unknown key `colour`", 2),
        (good.replace("CERT", "missing.pem"), "missing.pem", 2),
        (good.replace("'127.0.0.1:0'", "'192.0.2.1:443'"), "cannot listen on 192.0.2.1:443", 1),
        ("[[listener]\n".to_owned(), "courser.toml", 2),
    ];
    for (text, why, code) in mistakes {
        program.change(&text);
        let done = program.reload(&[]);
        assert_eq!(done.status.code(), Some(code), "{}", done.stderr);
        assert!(done.stderr.contains(why), "{why}: {}", done.stderr);
        assert!(done.stderr.contains("generation 1 serves on"), "{}", done.stderr);
        program.client().connect().unwrap().get(1000, true).unwrap();
    }
    program.change(&good);
    let foreign = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256)).key_pem;
    for (pair, why) in [
        (format!("{without_key}{foreign}"), "the private key does not belong to the certificate"),
        (foreign, "the file holds no certificate"),
        (without_key.to_owned(), "the file holds no private key"),
    ] {
        fs::write(&program.stage.certificate, pair).unwrap();
        let done = program.reload(&[]);
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(why), "{why}: {}", done.stderr);
        program.client().connect().unwrap().get(1000, true).unwrap();
    }
    let table = run_courser(&["status", "--control", &program.control]).stdout;
    let last = table.split("last reload     REFUSED ").nth(1).and_then(|last| last.lines().next());
    assert!(last.is_some_and(|last| last.contains(" s ago: error: ")), "{table}");
    assert!(table.contains("listener        web: 127.0.0.1:0"), "{table}");
    assert!(table.contains("certificate     localhost (EC256): "), "{table}");
    let last = &program.status()["generation"]["last_reload"];
    assert!(last["refused"].as_str().unwrap().contains("site.pem"), "{last}");
    fs::write(&program.stage.certificate, key).unwrap();
    assert!(program.reload(&[]).status.success());
    assert!(program.status()["generation"]["last_reload"]["refused"].is_null());
}

#[test]
fn listeners_come_and_go_and_what_is_queued_at_one_that_goes_is_served() {
    let origin = OriginServer::http();
    let program = Program::start(&text(&origin));
    let port = free_port();
    let more = format!(
        "[[listener]]\nname = 'more'\nlisten = '127.0.0.1:{port}'\ncert = 'CERT'\nbackend = '{}'\n",
        origin.backend()
    );
    program.change(&format!("{}{more}", text(&origin)));
    let done = program.reload(&[]);
    assert!(done.status.success(), "{}", done.stderr);
    let there = program.client().at(([127, 0, 0, 1], port).into());
    there.connect().unwrap().get(1000, true).unwrap();
    program.change(&text(&origin));
    let done = program.reload(&[]);
    assert!(done.stdout.contains("listener more: listen: was"), "{}", done.stdout);
    eventually("nobody listens there", || there.connect().is_err());
    program.client().connect().unwrap().get(1000, true).unwrap();
}

#[test]
fn what_only_a_restart_changes_is_named_and_the_rest_is_done() {
    let (one, other) = (OriginServer::http(), OriginServer::http());
    let program = Program::start(&format!("drain_timeout = '5s'\n{}", text(&one)));
    program.change(&format!("drain_timeout = '6s'\n{}", text(&other)));
    let done = program.reload(&[]);
    assert!(done.status.success());
    assert!(
        done.stdout.contains("drain_timeout: \"5s\" -> \"6s\" (takes `courser upgrade`)"),
        "{}",
        done.stdout
    );
    program.client().connect().unwrap().get(1000, true).unwrap();
    assert_eq!((one.accepted(), other.accepted()), (0, 1));
}

#[test]
fn a_dry_run_and_check_against_running_say_what_would_change_and_change_nothing() {
    let (one, other) = (OriginServer::http(), OriginServer::http());
    let program = Program::start(&text(&one));
    program.change(&text(&other));
    let file = program.file.display().to_string();
    let check = ["check", "--config", &file, "--control", &program.control, "--against-running"];
    for done in [program.reload(&["--dry-run"]), run_courser(&check)] {
        assert!(done.status.success(), "{}", done.stderr);
        assert!(done.stdout.contains("listener web: backend: "), "{}", done.stdout);
        assert!(
            done.stdout.trim_end().ends_with("generation 1 serves; a reload would change: 1"),
            "{}",
            done.stdout
        );
    }
    program.client().connect().unwrap().get(1000, true).unwrap();
    assert_eq!((one.accepted(), other.accepted()), (1, 0));
}

#[test]
fn sighup_reloads_and_a_storm_of_it_is_one_reload_or_few() {
    let (one, other) = (OriginServer::http(), OriginServer::http());
    let program = Program::start(&text(&one));
    program.change(&text(&other));
    for _ in 0..100 {
        program.courser.signal(Signal::SIGHUP);
    }
    program.courser.wait_stderr_line("reload: generation 2 serves, changes: 1");
    program.client().connect().unwrap().get(1000, true).unwrap();
    assert_eq!(other.accepted(), 1);
    // Behind them all in the queue.
    assert!(program.reload(&[]).status.success());
    let generation = program.status()["generation"]["number"].as_u64().unwrap();
    assert!(generation < 50, "{generation}");
}

#[test]
fn files_that_change_are_reloaded_by_themselves_once_they_fit_together() {
    let (origin, stage) = (OriginServer::http(), Stage::new());
    let ca = TestCa::new();
    let (old, new) = (ca.issue(&Leaf::new(KeyType::EcdsaP256)), ca.issue(&Leaf::new(KeyType::EcdsaP256)));
    let pair = old.write_pair(&stage.folder, "pair");
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let text = text(&origin).replace("'CERT'", &format!("{{ chain = '{chain}', key = '{key}' }}"));
    let program = Program::start_with(&text, &[]);
    // First the chain alone, as some tools do.
    fs::write(&pair.chain, &new.chain_pem).unwrap();
    let mut connection = program.client().connect().unwrap();
    assert_eq!(connection.tls().peer_certificates().unwrap()[0], old.certificate);
    fs::write(&pair.key, &new.key_pem).unwrap();
    program.courser.wait_stderr_line("reload: generation 2 serves");
    let mut connection = program.client().connect().unwrap();
    assert_eq!(connection.tls().peer_certificates().unwrap()[0], new.certificate);
    let refused = program.courser.stderr().iter().any(|line| line.contains("refused"));
    assert!(!refused, "a pair that is being written is no failure");
}

#[test]
fn a_program_that_ends_refuses_to_reload() {
    let origin = OriginServer::echo();
    let program = Program::start(&text(&origin));
    let open = program.client().connect().unwrap();
    program.courser.signal(Signal::SIGTERM);
    program.courser.wait_stderr_line("draining");
    let done = program.reload(&[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("about to end"), "{}", done.stderr);
    drop(open);
}

#[test]
fn a_pool_with_the_same_settings_keeps_its_limit_over_a_reload() {
    let origin = OriginServer::echo();
    let text = |lifetime: &str| {
        let pool = format!(
            "servers = [{{ address = '{}', max_connections = 1 }}]\nqueue_timeout = '100ms'",
            origin.backend()
        );
        format!(
            "[sessions]\ntickets_per_handshake = {lifetime}\n[pool.p]\n{pool}\n[[listener]]\nlisten = '127.0.0.1:0'\ncert = 'CERT'\npool = 'p'\n"
        )
    };
    let program = Program::start(&text("1"));
    let mut open = program.client().connect().unwrap();
    open.stream().write_all(b"?").unwrap();
    eventually("the backend has it", || origin.accepted() == 1);
    program.change(&text("2"));
    assert!(program.reload(&[]).status.success());
    let _second = program.client().connect().unwrap();
    let line = program.courser.connections_json(1).remove(0);
    assert_eq!(line["close_reason"], "queue_timeout", "the server has its one connection still: {line}");
    assert_eq!(origin.accepted(), 1);
}

#[test]
fn a_service_manager_is_notified_of_the_start_of_reloads_and_of_the_end() {
    let (origin, stage) = (OriginServer::http(), Stage::new());
    let path = stage.folder.join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        loop {
            let mut note = [0; 500];
            let length = manager.recv(&mut note).unwrap();
            let note = String::from_utf8_lossy(&note[..length]).into_owned();
            // Of sockets that it is to hold there is another test.
            if !note.starts_with("FDSTORE=1") {
                return note;
            }
        }
    };
    let control = stage.folder.join("control.sock").display().to_string();
    let courser = stage
        .courser()
        .backend(origin.backend())
        .args(["--control", &control])
        .env("NOTIFY_SOCKET", &path.display().to_string())
        .start();
    assert_eq!(next(), "STATUS=starting");
    assert_eq!(next(), "READY=1\nSTATUS=generation 1 serves");
    assert!(run_courser(&["reload", "--control", &control]).status.success());
    assert!(next().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(next(), "READY=1\nSTATUS=generation 2 serves");
    courser.signal(Signal::SIGTERM);
    assert_eq!(next(), "STOPPING=1\nSTATUS=draining");
}

#[test]
fn reloads_under_load_fail_no_connection_and_leave_nothing_behind() {
    const RELOADS: usize = 60;
    let origins = [OriginServer::http(), OriginServer::http()];
    let program = Program::start(&text(&origins[0]));
    let (ca, port) = (TestCa::new(), free_port());
    let descriptors = || fs::read_dir(format!("/proc/{}/fd", program.courser.pid())).unwrap().count();
    program.client().connect().unwrap().get(100, true).unwrap();
    let before = descriptors();
    let (is_over, connections, resumed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let clients = || {
        let client = |version| {
            let client = Client::new(program.courser.address(), version, KeyType::EcdsaP256, Resume::Ticket);
            while !is_over.load(Ordering::Relaxed) {
                let mut connection = client.connect().expect("no handshake fails");
                connection.get(1000, true).expect("no answer is cut short");
                resumed.fetch_add(usize::from(connection.is_resumed()), Ordering::Relaxed);
                connections.fetch_add(1, Ordering::Relaxed);
            }
        };
        std::thread::scope(|scope| {
            let clients =
                [Version::Tls12, Version::Tls13].map(|version| scope.spawn(move || client(version)));
            for number in 0..RELOADS {
                // Backends, certificates and further listeners change in turn.
                let more = format!(
                    "[[listener]]\nname = 'more'\nlisten = '127.0.0.1:{port}'\ncert = 'CERT'\nbackend = '{}'\n",
                    origins[0].backend()
                );
                let more = if number % 3 == 0 { more.as_str() } else { "" };
                let renewed = ca.issue(&Leaf::new(KeyType::EcdsaP256));
                fs::write(&program.stage.certificate, format!("{}{}", renewed.chain_pem, renewed.key_pem))
                    .unwrap();
                program.change(&format!("{}{more}", text(&origins[number % 2])));
                let done = program.reload(&[]);
                assert!(done.status.success(), "{}", done.stderr);
            }
            is_over.store(true, Ordering::Relaxed);
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
    };
    clients();
    let (connections, resumed) = (connections.into_inner(), resumed.into_inner());
    assert!(connections > 2 * RELOADS, "{connections}");
    // The first of each client has nothing to resume.
    assert_eq!(resumed, connections - 2);
    program.change(&text(&origins[0]));
    assert!(program.reload(&[]).status.success());
    let all = origins.iter().map(OriginServer::accepted).sum::<u64>();
    assert_eq!(all, connections as u64 + 1);
    assert_eq!(program.status()["generation"]["number"], RELOADS + 2);
    eventually("no descriptor is left", || descriptors() <= before);
}

#[test]
fn an_expired_certificate_gives_way_to_a_valid_one_of_the_same_kind_and_is_warned_of() {
    let (origin, stage, ca) = (OriginServer::http(), Stage::new(), TestCa::new());
    let expired = ca.issue(&Leaf::new(KeyType::EcdsaP256).expired());
    let valid = ca.issue(&Leaf::new(KeyType::EcdsaP256));
    let first = expired.write_combined(&stage.folder, "expired");
    let second = valid.write_combined(&stage.folder, "valid");
    let courser = courser().cert(&first).cert(&second).backend(origin.backend()).start();
    let client = Client::new(courser.address(), Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    let mut connection = client.connect().unwrap();
    assert_eq!(connection.tls().peer_certificates().unwrap()[0], valid.certificate);
    courser.wait_stderr_line("certificate localhost (EC256): it has expired: clients refuse it");
}
