//! The service manager holds the sockets: a stand-in for systemd that speaks its protocol.

use std::process::Command;
use std::thread;
use std::time::Instant;

use courser_testkit::{
    KeyType, OriginServer, PATIENCE,
    client::{Client, Resume, Version},
    free_port, require,
};

use crate::stage::{Stage, content, run_courser};

/// A service manager in Python: the notify socket, the descriptor store, the restart after a crash.
pub(crate) const MANAGER: &str = r#"
import os, signal, socket, subprocess, sys, threading
path, program = sys.argv[1], sys.argv[2:]
notes = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notes.bind(path)
stored = []
def start():
    def inherit():
        for number, (_, fd) in enumerate(stored):
            os.dup2(fd, 100 + number)
        for number in range(len(stored)):
            os.dup2(100 + number, 3 + number)
            os.close(100 + number)
        os.environ["LISTEN_PID"] = str(os.getpid())
    env = dict(os.environ, NOTIFY_SOCKET=path, LISTEN_FDS=str(len(stored)),
               LISTEN_FDNAMES=":".join(name for name, _ in stored), WATCHDOG_USEC="2000000")
    shim = ["sh", "-c", 'LISTEN_PID=$$ exec "$@"', "sh"] + program
    return subprocess.Popen(shim, env=env, close_fds=False, preexec_fn=inherit)
def listen():
    while True:
        text, fds, _, _ = socket.recv_fds(notes, 4096, 16)
        lines = dict(line.split("=", 1) for line in text.decode().splitlines() if "=" in line)
        if "FDSTORE" in lines:
            # As systemd does: what is held already is closed.
            held = {os.fstat(fd).st_ino for _, fd in stored}
            stored.extend((lines["FDNAME"], os.dup(fd)) for fd in fds if os.fstat(fd).st_ino not in held)
            for fd in fds: os.close(fd)
        elif "FDSTOREREMOVE" in lines:
            for name, fd in [one for one in stored if one[0] == lines["FDNAME"]]:
                os.close(fd)
            stored[:] = [one for one in stored if one[0] != lines["FDNAME"]]
        print(" ".join(f"{key}={value}" for key, value in lines.items()), flush=True)
threading.Thread(target=listen, daemon=True).start()
while True:
    child = start()
    print(f"STARTED={child.pid} {len(stored)}", flush=True)
    if child.wait() != -signal.SIGKILL:
        sys.exit(0)
"#;

#[test]
fn a_crash_under_load_refuses_no_client() {
    let Some(python) = require("python3") else { return };
    let (origin, stage, port) = (OriginServer::http(), Stage::new(), free_port());
    let mut command = Command::new(python);
    command.args(["-c", MANAGER]).arg(stage.folder.join("notify.sock")).arg(env!("CARGO_BIN_EXE_courser"));
    command.args(["serve", "--workers", "2", "--listen", &format!("127.0.0.1:{port}"), "--cert"]);
    // Log lines share the manager's output, and a kill cuts them short.
    command.arg(&stage.certificate).args(["--backend", origin.backend(), "--core-dumps", "--log", "off"]);
    let manager = courser_testkit::Process::start(&mut command);
    let started = |count: usize| {
        manager.wait_stdout("a start", |lines| {
            let starts: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("STARTED=")).collect();
            let ready = lines.iter().filter(|line| line.contains("READY=1")).count();
            (starts.len() >= count && ready >= count).then(|| starts[count - 1].to_owned())
        })
    };
    let pid = |start: &str| nix::unistd::Pid::from_raw(start.split(' ').next().unwrap().parse().unwrap());
    let first = started(1);
    assert!(first.ends_with(" 0"), "{first}");
    manager.wait_stdout("the watchdog", |lines| lines.iter().any(|line| line == "WATCHDOG=1").then_some(()));
    let client =
        Client::new(([127, 0, 0, 1], port).into(), Version::Tls13, KeyType::EcdsaP256, Resume::Never);
    client.connect().unwrap().get(1000, true).unwrap();
    for crash in 1..=3 {
        let (begun, is_restarted) = (Instant::now(), std::sync::atomic::AtomicBool::new(false));
        thread::scope(|scope| {
            let load = || {
                while !is_restarted.load(std::sync::atomic::Ordering::Relaxed) && begun.elapsed() < PATIENCE {
                    // Never refused; who is connected to the process that is killed is reset.
                    std::net::TcpStream::connect(("127.0.0.1", port)).expect("nobody is refused");
                    thread::yield_now();
                }
            };
            let clients = [scope.spawn(load), scope.spawn(load)];
            nix::sys::signal::kill(pid(&started(crash)), nix::sys::signal::Signal::SIGKILL).unwrap();
            let again = started(crash + 1);
            is_restarted.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(again.ends_with(" 2"), "two sockets are held: {again}");
            clients.into_iter().for_each(|client| client.join().unwrap());
        });
        client.connect().unwrap().get(1000, true).unwrap();
    }
}

