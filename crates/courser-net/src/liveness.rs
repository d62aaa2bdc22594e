//! When the kernel finds out by itself that the machine at the other end is gone (tcp(7)).

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// How long a peer may be silent where it has to answer. Of TCP alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Without a packet for so long, the kernel sends probes (TCP_KEEPIDLE), at the system's interval.
    pub keepalive: Duration,
    /// Bytes and probes that are not acknowledged for so long end the connection (TCP_USER_TIMEOUT).
    pub user_timeout: Duration,
}

impl Default for Liveness {
    fn default() -> Self {
        Self { keepalive: Duration::from_secs(60), user_timeout: Duration::from_secs(300) }
    }
}

impl Liveness {
    /// Sets it on a TCP socket; those that a listening socket accepts inherit it.
    pub(crate) fn set(&self, socket: &impl AsFd) -> io::Result<()> {
        let socket = SockRef::from(socket);
        // The kernel counts whole seconds, from 1.
        let keepalive = self.keepalive.max(Duration::from_secs(1));
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(keepalive))?;
        socket.set_tcp_user_timeout(Some(self.user_timeout))
    }
}
