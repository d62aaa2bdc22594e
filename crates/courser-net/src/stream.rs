//! A non-blocking byte stream, TCP or unix, in a worker's runtime.

use std::cell::{Cell, OnceCell};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use socket2::{MaybeUninitSlice, SockRef, Type};
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

/// Where a read puts its bytes: pieces with room around each.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    /// Zeros before a piece, bytes.
    pub before: usize,
    /// Length of a piece, bytes; the last may be shorter.
    pub length: usize,
    /// Zeros behind a piece that another follows, bytes.
    pub after: usize,
    /// Pieces at most, up to [`Pieces::MOST`].
    pub count: usize,
}

impl Pieces {
    /// Most pieces of a read.
    pub const MOST: usize = 4;

    /// Room for all of them, bytes.
    pub fn room(&self) -> usize {
        self.count * (self.before + self.length + self.after)
    }
}

/// Result of a read.
struct Received {
    bytes: usize,
    /// Less than there was room for.
    is_short: bool,
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
        self.poll_receive(cx, buffer, make_room, Self::receive)
    }

    /// As [`Self::poll_read`], but what is read goes into `pieces` with room around each. `make_room` has to leave spare
    /// capacity for all of them.
    pub fn poll_read_pieces(
        &self,
        pieces: Pieces,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<io::Result<usize>> {
        self.poll_receive(cx, buffer, make_room, |stream, buffer| stream.receive_pieces(pieces, buffer))
    }

    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
        receive: impl Fn(&Self, &mut Vec<u8>) -> Result<Received, Errno>,
    ) -> Poll<io::Result<usize>> {
        if self.eager.take() {
            make_room(buffer);
            match receive(self, buffer) {
                Err(Errno::AGAIN) => self.poll_receive_when_ready(cx, buffer, |_| {}, receive),
                result => Poll::Ready(result.map(|received| received.bytes).map_err(io::Error::from)),
            }
        } else {
            self.poll_receive_when_ready(cx, buffer, make_room, receive)
        }
    }

    fn poll_receive_when_ready(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        make_room: impl FnOnce(&mut Vec<u8>),
        receive: impl Fn(&Self, &mut Vec<u8>) -> Result<Received, Errno>,
    ) -> Poll<io::Result<usize>> {
        let queue = self.queue()?;
        let mut ready = ready!(queue.poll_read_ready(cx))?;
        make_room(buffer);
        loop {
            match receive(self, buffer) {
                // A short read has emptied the socket; the next data makes a new event (epoll(7), edge-triggered).
                // The end of the stream keeps its readiness in any case.
                Ok(Received { bytes, is_short }) => {
                    if is_short {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(bytes));
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

    fn receive(&self, buffer: &mut Vec<u8>) -> Result<Received, Errno> {
        let room = buffer.capacity() - buffer.len();
        let bytes = rustix::io::retry_on_intr(|| {
            rustix::net::recv(&self.fd, spare_capacity(buffer), RecvFlags::empty()).map(|(bytes, _)| bytes)
        })?;
        Ok(Received { bytes, is_short: bytes < room })
    }

    fn receive_pieces(&self, pieces: Pieces, buffer: &mut Vec<u8>) -> Result<Received, Errno> {
        let Pieces { before, length, after, count } = pieces;
        let mut places: [_; Pieces::MOST] = std::array::from_fn(|_| MaybeUninitSlice::new(&mut []));
        let (mut prepared, mut room) = (0, 0);
        let spare = buffer.spare_capacity_mut().chunks_exact_mut(before + length + after);
        for (place, spare) in places.iter_mut().zip(spare).take(count) {
            let (front, spare) = spare.split_at_mut(before);
            let (piece, back) = spare.split_at_mut(length);
            front.fill(MaybeUninit::new(0));
            back.fill(MaybeUninit::new(0));
            *place = MaybeUninitSlice::new(piece);
            (prepared, room) = (prepared + 1, room + length);
        }
        let socket = SockRef::from(&self.fd);
        let bytes = loop {
            match socket.recv_vectored(&mut places[..prepared]) {
                Ok((bytes, _)) => break bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
            }
        };
        let full = bytes.saturating_sub(1) / length;
        let added = if bytes == 0 { 0 } else { full * (before + after) + before + bytes };
        let length = buffer.len() + added;
        #[expect(unsafe_code, reason = "no safe way reads into several places that nothing has written")]
        // SAFETY: `prepared` pieces, of which `full + 1` have been received into in turn, and all the room around them, were
        // written from the buffer's end on: up to the last byte that was received there is no gap.
        unsafe {
            buffer.set_len(length);
        }
        Ok(Received { bytes, is_short: bytes < room })
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
