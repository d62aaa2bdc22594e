//! What the kernel knows of a listening socket's accept queue.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::tcp_info;

/// The accept queue of a TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptQueue {
    /// Connections that wait to be accepted.
    pub length: u32,
    /// How many may wait. A SYN that finds more of them is dropped.
    pub limit: u32,
    /// Packets that were dropped at the socket since it was opened: SYNs by a filter or a full queue, and the last ACK of a
    /// handshake that finds the queue full. It wraps around.
    pub dropped: u32,
}

impl AcceptQueue {
    /// # Errors
    /// As of getsockopt(2).
    pub(crate) fn of(socket: &impl AsFd) -> io::Result<Self> {
        let (length, limit) = tcp_info::accept_queue(socket)?;
        Ok(Self { length, limit, dropped: dropped(socket)? })
    }
}

fn dropped(socket: &impl AsFd) -> io::Result<u32> {
    let mut counters = [0_u32; COUNTERS];
    let mut length: libc::socklen_t = size_of_val(&counters).try_into().expect("36 bytes");
    #[expect(unsafe_code, reason = "no library asks for these counters")]
    // SAFETY: `counters` has room for the `length` bytes that the kernel may write at most, and both pointers are to locals
    // that live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            counters.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(counters[DROPS])
}

/// SK_MEMINFO_VARS and SK_MEMINFO_DROPS (linux/sock_diag.h).
const COUNTERS: usize = 9;
const DROPS: usize = 8;
