//! Listening sockets: one per worker and address, all opened before any worker starts.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketFlags;
use socket2::{Protocol, SockRef, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::accept_queue::AcceptQueue;
use crate::address::Address;
use crate::liveness::Liveness;
use crate::stream::{Stream, Watched, register};
use crate::syn_filter::SynFilter;

/// An open listening socket that no worker serves yet.
#[derive(Debug)]
pub struct ListenSocket {
    fd: OwnedFd,
    address: Address,
    /// Another descriptor stands for the same queue.
    is_copy: bool,
    /// Somebody else opened it, and has said how long its queue is.
    is_foreign: bool,
}

impl ListenSocket {
    /// Opens `count` listening sockets on `address`, one for each worker. For TCP they share the port through
    /// SO_REUSEPORT (socket(7)), so that the kernel spreads the clients; a unix socket is one queue that all share.
    /// Port 0 takes a free port, the same for all. `dual` lets an IPv6 socket accept IPv4 as well.
    ///
    /// TCP_NODELAY is set here once: accepted sockets inherit it.
    pub fn open(address: &Address, dual: bool, backlog: u32, count: usize) -> io::Result<Vec<Self>> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let first = Self::bind(address, dual, backlog)?;
        let address = first.address.clone();
        let mut sockets = vec![first];
        while sockets.len() < count {
            sockets.push(match address {
                Address::Ip(_) => Self::bind(&address, dual, backlog)?,
                _ => sockets[0].share()?,
            });
        }
        Ok(sockets)
    }

    /// Takes over a socket that is listening already, from systemd or from another process. A filter that
    /// somebody left on it is taken off first: it may drop every client.
    ///
    /// # Errors
    /// Where it does not listen.
    pub fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let socket = SockRef::from(&fd);
        if !socket.is_listener()? {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the inherited socket is not listening"));
        }
        SynFilter::detach(&fd)?;
        socket.set_nonblocking(true)?;
        let address = local_address(&socket)?;
        if let Address::Ip(_) = address {
            socket.set_tcp_nodelay(true)?;
        }
        Ok(Self { fd, address, is_copy: false, is_foreign: false })
    }

    /// The same, whose queue is as long as somebody else has said, who holds it for longer than this process lives.
    #[must_use]
    pub fn foreign(self) -> Self {
        Self { is_foreign: true, ..self }
    }

    /// Where it listens, with the real port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Has the kernel watch the peers of the connections that are accepted from now on. Nothing to do for a unix socket.
    pub fn set_liveness(&self, liveness: &Liveness) -> io::Result<()> {
        set_liveness(&self.address, &self.fd, liveness)
    }

    /// As [`AsyncListener::set_syn_filter`].
    ///
    /// # Errors
    /// As of [`SynFilter::attach`] and [`SynFilter::detach`].
    pub fn set_syn_filter(&self, filter: Option<&SynFilter>) -> io::Result<()> {
        set_syn_filter(&self.address, &self.fd, filter)
    }

    /// Changes how many connections may wait in the accept queue; those that do stay.
    ///
    /// # Errors
    /// As of listen(2).
    pub fn set_backlog(&self, backlog: u32) -> io::Result<()> {
        Ok(rustix::net::listen(&self.fd, i32::try_from(backlog).unwrap_or(i32::MAX))?)
    }

    /// Another descriptor for the same queue.
    pub fn share(&self) -> io::Result<Self> {
        let (fd, address) = (self.fd.try_clone()?, self.address.clone());
        Ok(Self { fd, address, is_copy: true, is_foreign: self.is_foreign })
    }

    /// The number of its queue: the same for each descriptor of the same socket, on this machine (fstat(2), `st_ino`).
    ///
    /// # Errors
    /// As of fstat(2).
    pub fn queue(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.fd)?.st_ino)
    }

    fn bind(address: &Address, dual: bool, backlog: i32) -> io::Result<Self> {
        let tcp = matches!(address, Address::Ip(_));
        let socket = socket2::Socket::new(address.domain(), Type::STREAM, tcp.then_some(Protocol::TCP))?;
        if tcp {
            socket.set_reuse_address(true)?;
            socket.set_reuse_port(true)?;
            socket.set_tcp_nodelay(true)?;
        }
        if let Address::Ip(SocketAddr::V6(_)) = address {
            socket.set_only_v6(!dual)?;
        }
        if let Address::Unix(path) = address {
            remove_stale(path)?;
        }
        socket.bind(&address.to_socket2()?)?;
        socket.listen(backlog)?;
        socket.set_nonblocking(true)?;
        let address = if tcp { local_address(&SockRef::from(&socket))? } else { address.clone() };
        Ok(Self { fd: socket.into(), address, is_copy: false, is_foreign: false })
    }
}

fn set_syn_filter(address: &Address, fd: &OwnedFd, filter: Option<&SynFilter>) -> io::Result<()> {
    match (address, filter) {
        (Address::Ip(_), Some(filter)) => filter.attach(fd),
        (Address::Ip(_), None) => SynFilter::detach(fd),
        _ => Ok(()),
    }
}

impl AsFd for ListenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn set_liveness(address: &Address, fd: &OwnedFd, liveness: &Liveness) -> io::Result<()> {
    match address {
        Address::Ip(_) => liveness.set(fd),
        _ => Ok(()),
    }
}

/// Removes a unix socket that a process which is gone left behind; one that somebody serves is left alone, so that the
/// bind fails with "address in use".
fn remove_stale(path: &std::path::Path) -> io::Result<()> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let refused = || UnixStream::connect(path).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && refused() { fs::remove_file(path) } else { Ok(()) }
}

