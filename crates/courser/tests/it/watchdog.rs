//! The service manager's watchdog (`WatchdogSec=`), by a stand-in for its socket: a worker that hangs silences the program.

use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::thread;
use std::time::Duration;

use courser_testkit::{Courser, OriginServer};
use nix::libc::SYS_accept4;
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::stage::{Stage, eventually};

/// After so long without a word the manager would start the service anew.
const LIMIT: Duration = Duration::from_secs(2);

#[test]
fn one_worker_that_hangs_silences_the_watchdog_until_it_goes_on() {
    let (stage, origin) = (Stage::new(), OriginServer::http());
    let path = stage.folder.join("notify.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let courser = stage.courser_of(2).backend(origin.backend()).env("NOTIFY_SOCKET", &path.to_string_lossy());
    let courser = courser.env("WATCHDOG_USEC", &LIMIT.as_micros().to_string()).start();
    let is_heard = || {
        let mut note = [0; 256];
        let mut notes = std::iter::from_fn(|| manager.recv(&mut note).ok().map(|len| note[..len].to_vec()));
        notes.any(|note| note == b"WATCHDOG=1")
    };
    assert!(is_heard() && is_heard(), "workers that rest are well");
    let hung = Hung::at_its_next_client(&courser);
    eventually("the manager gives it up", || !is_heard());
    drop(hung);
    assert!(is_heard(), "it goes on");
}

/// A worker that is held in a system call, by the kernel's interface for debuggers (ptrace(2)), until it is dropped.
struct Hung(Pid);

impl Hung {
    fn at_its_next_client(courser: &Courser) -> Self {
        let threads = format!("/proc/{}/task", courser.pid());
        let mut threads = fs::read_dir(threads).unwrap().map(|entry| entry.unwrap().path());
        let is_worker = |thread: &Path| fs::read_to_string(thread.join("comm")).unwrap() == "worker-0\n";
        let thread = threads.find(|thread| is_worker(thread)).unwrap();
        let worker = Pid::from_raw(thread.file_name().unwrap().to_str().unwrap().parse().unwrap());
        ptrace::seize(worker, ptrace::Options::PTRACE_O_TRACESYSGOOD).unwrap();
        ptrace::interrupt(worker).unwrap();
        waitpid(worker, Some(WaitPidFlag::__WALL)).unwrap();
        let accept = format!("{SYS_accept4} ");
        while !fs::read_to_string(thread.join("syscall")).unwrap().starts_with(&accept) {
            ptrace::syscall(worker, None).unwrap();
            // The kernel may give a client to the other worker.
            let wait = || waitpid(worker, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)).unwrap();
            while wait() == WaitStatus::StillAlive {
                drop(TcpStream::connect(courser.address()).unwrap());
                thread::yield_now();
            }
        }
        Self(worker)
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        ptrace::detach(self.0, None).unwrap();
    }
}
