//! What becomes of filters and of known visitors when another process has the sockets.

use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;

use courser_testkit::client::{Client, Resume, Version};
use courser_testkit::{KeyType, OriginServer, Process, free_port, require};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Ends, SENSITIVE, alone, during_a_flood, flood, hello, strangers, visit};
use crate::stage::{Stage, run_courser};
use crate::upgrade::store::MANAGER;

/// In an overload another process takes over, and one that cannot does not: those who have been here get in all the while, and
/// everyone does when the overload is over.
#[test]
fn an_upgrade_in_overload_locks_nobody_out() {
    let (stage, origin) = (Stage::with(KeyType::Rsa2048), OriginServer::http());
    let control = stage.folder.join("control.sock").display().to_string();
    let courser =
        stage.courser().backend(origin.backend()).args(SENSITIVE).args(["--control", &control]).start();
    let client = stage.client(&courser, Version::Tls13);
    client.connect().unwrap().get(1_000, true).unwrap();
    let visits = || (0..10).filter(|_| visit(courser.address(), &client).is_ok()).count();
    let served = during_a_flood(&courser, &client, strangers, || {
        let refused = run_courser(&["upgrade", "--control", &control, "--binary", "/bin/false"]);
        assert!(!refused.status.success(), "{}", refused.stderr);
        let before = visits();
        let upgraded = run_courser(&["upgrade", "--control", &control]);
        assert!(upgraded.status.success(), "{}", upgraded.stderr);
        courser.wait_stderr("the new process is in overload", |lines| {
            let news = |line: &&String| line.contains("more clients come than can be served");
            (lines.iter().filter(news).count() >= 2).then_some(())
        });
        (before, visits())
    });
    assert!(served.0 >= 9 && served.1 >= 9, "{served:?} of 10 visits before and after");
    courser.wait_stderr("the end of the overload, in both processes", |lines| {
        (lines.iter().filter(|line| line.contains("overload is over")).count() >= 2).then_some(())
    });
    assert!((0..20).all(|_| visit(courser.address(), &client).is_ok()), "all get in behind the flood");
}

/// The process is killed while its filter drops nearly all, and the service manager holds the socket.
#[test]
fn a_kill_in_overload_locks_nobody_out() {
    let Some(python) = require("python3") else { return };
    let (origin, stage, port) = (OriginServer::http(), Stage::with(KeyType::Rsa2048), free_port());
    let mut command = Command::new(python);
    command.args(["-c", MANAGER]).arg(stage.folder.join("notify.sock")).arg(env!("CARGO_BIN_EXE_courser"));
    command.args(["serve", "--workers", "1", "--listen", &format!("127.0.0.1:{port}"), "--cert"]);
    command.arg(&stage.certificate).args(["--backend", origin.backend(), "--core-dumps"]).args(SENSITIVE);
    let manager = Process::start(&mut command);
    let started = |count: usize| {
        manager.wait_stdout("a start", |lines| {
            let starts: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("STARTED=")).collect();
            let ready = lines.iter().filter(|line| line.contains("READY=1")).count();
            (starts.len() >= count && ready >= count).then(|| starts[count - 1].to_owned())
        })
    };
    let first = started(1);
    let address = ([127, 0, 0, 1], port).into();
    let client = Client::new(address, Version::Tls13, KeyType::Rsa2048, Resume::Never);
    let (hello, is_told, is_over) = (hello(&client), AtomicBool::new(false), AtomicBool::new(false));
    let _alone = alone();
    thread::scope(|scope| {
        scope.spawn(|| flood(address, &hello, strangers, &is_told, &is_over));
        let _end = Ends(&is_over);
        manager.wait_stderr("the overload is told", |lines| {
            lines.iter().any(|line| line.contains("more clients come than can be served")).then_some(())
        });
    });
    let pid = first.split(' ').next().unwrap().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    let again = started(2);
    assert!(again.ends_with(" 1"), "the socket is held: {again}");
    assert!((0..20).all(|_| visit(address, &client).is_ok()), "all get in");
}