fn local_address(socket: &SockRef<'_>) -> io::Result<Address> {
    let address = socket.local_addr()?;
    if let Some(ip) = address.as_socket() {
        return Ok(Address::Ip(ip));
    }
    let path = address.as_pathname().map(|path| Address::Unix(path.to_owned()));
    let name = || address.as_abstract_namespace().map(|name| String::from_utf8_lossy(name).into_owned());
    path.or_else(|| name().map(Address::Abstract))
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the socket is neither TCP nor unix"))
}

/// A listening socket in a worker's runtime.
#[derive(Debug)]
pub struct AsyncListener {
    // Dropped before `fd`: see `register`.
    queue: AsyncFd<Watched>,
    fd: OwnedFd,
    address: Address,
    is_copy: bool,
    /// Somebody else opened it, and has said how long its queue is.
    is_foreign: bool,
}

/// A connection from the accept queue.
#[derive(Debug)]
pub struct Accepted {
    /// The connection.
    pub stream: Stream,
    /// The peer's address; `None` for a unix socket.
    pub peer: Option<SocketAddr>,
}

impl AsyncListener {
    /// Registers the socket with the current thread's runtime.
    pub fn new(socket: ListenSocket) -> io::Result<Self> {
        let ListenSocket { fd, address, is_copy, is_foreign } = socket;
        Ok(Self { queue: register(&fd, Interest::READABLE)?, fd, address, is_copy, is_foreign })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether another worker has the same queue, and counts for it: the first of those that share it does.
    pub fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Whether the length of its queue is somebody else's: see [`ListenSocket::foreign`].
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// As [`ListenSocket::set_liveness`].
    ///
    /// # Errors
    /// As of setsockopt(2).
    pub fn set_liveness(&self, liveness: &Liveness) -> io::Result<()> {
        set_liveness(&self.address, &self.fd, liveness)
    }

    /// Has the kernel drop SYNs from now on, in the place of an earlier filter; `None`: it passes all. Nothing to do for a unix
    /// socket.
    ///
    /// # Errors
    /// As of [`SynFilter::attach`] and [`SynFilter::detach`].
    pub fn set_syn_filter(&self, filter: Option<&SynFilter>) -> io::Result<()> {
        set_syn_filter(&self.address, &self.fd, filter)
    }

    /// The clients that wait in the kernel, and those that it has dropped; `None` for a unix socket.
    ///
    /// # Errors
    /// As of getsockopt(2).
    pub fn accept_queue(&self) -> io::Result<Option<AcceptQueue>> {
        matches!(self.address, Address::Ip(_)).then(|| AcceptQueue::of(&self.fd)).transpose()
    }

    /// Changes how many connections may wait in the accept queue; those that do stay. Beyond it the kernel drops SYNs.
    ///
    /// # Errors
    /// As of listen(2).
    pub fn set_backlog(&self, backlog: u32) -> io::Result<()> {
        Ok(rustix::net::listen(&self.fd, i32::try_from(backlog).unwrap_or(i32::MAX))?)
    }

    /// Another descriptor for the same queue.
    ///
    /// # Errors
    /// Without a descriptor.
    pub fn share(&self) -> io::Result<ListenSocket> {
        let (fd, address) = (self.fd.try_clone()?, self.address.clone());
        Ok(ListenSocket { fd, address, is_copy: true, is_foreign: self.is_foreign })
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> io::Result<Accepted> {
        self.accept_admitted(|| Some(()), async || ()).await.map(|(accepted, ())| accepted)
    }

    /// Waits for the next connection, and then for leave to accept it: what `try_admit` has at hand, else `admit`. Where
    /// another worker has taken the connection meanwhile, the leave is dropped.
    pub async fn accept_admitted<P>(
        &self,
        try_admit: impl Fn() -> Option<P>,
        admit: impl AsyncFn() -> P,
    ) -> io::Result<(Accepted, P)> {
        loop {
            let mut ready = self.queue.readable().await?;
            let permit = match try_admit() {
                Some(permit) => permit,
                // Readiness outlives the last connection of the queue; an empty queue is not waited for.
                None if !has_connection(&self.fd) => {
                    ready.clear_ready();
                    continue;
                }
                None => admit().await,
            };
            if let Ok(accepted) = ready.try_io(|_| accept(&self.fd)) {
                return accepted.map(|accepted| (accepted, permit));
            }
        }
    }

    /// Whether it is of TCP, and no unix socket.
    pub fn is_tcp(&self) -> bool {
        matches!(self.address, Address::Ip(_))
    }

    /// Whether a connection is in the queue now.
    pub fn has_connection(&self) -> bool {
        has_connection(&self.fd)
    }

    /// The next connection that is in the queue already; `WouldBlock` if it is empty.
    pub fn accept_queued(&self) -> io::Result<Accepted> {
        accept(&self.fd)
    }
}

/// Whether a connection is in the queue now.
fn has_connection(listener: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(listener, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Not distinguished: a failure shows when it is accepted.
    poll(&mut polled, Some(&now)) != Ok(0)
}

fn accept(listener: &OwnedFd) -> io::Result<Accepted> {
    let (fd, peer) =
        rustix::net::acceptfrom_with(listener.as_fd(), SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?;
    let peer = peer.and_then(|any| SocketAddr::try_from(any).ok());
    // On a dual-stack socket IPv4 clients come as mapped IPv6 addresses; those are hard to read and to match.
    let peer = peer.map(|peer| SocketAddr::new(peer.ip().to_canonical(), peer.port()));
    Ok(Accepted { stream: Stream::new(fd, true), peer })
}
