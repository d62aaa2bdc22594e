//! Sockets handed over by systemd (sd_listen_fds(3)).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

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

fn adopt(raw: i32) -> io::Result<OwnedFd> {
    #[expect(unsafe_code, reason = "a raw descriptor number can become an owned one in no other way")]
    // SAFETY: systemd opened descriptors 3..3+LISTEN_FDS for this process before it started and nothing else here
    // knows of them; `inherited` is called once, so each is owned once. The flags call below fails with EBADF if the
    // environment lied, before anyone uses it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    Ok(fd)
}
