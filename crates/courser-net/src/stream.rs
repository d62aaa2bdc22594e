//! A non-blocking byte stream, TCP or unix, in a worker's runtime.

use std::cell::{Cell, OnceCell};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use socket2::{SockRef, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::address::Address;
use crate::liveness::Liveness;
use crate::syn_filter::SynFilter;
use crate::tcp_info::TcpInfo;

/// A connected socket.
///
/// It joins the event queue only when it has to wait for the first time: a ClientHello that is there when the
/// connection is accepted is read, and answered, without a trip round the event loop. Writes are tried at once, since
/// they nearly always succeed; reads after the first wait for readiness.
#[derive(Debug)]
pub struct Stream {
    // Dropped before `fd`: see `register`.
    queue: OnceCell<AsyncFd<Watched>>,
    fd: OwnedFd,
    /// The first read is tried before waiting.
    eager: Cell<bool>,
}

/// Whether more bytes follow a write at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Bytes may follow later: send now.
    Wait,
    /// [`Stream::shutdown`] follows: the kernel may keep the bytes back until then, so that they and the FIN share a
    /// segment.
    Shutdown,
}

impl Stream {
    /// Takes a connected, non-blocking socket. `eager`: there may be something to read already.
    pub fn new(fd: OwnedFd, eager: bool) -> Self {
        Self { queue: OnceCell::new(), fd, eager: Cell::new(eager) }
    }

    /// Connects to `address`, with TCP_NODELAY for TCP.
    pub async fn connect(address: &Address) -> io::Result<Self> {
        let tcp = matches!(address, Address::Ip(_));
        let kind = Type::STREAM.nonblocking().cloexec();
        let socket = socket2::Socket::new(address.domain(), kind, None)?;
        if tcp {
            socket.set_tcp_nodelay(true)?;
        }
        let begun = socket.connect(&address.to_socket2()?);
        Self::connecting(socket.into(), begun).await
    }

    /// A stream of a socket whose non-blocking `connect` has just returned `begun`.
    pub(crate) async fn connecting(socket: OwnedFd, begun: io::Result<()>) -> io::Result<Self> {
        match begun {
            Ok(()) => Ok(Self::new(socket, false)),
            Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {
                Self::new(socket, false).connected().await
            }
            Err(e) => Err(e),
        }
    }

