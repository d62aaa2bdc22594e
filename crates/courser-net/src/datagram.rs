//! Datagrams between hosts: UDP to single hosts or to a multicast group, several in each system call.
//!
//! What cannot be sent is reported and dropped; nothing here waits for room, tries again or remembers a peer.

mod batch;
mod interface;
mod open;

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::stream::{Watched, register};
pub use batch::Batch;
pub use interface::{Interface, NoInterface};
pub use open::{DatagramError, DatagramSettings, DatagramSocket};

/// Datagrams in one system call; the kernel takes up to 1024 (sendmmsg(2)), but the gain is over long before.
const PER_CALL: usize = 64;

/// Datagram sockets in a thread's runtime.
#[derive(Debug)]
pub struct Datagrams {
    /// Receives what was sent to the multicast group.
    group: Option<Endpoint>,
    /// Sends, and receives what was sent to this host alone.
    own: Endpoint,
}

#[derive(Debug)]
struct Endpoint {
    // Dropped before `fd`: see `register`.
    queue: AsyncFd<Watched>,
    fd: OwnedFd,
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// What.
    pub bytes: &'a [u8],
}

/// A datagram that was not sent.
#[derive(Debug)]
pub struct Unsent {
    /// Where it was to go.
    pub to: SocketAddr,
    /// What kind of failure it is.
    pub kind: UnsentKind,
    /// The error of the kernel.
    pub error: io::Error,
}

/// Why a datagram was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnsentKind {
    /// The send buffer or the interface's queue is full (EAGAIN, ENOBUFS, ENOMEM).
    NoRoom,
    /// No route, no listener, or a firewall of this machine forbids it (ENETUNREACH, EHOSTUNREACH, ECONNREFUSED,
    /// EPERM and the like).
    Unreachable,
    /// It is longer than a datagram may be (EMSGSIZE).
    TooLong,
    /// Anything else.
    Other,
}

impl Datagrams {
    /// Registers the sockets with the current thread's runtime, which has to have I/O enabled.
    ///
    /// # Errors
    /// When the runtime is shutting down, or memory has run out.
    pub fn new(socket: DatagramSocket) -> io::Result<Self> {
        let (group, own) = socket.into_descriptors();
        Ok(Self { group: group.map(Endpoint::new).transpose()?, own: Endpoint::new(own)? })
    }

    /// Waits for datagrams and puts them into `batch`, in place of what was there. Dropping the future loses none.
    ///
    /// # Errors
    /// The kernel's, for example that of an earlier datagram whose port had no listener (ECONNREFUSED): none is a reason to
    /// stop receiving.
    pub async fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        poll_fn(|cx| self.poll_receive(cx, batch)).await
    }

    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        batch.clear();
        // The group goes last into the same batch, so that neither starves the other.
        let mut heard = self.own.poll_receive(cx, batch);
        if let Some(group) = &self.group {
            let from_group = group.poll_receive(cx, batch);
            heard = if heard.is_pending() { from_group } else { heard };
        }
        if batch.is_empty() { heard } else { Poll::Ready(Ok(())) }
    }

    /// Sends `messages`, and returns those that could not be sent. Never waits: once the buffer is full, the rest is
    /// left out.
    #[must_use]
    pub fn send(&self, messages: &[Outgoing<'_>]) -> Vec<Unsent> {
        let (mut unsent, mut rest) = (Vec::new(), messages);
        while let Some(first) = rest.first() {
            match send_some(&self.own.fd, &rest[..rest.len().min(PER_CALL)]) {
                Ok(sent) => rest = &rest[sent..],
                Err(Errno::AGAIN) => {
                    unsent.extend(rest.iter().map(|message| Unsent::new(message.to, Errno::AGAIN)));
                    return unsent;
                }
                Err(errno) => {
                    unsent.push(Unsent::new(first.to, errno));
                    rest = &rest[1..];
                }
            }
        }
        unsent
    }
}

/// Sends from the front of `messages` and returns how many, at least one; fails if the first one cannot be sent.
fn send_some(socket: &OwnedFd, messages: &[Outgoing<'_>]) -> Result<usize, Errno> {
    let addresses: Vec<_> = messages.iter().map(|message| SocketAddrAny::from(message.to)).collect();
    let payloads: Vec<_> = messages.iter().map(|message| [IoSlice::new(message.bytes)]).collect();
    let mut controls: Vec<_> = messages.iter().map(|_| SendAncillaryBuffer::default()).collect();
    let parts = addresses.iter().zip(&payloads).zip(&mut controls);
    let mut headers: Vec<_> = parts
        .map(|((address, payload), control)| MMsgHdr::new_with_addr(address, payload, control))
        .collect();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::io::retry_on_intr(|| rustix::net::sendmmsg(socket, &mut headers, flags))
}

impl Endpoint {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { queue: register(&fd, Interest::READABLE)?, fd })
    }

    /// Appends what is there to `batch`, as far as there is room.
    fn poll_receive(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<io::Result<()>> {
        while !batch.is_full() {
            let mut ready = ready!(self.queue.poll_read_ready(cx))?;
            match batch.fill(&self.fd) {
                Ok(()) if batch.is_full() => {}
                // The socket is empty; the next datagram makes a new event (epoll(7), edge-triggered).
                Ok(()) | Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Unsent {
    fn new(to: SocketAddr, errno: Errno) -> Self {
        Self { to, kind: UnsentKind::of(errno), error: errno.into() }
    }
}

impl UnsentKind {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM => Self::NoRoom,
            Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN => Self::Unreachable,
            Errno::CONNREFUSED | Errno::PERM | Errno::ACCESS | Errno::NODEV => Self::Unreachable,
            Errno::MSGSIZE => Self::TooLong,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot send to {}: {}", self.to, self.error)
    }
}
