//! A non-blocking byte stream, TCP or unix, in a worker's runtime.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use socket2::{SockRef, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::address::Address;

/// A connected socket. Reads wait for readiness first; writes are tried first, since they nearly always succeed.
#[derive(Debug)]
pub struct Stream {
    fd: AsyncFd<OwnedFd>,
}

impl Stream {
    /// Registers a connected, non-blocking socket with the current thread's runtime.
    pub fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { fd: register(fd, Interest::READABLE | Interest::WRITABLE)? })
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
        let stream = Self::new(socket.into())?;
        match begun {
            Ok(()) => Ok(stream),
            Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => stream.connected().await,
            Err(e) => Err(e),
        }
    }

    async fn connected(self) -> io::Result<Self> {
        // The guard keeps the readiness: it holds for the first write as well.
        self.fd.writable().await?.retain_ready();
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
        let mut ready = ready!(self.fd.poll_read_ready(cx))?;
        make_room(buffer);
        let room = buffer.capacity() - buffer.len();
        loop {
            match rustix::net::recv(self.fd.as_fd(), spare_capacity(buffer), RecvFlags::empty()) {
                // A short read has emptied the socket; the next data makes a new event (epoll(7), edge-triggered).
                // The end of the stream keeps its readiness in any case.
                Ok((read, _)) => {
                    if read < room {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(Errno::AGAIN) => {
                    ready.clear_ready();
                    ready = ready!(self.fd.poll_read_ready(cx))?;
                }
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Writes the front of `bytes` and returns how many bytes were taken.
    pub fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            match rustix::net::send(self.fd.as_fd(), bytes, SendFlags::NOSIGNAL) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(Errno::AGAIN) => ready!(self.fd.poll_write_ready(cx))?.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Sends FIN: no more bytes from us.
    pub fn shutdown(&self) {
        // It fails only when the peer is gone already, which the next read says better.
        let _ = rustix::net::shutdown(self.fd.as_fd(), Shutdown::Write);
    }

    /// Makes the close send RST instead of FIN (socket(7), SO_LINGER with zero).
    pub fn reset_on_close(&self) {
        let _ = SockRef::from(&self.fd).set_linger(Some(std::time::Duration::ZERO));
    }

    /// The local address; `None` for a unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SockRef::from(&self.fd).local_addr().ok().and_then(|address| address.as_socket())
    }
}

/// Registers `fd` with the current thread's runtime.
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, and an `AsyncFd` deregisters before it
    // drops what it holds. Nothing here replaces the descriptor (`get_mut` is never called).
    #[allow(
        unsafe_code,
        reason = "the safe constructors are deprecated as unsound for other descriptor types"
    )]
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    registered.map_err(io::Error::from)
}
