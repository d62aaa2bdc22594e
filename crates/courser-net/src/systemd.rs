//! What systemd and a service exchange: sockets that it hands over (sd_listen_fds(3)), sockets that it holds over a crash
//! (sd_pid_notify_with_fds(3)), and notes about the state of the service (sd_notify(3)).

use std::ffi::OsStr;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// First descriptor that systemd passes (SD_LISTEN_FDS_START).
const FIRST: i32 = 3;

/// The sockets that systemd opened for this process, each with its name (`FileDescriptorName=`, or `unknown`). Empty
/// when there are none. May be called once: the descriptors are owned by what it returns.
pub fn inherited() -> io::Result<Vec<(String, OwnedFd)>> {
    let for_us = std::env::var("LISTEN_PID").is_ok_and(|pid| pid.parse() == Ok(std::process::id()));
    let count: i32 = std::env::var("LISTEN_FDS").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    if !for_us {
        return Ok(Vec::new());
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':').filter(|name| !name.is_empty());
    (FIRST..FIRST.saturating_add(count))
        .map(|raw| Ok((names.next().unwrap_or("unknown").to_owned(), adopt(raw)?)))
        .collect()
}

/// Sends the service manager what is new, such as `READY=1` (sd_notify(3)); nothing where it has not asked for it
/// (`NOTIFY_SOCKET`). The socket is opened at the first call: whoever gives up privileges calls it before.
pub fn notify(state: &str) {
    if let Some(manager) = manager()
        && !state.is_empty()
    {
        // A manager that does not listen has nothing to wait for.
        let _ = manager.send(state.as_bytes());
    }
}

/// The way to the service manager. It is opened at the first call.
fn manager() -> Option<&'static UnixDatagram> {
    static SOCKET: OnceLock<Option<UnixDatagram>> = OnceLock::new();
    let open = || {
        let address = std::env::var_os("NOTIFY_SOCKET")?;
        connect(&address).ok()
    };
    SOCKET.get_or_init(open).as_ref()
}

fn connect(address: &OsStr) -> io::Result<UnixDatagram> {
    let address = match address.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(Path::new(address))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Gives the service manager a descriptor of `socket` to hold (`FDSTORE=1`): after a crash or a restart [`inherited`] has it
/// again, with this name. Nothing where it has not asked for notes. It holds as many as `FileDescriptorStoreMax=` says.
///
/// A name has at most 255 printable ASCII characters, and no colon.
pub fn store(name: &str, socket: BorrowedFd<'_>) {
    let Some(manager) = manager() else { return };
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors = [socket];
    rights.push(SendAncillaryMessage::ScmRights(&descriptors));
    let note = format!("FDSTORE=1\nFDNAME={name}");
    let note = [IoSlice::new(note.as_bytes())];
    while sendmsg(manager, &note, &mut rights, SendFlags::NOSIGNAL) == Err(Errno::AGAIN) {
        // Many at once fill its queue. A manager that does not read cannot restart anything either.
        let limit = Timespec { tv_sec: 1, tv_nsec: 0 };
        if poll(&mut [PollFd::new(manager, PollFlags::OUT)], Some(&limit)) != Ok(1) {
            return;
        }
    }
}

/// Has the service manager close what it holds under this name.
pub fn forget(name: &str) {
    notify(&format!("FDSTOREREMOVE=1\nFDNAME={name}"));
}

/// After how long without `WATCHDOG=1` the service manager gives this process up (sd_watchdog_enabled(3)); `None` where it
/// does not watch. A process that `took_over` is watched in the place of the one that the variables name.
pub fn watchdog(took_over: bool) -> Option<Duration> {
    let micros = std::env::var("WATCHDOG_USEC").ok()?.parse().ok().filter(|micros| *micros > 0)?;
    let watched = std::env::var("WATCHDOG_PID").ok();
    let is_us = watched.is_none_or(|pid| pid.parse() == Ok(std::process::id()));
    (is_us || took_over).then(|| Duration::from_micros(micros))
}

/// The moment on the clock that systemd compares `RELOADING=1` with (`MONOTONIC_USEC=`), in microseconds.
pub fn monotonic_micros() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

fn adopt(raw: i32) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "a raw descriptor number can become an owned one in no other way")]
    // SAFETY: systemd opened descriptors 3..3+LISTEN_FDS for this process before it started and nothing else here
    // knows of them; `inherited` is called once, so each is owned once. The flags call below fails with EBADF if the
    // environment lied, before anyone uses it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}