/// Of an address with port 0 that one listener has twice, each has a socket of its own, which can go without the other.
#[test]
fn an_address_of_any_port_that_stands_twice_goes_once() {
    let Some(python) = require("python3") else { return };
    let stage = Stage::new();
    let write = |listen: &str| {
        let cert = stage.certificate.display();
        let text = format!(
            "[[listener]]\nname = 'web'\nlisten = [{listen}]\nbackend = '127.0.0.1:9'\ncert = '{cert}'\n"
        );
        stage.folder.write("courser.toml", text)
    };
    let config = write("'127.0.0.1:0', '127.0.0.1:0'");
    let mut command = Command::new(python);
    command.args(["-c", MANAGER]).arg(stage.folder.join("notify.sock")).arg(env!("CARGO_BIN_EXE_courser"));
    command.args(["serve", "--workers", "1", "--core-dumps", "--config"]).arg(config);
    let manager = courser_testkit::Process::start(&mut command);
    let said = |what: &str, count: usize| {
        manager.wait_stdout(what, |lines| {
            let found: Vec<_> = lines.iter().filter(|line| line.contains(what)).collect();
            found.get(count - 1).map(|line| (*line).clone())
        })
    };
    let first = said("STARTED=", 1);
    said("READY=1", 1);
    let first = first.strip_prefix("STARTED=").and_then(|rest| rest.split(' ').next()).unwrap();
    let pid = nix::unistd::Pid::from_raw(first.parse().unwrap());
    write("'127.0.0.1:0'");
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
    said("FDSTOREREMOVE=", 1);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let again = said("STARTED=", 2);
    assert!(again.ends_with(" 1"), "the socket that is left is held on: {again}");
}

