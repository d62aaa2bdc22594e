//! Reloads while an upgrade is under way: none is lost, and whoever waits for one has an answer.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::thread;

use courser_testkit::{OriginServer, Signal, usage};
use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::{Service, text};
use crate::stage::{eventually, run_courser};

/// A program that becomes the real one when `go` is there.
fn patient(service: &Service) -> (String, std::path::PathBuf) {
    let (path, go) = (service.stage.folder.join("patient"), service.stage.folder.join("go"));
    let program = env!("CARGO_BIN_EXE_courser");
    let script =
        format!("#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.05; done\nexec {program} \"$@\"\n", go.display());
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    (path.display().to_string(), go)
}

#[test]
fn a_reload_that_meets_an_upgrade_is_done_by_the_new_process() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    let (program, go) = patient(&service);
    let first = service.pid();
    thread::scope(|scope| {
        let mut asked = UnixStream::connect(&service.control).unwrap();
        let upgrade = scope.spawn(|| service.upgrade(&["--binary", &program]));
        eventually("the upgrade is under way", || usage::family(first).unwrap().len() > 1);
        asked.write_all(b"reload\n").unwrap();
        kill(Pid::from_raw(first.cast_signed()), Signal::SIGHUP).unwrap();
        let reload = scope.spawn(|| run_courser(&["reload", "--control", &service.control]));
        // Whatever was asked before this answer has arrived.
        assert_eq!(service.pid(), first);
        fs::write(go, "").unwrap();
        let done = upgrade.join().unwrap();
        assert!(done.status.success(), "{}", done.stderr);
        let mut answer = String::new();
        BufReader::new(asked).read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), "{\"superseded\":true}");
        let reloaded = reload.join().unwrap();
        assert!(reloaded.status.success(), "{}", reloaded.stderr);
    });
    assert_ne!(service.pid(), first);
    // One for the command, one for the signal, or one for both.
    eventually("the new process has reloaded", || {
        service.status()["generation"]["number"].as_u64().unwrap() > 1
    });
    service.serves();
}

#[test]
fn an_upgrade_in_a_storm_of_reloads_is_done() {
    let origin = OriginServer::http();
    let service = Service::start(&text(&origin));
    for _ in 0..3 {
        let pid = service.pid();
        let storm = || {
            for _ in 0..200 {
                // The process may have ended, its successor serving.
                let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGHUP);
                thread::yield_now();
            }
        };
        thread::scope(|scope| {
            let stormy = scope.spawn(storm);
            service.upgraded();
            stormy.join().unwrap();
        });
        assert_ne!(service.pid(), pid);
        service.serves();
    }
}
