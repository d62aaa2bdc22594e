//! Datagrams as they were received, several in one system call (recvmmsg(2)). The only part of the datagrams that
//! needs `unsafe`: none of the libraries here has the call.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{mem, ptr};

use rustix::io::Errno;
use socket2::{SockAddr, SockAddrStorage};

const DATAGRAMS: usize = 32;

/// Room for each: more than fits in an Ethernet frame. What is longer is cut.
const ROOM: usize = 2048;

/// Room for datagrams, and those that are in it.
pub struct Batch {
    bytes: Box<[[u8; ROOM]]>,
    /// Whence, and how long.
    received: Vec<(SocketAddr, usize)>,
}

impl Default for Batch {
    fn default() -> Self {
        let bytes = vec![[0; ROOM]; DATAGRAMS].into_boxed_slice();
        Self { bytes, received: Vec::with_capacity(DATAGRAMS) }
    }
}

impl Batch {
    /// What was received: the source, and the bytes, which the caller may change.
    pub fn datagrams(&mut self) -> impl ExactSizeIterator<Item = (SocketAddr, &mut [u8])> {
        let received = self.received.iter().zip(&mut self.bytes);
        received.map(|(&(from, len), bytes)| (from, &mut bytes[..len]))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.received.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.received.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.received.len() == DATAGRAMS
    }

    pub(super) fn clear(&mut self) {
        self.received.clear();
    }

    /// Appends what `socket` has, as far as there is room. Does not wait.
    pub(super) fn fill(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        let room = &mut self.bytes[self.received.len()..];
        receive(socket, room, |source, len| self.received.push((source, len)))
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Batch({} of {DATAGRAMS})", self.len())
    }
}

/// Receives up to one datagram for each of `room`, and returns the source and length of each.
fn receive(
    socket: &OwnedFd,
    room: &mut [[u8; ROOM]],
    mut received: impl FnMut(SocketAddr, usize),
) -> Result<(), Errno> {
    let mut sources = std::array::from_fn::<_, DATAGRAMS, _>(|_| SockAddrStorage::zeroed());
    let mut vectors = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; DATAGRAMS];
    #[expect(unsafe_code, reason = "some of its fields are private on some platforms")]
    // SAFETY: integers and pointers, all of which may be zero.
    let mut headers: [libc::mmsghdr; DATAGRAMS] = unsafe { mem::zeroed() };
    for (((bytes, vector), source), header) in
        room.iter_mut().zip(&mut vectors).zip(&mut sources).zip(&mut headers)
    {
        *vector = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: ROOM };
        header.msg_hdr.msg_iov = vector;
        header.msg_hdr.msg_iovlen = 1;
        header.msg_hdr.msg_namelen = source.size_of();
        header.msg_hdr.msg_name = ptr::from_mut(source).cast();
    }
    let count = call(socket, &mut headers[..room.len().min(DATAGRAMS)])?;
    for (header, source) in headers.iter().zip(sources).take(count) {
        received(address(source, header.msg_hdr.msg_namelen), header.msg_len as usize);
    }
    Ok(())
}

/// recvmmsg(2), without waiting.
fn call(socket: &OwnedFd, headers: &mut [libc::mmsghdr]) -> Result<usize, Errno> {
    let count = headers.len().try_into().expect("a few");
    let received = rustix::io::retry_on_intr(|| {
        #[expect(unsafe_code, reason = "none of the libraries here has this call")]
        // SAFETY: the kernel writes through the pointers in the first `count` headers, which `receive` has pointed at
        // one buffer, one vector and one address each, with their true lengths, all alive and borrowed for the whole
        // call; no timeout is given; the descriptor is borrowed from `socket`, which is open.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                headers.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        usize::try_from(result).map_err(|_| last_error())
    })?;
    Ok(received)
}

fn last_error() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

fn address(source: SockAddrStorage, len: libc::socklen_t) -> SocketAddr {
    #[expect(unsafe_code, reason = "the address is what the kernel has written")]
    // SAFETY: `source` was zeroed, and the kernel has written an address of its socket's family into the first `len`
    // bytes, at most its size.
    let source = unsafe { SockAddr::new(source, len) };
    // The sockets here are Internet sockets, which receive from no other address.
    source.as_socket().unwrap_or(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0))
}
