//! Workers have given up files and most system calls, other threads have not, and what workers are for still works.

use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::thread;

use courser_testkit::KeyType::{EcdsaP256, Rsa2048};
use courser_testkit::engine::Engine;
use courser_testkit::{Courser, Process, require, skip};

use crate::fleet::keygen;
use crate::resumption::visitor::Visitor;
use crate::stage::{Stage, eventually};
use crate::support::{SESSION_ID, Site, openssl, text};

/// The program's threads by name, each with whether a filter of system calls is on it.
fn threads(courser: &Courser) -> Vec<(String, bool)> {
    let tasks = fs::read_dir(format!("/proc/{}/task", courser.pid())).unwrap();
    // A thread may end between the listing and the reading.
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().to_owned()
    };
    statuses.map(|status| (field(&status, "Name:"), field(&status, "Seccomp:") == "2")).collect()
}

fn is_worker(name: &str) -> bool {
    name.starts_with("worker-")
}

/// What the program said of its workers; `None`, with the reason printed, where the kernel does not have all of it.
fn is_confined(courser: &Courser) -> Option<()> {
    let said = courser.wait_stderr_line("workers are ");
    if said.contains("not fully confined") {
        skip(said);
        return None;
    }
    assert!(said.contains("workers are confined: Landlock ABI ") && said.ends_with(", seccomp"), "{said}");
    Some(())
}

#[test]
fn workers_are_confined_and_other_threads_are_not() {
    let stage = Stage::new();
    let socket = stage.folder.join("control.sock");
    // A name for a backend has a thread that looks it up; the control socket has one as well.
    let setup = stage.courser_of(3).backend("localhost:9").arg("--control").arg(&socket);
    let courser = setup.start();
    if is_confined(&courser).is_none() {
        return;
    }
    eventually("three workers are confined", || {
        threads(&courser).iter().filter(|(name, confined)| is_worker(name) && *confined).count() == 3
    });
    let threads = threads(&courser);
    assert!(threads.iter().all(|(name, confined)| is_worker(name) == *confined), "{threads:?}");
    assert!(threads.iter().any(|(name, _)| name == "control"), "{threads:?}");
}

#[test]
fn workers_keep_everything_where_that_is_asked_for_and_it_is_said() {
    let stage = Stage::new();
    let courser = stage.courser().backend("127.0.0.1:9").arg("--unconfined-workers").start();
    let warning = courser.wait_stderr_line("workers are not confined");
    assert!(warning.contains("warning"), "{warning}");
    eventually("the worker runs", || threads(&courser).iter().any(|(name, _)| is_worker(name)));
    assert!(threads(&courser).iter().all(|(_, confined)| !confined));
}

#[test]
fn confined_workers_make_no_call_that_is_refused() {
    let Some(strace) = require("strace") else { return };
    let site = Site::new();
    let trace = site.folder.join("trace");
    // The program keeps its process ID (-D), and calls that fail are written down (-Z).
    let strace = [text(&strace), "-D", "-f", "-Z", "-o", text(&trace)];
    let mut courser = site.serve(&[EcdsaP256, Rsa2048]).under(&strace).start();
    for flags in ["-tls1_3", "-tls1_2", "-tls1_2 -sigalgs RSA-PSS+SHA256"] {
        if let Some(said) = openssl(courser.address(), flags) {
            said.has_page();
        }
    }
    drop(TcpStream::connect(courser.address()).unwrap());
    assert!(courser.stop().success());
    let read = || fs::read_to_string(&trace).unwrap();
    eventually("strace has seen the end", || read().lines().last().is_some_and(|line| line.contains("+++")));
    let trace = read();
    assert!(trace.contains("EAGAIN"), "{trace}");
    let refused: Vec<_> = trace.lines().filter(|line| line.contains("ENOSYS")).collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn a_confined_worker_reaches_unix_backends_that_begin_to_listen_later() {
    let stage = Stage::new();
    let path = stage.folder.join("backend.sock");
    let courser = stage.courser().backend(format!("unix:{}", path.display())).start();
    let listener = UnixListener::bind(&path).unwrap();
    let served = thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nthrough").unwrap();
    });
    let page = Process::start(&mut stage.curl(&courser, "/")).finish();
    assert_eq!(page.stdout, "through", "{}", page.stderr);
    served.join().unwrap();
}

/// The name has to be looked up, which takes files and, in the library, a thread.
#[test]
fn confined_workers_find_a_store_by_its_name() {
    let site = Site::new();
    let key = keygen(site.folder.path(), "fleet.key");
    let Some(engine) = Engine::installed().into_iter().next() else { return };
    let server = engine.start(&[]);
    let url = format!("redis://localhost:{}/0", server.address().port());
    let host = || {
        let setup = site.serve(&[EcdsaP256]).arg("--fleet-key").arg(&key);
        setup.args(["--session-store", &url, "--session-store-timeout", "1s"]).start()
    };
    let (one, other) = (host(), host());
    let visitor = Visitor::new(&site, SESSION_ID);
    if visitor.come(&one, "").is_none() || is_confined(&other).is_none() {
        return;
    }
    let resumed = (0..50).any(|_| visitor.comes_back(&other).unwrap().text.contains("Reused, "));
    assert!(resumed, "{:?}", other.stderr());
    let found = threads(&other);
    assert!(found.iter().all(|(name, confined)| is_worker(name) == *confined), "{found:?}");
}