    /// On the same machine the connection is there before `connect` returns, although its result is "in progress".
    async fn connected(self) -> io::Result<Self> {
        if rustix::net::getpeername(&self.fd).is_ok() {
            return Ok(self);
        }
        // The guard keeps the readiness: it holds for the first write as well.
        self.queue()?.writable().await?.retain_ready();
        match SockRef::from(&self.fd).take_error()? {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    /// Waits until there is something to read, calls `make_room` and reads into the spare capacity of `buffer`.
    /// Returns the number of bytes read; 0 is the end of the stream. So a connection that waits needs no buffer.
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<io::Result<usize>> {
        self.poll_read_at_most(usize::MAX, cx, buffer, make_room)
    }

    /// As [`Self::poll_read`], but no more than `most` bytes.
    pub fn poll_read_at_most(
        &self,
        most: usize,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<io::Result<usize>> {
        if self.eager.take() {
            make_room(buffer);
            match self.receive(most, buffer) {
                Err(Errno::AGAIN) => self.poll_read_when_ready(most, cx, buffer, |_| {}),
                result => Poll::Ready(result.map_err(io::Error::from)),
            }
        } else {
            self.poll_read_when_ready(most, cx, buffer, make_room)
        }
    }

    fn poll_read_when_ready(
        &self,
        most: usize,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<io::Result<usize>> {
        let queue = self.queue()?;
        let mut ready = ready!(queue.poll_read_ready(cx))?;
        make_room(buffer);
        let room = most.min(buffer.capacity() - buffer.len());
        loop {
            match self.receive(most, buffer) {
                // A short read has emptied the socket; the next data makes a new event (epoll(7), edge-triggered).
                // The end of the stream keeps its readiness in any case.
                Ok(read) => {
                    if read < room {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(Errno::AGAIN) => {
                    ready.clear_ready();
                    ready = ready!(queue.poll_read_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Writes the front of `bytes` and returns how many bytes were taken.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8], then: Then) -> Poll<io::Result<usize>> {
        let more = if then == Then::Shutdown { SendFlags::MORE } else { SendFlags::empty() };
        loop {
            match rustix::io::retry_on_intr(|| rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL | more))
            {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(Errno::AGAIN) => ready!(self.queue()?.poll_write_ready(cx))?.clear_ready(),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Ready when the peer has reset the connection (a unix socket: closed it), so that nothing can reach it any more.
    /// Its FIN alone is no reason: it may wait for an answer. Reads nothing, and costs no system call.
    pub fn poll_reset(&self, cx: &mut Context<'_>) -> Poll<()> {
        let Ok(queue) = self.queue() else { return Poll::Pending };
        while let Ok(mut ready) = ready!(queue.poll_write_ready(cx)) {
            if ready.ready().is_write_closed() {
                break;
            }
            // Room to write is of no interest here, and is not needed: a write is tried before it is waited for.
            ready.clear_ready();
        }
        Poll::Ready(())
    }

    /// Sends FIN: no more bytes from us.
    pub fn shutdown(&self) {
        // It fails only when the peer is gone already, which the next read says better.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// Has the kernel watch the peer; nothing of a unix socket.
    pub fn set_liveness(&self, liveness: &Liveness) {
        // Where it cannot be set the connection is as good as without it: the deadlines of the caller hold.
        let _ = liveness.set(&self.fd);
    }

    /// Whether the peer has closed its side or the connection, also behind bytes that are not read yet. One system call.
    pub fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.fd, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Takes off the filter that it has from its listening socket. It lets all packets pass that come here, but costs a few
    /// instructions for each, and its program stays in memory.
    pub fn drop_syn_filter(&self) {
        // Where it stays it does no harm.
        let _ = SynFilter::detach(&self.fd);
    }

    /// Makes the close send RST instead of FIN (socket(7), SO_LINGER with zero).
    pub fn reset_on_close(&self) {
        let _ = SockRef::from(&self.fd).set_linger(Some(std::time::Duration::ZERO));
    }

    /// The local address; `None` for a unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SockRef::from(&self.fd).local_addr().ok().and_then(|address| address.as_socket())
    }

    /// The local address of a unix socket as in `sun_path`: a path, or a name behind a zero. Empty for others.
    pub fn local_path(&self) -> Vec<u8> {
        let Ok(address) = SockRef::from(&self.fd).local_addr() else { return Vec::new() };
        let path = address.as_pathname().map(|path| path.as_os_str().as_bytes().to_vec());
        let name = || address.as_abstract_namespace().map(|name| [&[0], name].concat());
        path.or_else(name).unwrap_or_default()
    }

    /// What the kernel knows of the connection, also after its end, until it is dropped.
    ///
    /// # Errors
    /// For a unix socket, and on kernels before Linux 4.6.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        TcpInfo::of(&self.fd)
    }

    fn receive(&self, most: usize, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        let length = buffer.len();
        let spare = buffer.spare_capacity_mut();
        let room = spare.len().min(most);
        let read = rustix::io::retry_on_intr(|| {
            let received = rustix::net::recv(&self.fd, &mut spare[..room], RecvFlags::empty());
            received.map(|((bytes, _), _)| bytes.len())
        })?;
        #[expect(unsafe_code, reason = "the safe way, the whole spare capacity, has no limit")]
        // SAFETY: so many bytes of the spare capacity, which begins at `length`, were received into.
        unsafe {
            buffer.set_len(length + read);
        }
        Ok(read)
    }

    fn queue(&self) -> io::Result<&AsyncFd<Watched>> {
        if let Some(queue) = self.queue.get() {
            return Ok(queue);
        }
        let queue = register(&self.fd, Interest::READABLE | Interest::WRITABLE)?;
        Ok(self.queue.get_or_init(|| queue))
    }
}

/// A descriptor in the event queue that somebody else owns.
#[derive(Debug)]
pub(crate) struct Watched(RawFd);

impl AsRawFd for Watched {
    fn as_raw_fd(&self) -> RawFd {
        self.0
    }
}

/// Puts `fd` into the event queue of the current thread's runtime. The caller has to drop the result before `fd`.
pub(crate) fn register(fd: &OwnedFd, interest: Interest) -> io::Result<AsyncFd<Watched>> {
    let watched = Watched(fd.as_fd().as_raw_fd());
    #[expect(
        unsafe_code,
        reason = "the safe constructors are deprecated as unsound for other descriptor types"
    )]
    // SAFETY: the number must name the same open descriptor until the `AsyncFd` is dropped. The callers, `Stream`,
    // `Listener`, `Timer` and the endpoints of `Datagrams`, keep both in one struct, the queue's field first, which is
    // therefore dropped first; none hands `fd` out or replaces it.
    let registered = unsafe { AsyncFd::register_with_interest(watched, interest) };
    registered.map_err(io::Error::from)
}
