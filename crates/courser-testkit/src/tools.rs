//! Small questions to the machine: ports, cores, limits, and programs that may or may not be installed.

use std::{
    env, io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::resource::{Resource, getrlimit, setrlimit},
    unistd::Pid,
};

use crate::skip;

/// Below the ports that Linux gives to outgoing connections (32768 and up unless set otherwise), so that no client of
/// another test takes the port between its choice and its use.
const PORTS: Range<u16> = 12_000..32_000;

/// A port of 127.0.0.1 that was free a moment ago, another one with each call.
///
/// Only for programs that cannot be given port 0: between this call and the program's `bind` another program may take
/// it. Processes begin at different ports, so that tests running side by side rarely meet.
pub fn free_port() -> u16 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let begin = std::process::id() as usize * 101;
    let is_free = |&port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    let next = || PORTS.clone().nth((begin + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS.len());
    PORTS.filter_map(|_| next()).find(is_free).expect("loopback has a free port")
}

/// The path of an installed program, or `None` after a [`skip`].
///
/// Looks through `PATH` and then through the `sbin` folders, where Debian puts the servers and where the `PATH` of an
/// ordinary user does not look.
///
/// # Panics
/// As [`skip`].
#[must_use]
#[track_caller]
pub fn require(program: &str) -> Option<PathBuf> {
    let found = find(program);
    if found.is_none() {
        skip(format!("{program} is not installed (scripts/install.sh installs it)"));
    }
    found
}

/// As [`require`], without the message.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// The cores that this thread may run on, in ascending order.
///
/// # Errors
/// When the kernel does not report it.
pub fn cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    Ok((0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect())
}

/// Pins this thread, and those that it starts from now on, to one core.
///
/// # Errors
/// When the core is not one of [`cores`].
pub fn pin(core: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// Raises the limit of open descriptors as far as an ordinary user may, and returns it. Programs that are started
/// later inherit it.
///
/// # Errors
/// When the kernel refuses.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    Ok(hard)
}