/// Whoever serves after an upgrade has the sockets in the same order, and knows them by the names that the service manager holds
/// them by: it gives them no other ones.
#[test]
fn addresses_of_any_port_keep_their_names_over_upgrades() {
    let Some(python) = require("python3") else { return };
    let stage = Stage::new();
    let control = stage.folder.join("control.sock").display().to_string();
    let write = |count: usize| {
        let (cert, listen) = (stage.certificate.display(), ["'127.0.0.1:0'"].repeat(count).join(", "));
        let text = format!(
            "[[listener]]\nname = 'web'\nlisten = [{listen}]\nbackend = '127.0.0.1:9'\ncert = '{cert}'\n\
             handshake_timeout = '60s'\n"
        );
        stage.folder.write("courser.toml", text)
    };
    let config = write(4);
    let mut command = Command::new(python);
    command.args(["-c", MANAGER]).arg(stage.folder.join("notify.sock")).arg(env!("CARGO_BIN_EXE_courser"));
    command
        .args(["serve", "--workers", "1", "--core-dumps", "--no-reload-on-change", "--config"])
        .arg(config);
    // The default path: a process that finds another one there, which has not quite ended, serves without.
    command.env("RUNTIME_DIRECTORY", stage.folder.path());
    let manager = courser_testkit::Process::start(&mut command);
    let said = |what: &str, count: usize| {
        manager.wait_stdout(what, |lines| {
            let found: Vec<_> = lines.iter().filter(|line| line.contains(what)).collect();
            found.get(count - 1).map(|line| (*line).clone())
        })
    };
    let run = |verb: &str| content(run_courser(&[verb, "--control", &control]));
    let pid = || {
        let status = content(run_courser(&["status", "--json", "--control", &control]));
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        nix::unistd::Pid::from_raw(i32::try_from(status["pid"].as_i64().unwrap()).unwrap())
    };
    // Those of the last process, once so many have been opened or taken over altogether.
    let addresses = |all: usize, last: usize| {
        manager.wait_stderr("the addresses", |lines| {
            let opened: Vec<_> = lines
                .iter()
                .filter_map(|line| line.split("listening on ").nth(1)?.split(' ').next())
                .collect();
            (opened.len() >= all)
                .then(|| opened[all - last..all].iter().map(|&line| line.to_owned()).collect::<Vec<_>>())
        })
    };
    let kill = |pid| nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    said("READY=1", 1);
    let (first, before) = (pid(), addresses(4, 4));
    // For the manager to see it crash, the first process has to be there for as long.
    let _waits = std::net::TcpStream::connect(&before[0]).unwrap();
    run("upgrade");
    assert_eq!(addresses(8, 4), before);
    // One goes, and another one takes its name; then all but one.
    write(3);
    run("reload");
    said("FDSTOREREMOVE=1", 1);
    run("upgrade");
    assert_eq!(addresses(11, 3), before[..3]);
    write(4);
    run("reload");
    write(1);
    run("reload");
    said("FDSTOREREMOVE=1", 4);
    kill(pid());
    kill(first);
    let again = said("STARTED=", 2);
    assert!(again.ends_with(" 1"), "the socket that is left is held on, and no other one: {again}");
    assert_eq!(addresses(13, 1), before[..1]);
}

/// The addresses that two listeners got for one address with port 0 stay theirs.
#[test]
fn listeners_of_any_port_get_back_their_own_sockets_after_a_crash() {
    let Some(python) = require("python3") else { return };
    let stage = Stage::new();
    let listener = |name: &str| {
        let cert = stage.certificate.display();
        format!(
            "[[listener]]\nname = '{name}'\nlisten = '127.0.0.1:0'\nbackend = '127.0.0.1:9'\ncert = '{cert}'\n"
        )
    };
    let names = ["web", "api", "mail", "ftp"];
    let config = stage.folder.write("courser.toml", names.map(listener).concat());
    let mut command = Command::new(python);
    command.args(["-c", MANAGER]).arg(stage.folder.join("notify.sock")).arg(env!("CARGO_BIN_EXE_courser"));
    command.args(["serve", "--workers", "1", "--core-dumps", "--config"]).arg(config);
    let manager = courser_testkit::Process::start(&mut command);
    let started = |count: usize| {
        manager.wait_stdout("a start", |lines| {
            let starts: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("STARTED=")).collect();
            let ready = lines.iter().filter(|line| line.contains("READY=1")).count();
            (starts.len() >= count && ready >= count).then(|| starts[count - 1].to_owned())
        })
    };
    let addresses = |count: usize| {
        let of_process = |lines: &[String]| {
            let listening =
                lines.iter().filter_map(|line| line.find("listening on").map(|at| line[at..].to_owned()));
            let lines: Vec<_> = listening.skip((count - 1) * names.len()).collect();
            (lines.len() == names.len()).then_some(lines)
        };
        let mut of_process = manager.wait_stderr("the addresses", of_process);
        of_process.sort();
        of_process
    };
    let first = started(1);
    let before = addresses(1);
    let pid = nix::unistd::Pid::from_raw(first.split(' ').next().unwrap().parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    let again = started(2);
    assert!(again.ends_with(" 4"), "each listener's socket is held under a name of its own: {again}");
    assert_eq!(addresses(2), before);
}
