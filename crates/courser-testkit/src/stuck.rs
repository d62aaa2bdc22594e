//! A server that swallows what knocks.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use socket2::{SockAddr, Socket, Type};

use crate::PATIENCE;

/// An address that neither takes nor refuses connections: its queue is full, so the kernel drops what knocks.
#[derive(Debug)]
pub struct Stuck {
    listener: Socket,
    _queued: Vec<Socket>,
}

impl Stuck {
    /// One on 127.0.0.1.
    pub fn new() -> Self {
        Self::at(([127, 0, 0, 1], 0).into())
    }

    /// One at this address.
    pub fn at(address: SocketAddr) -> Self {
        let address = address.into();
        let listener = stream(&address);
        listener.bind(&address).and_then(|()| listener.listen(0)).expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        // A queue of length 0 holds one connection, one more on its way to it.
        let queued = (0..3).map(|_| queue(&address)).collect();
        Self { listener, _queued: queued }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        let address = self.listener.local_addr().ok().and_then(|address| address.as_socket());
        address.expect("the socket is TCP").to_string()
    }
}

impl Default for Stuck {
    fn default() -> Self {
        Self::new()
    }
}

fn stream(address: &SockAddr) -> Socket {
    Socket::new(address.domain(), Type::STREAM, None).expect("the kernel has sockets")
}

fn queue(address: &SockAddr) -> Socket {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let socket = stream(address);
        socket.set_nonblocking(true).expect("every socket can be non-blocking");
        match socket.connect(address) {
            Ok(()) => return socket,
            // In progress, and so it stays.
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => return socket,
            // To an IPv6 address that was just added there is a route a moment later.
            Err(error) => assert!(Instant::now() < deadline, "cannot connect: {error}"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}
