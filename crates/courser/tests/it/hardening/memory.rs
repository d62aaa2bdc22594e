//! Memory with keys in it stays where it is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;

use courser_testkit::{Courser, Signal, leave_out, require, skip};
use nix::unistd::geteuid;

use crate::stage::{Stage, courser_for_all};
use crate::support::text;

/// The program where core files have no limit, in its own folder; SIGQUIT is what a user types for one. A shell that runs the
/// tests in the background would have it ignored.
fn dumps(flags: &[&str]) -> Option<bool> {
    require("prlimit")?;
    let stage = Stage::new();
    let folder = stage.folder.path().to_str().unwrap();
    let setup = stage.courser().backend("127.0.0.1:9").args(flags.iter().copied());
    let mut courser = setup
        .under(&["env", "--default-signal=QUIT", "--chdir", folder, "prlimit", "--core=unlimited"])
        .start();
    courser.signal(Signal::SIGQUIT);
    let status = courser.wait();
    assert_eq!(status.signal(), Some(Signal::SIGQUIT as i32));
    Some(status.core_dumped())
}

#[test]
fn a_crash_leaves_a_core_file_only_where_that_is_asked_for() {
    assert_ne!(dumps(&[]), Some(true));
    assert_ne!(dumps(&["--core-dumps"]), Some(false));
}

#[test]
fn the_core_size_is_0_and_no_new_privileges_come() {
    let stage = Stage::new();
    let courser = stage.serve("127.0.0.1:9");
    let limits = fs::read_to_string(format!("/proc/{}/limits", courser.pid())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().rev().take(3).collect::<Vec<_>>(), ["bytes", "0", "0"], "{limits}");
    let status = fs::read_to_string(format!("/proc/{}/status", courser.pid())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
}

/// Whether memory is locked follows from the limit, and the kernel counts what is.
#[test]
fn memory_is_locked_where_the_limit_is_infinite_and_else_it_is_said() {
    let Some(prlimit) = require("prlimit") else { return };
    let stage = Stage::new();
    let locked = |limit: &str| {
        let limit = format!("--memlock={limit}");
        let setup = stage.courser().backend("127.0.0.1:9").under(&[text(&prlimit), &limit]);
        let courser = setup.try_start().ok()?;
        let line = courser.wait_stderr_line("memory is ");
        let status = fs::read_to_string(format!("/proc/{}/status", courser.pid())).unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap().trim().to_owned();
        Some((line.contains("memory is locked"), size != "0 kB"))
    };
    assert_eq!(locked("65536:65536"), Some((false, false)));
    match locked("unlimited:unlimited") {
        Some(both) => assert_eq!(both, (true, true)),
        None => leave_out("this user may not raise the limit of locked memory"),
    }
}

/// The kernel gives what is in `/proc/PID` to root where the process is not dumpable: then no other process of its user may
/// read its memory (proc(5), ptrace(2)).
#[test]
fn another_process_of_the_same_user_cannot_read_the_memory() {
    if !geteuid().is_root() {
        return skip("only root can start a program as another user");
    }
    let owner = |courser: &Courser| fs::metadata(format!("/proc/{}/mem", courser.pid())).unwrap().uid();
    let stage = Stage::new();
    let program = courser_for_all(&stage.folder);
    let start = |flags: &[&str]| {
        let setup = Courser::setup(&program).backend("127.0.0.1:9").args(flags.iter().copied());
        setup.under(&["setpriv", "--reuid=23456", "--regid=23456", "--clear-groups"]).start()
    };
    if require("setpriv").is_some() {
        assert_eq!(owner(&start(&[])), 0);
        assert_eq!(owner(&start(&["--core-dumps"])), 23_456);
    }
}
