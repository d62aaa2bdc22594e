//! Messages with descriptors between a process and the one that it starts (SCM_RIGHTS, unix(7)): a pair of sockets, of which the
//! other process has one end as its standard input, and nothing else of ours.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::cmsg_space;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair, sockopt,
};
use socket2::SockRef;

/// Descriptors that the kernel passes with one message (SCM_MAX_FD).
pub const MOST_DESCRIPTORS: usize = 253;

/// The longest message in bytes: as many names as there may be descriptors.
pub const LONGEST: usize = 128 * 1024;

/// One end.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

/// What came.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub bytes: Vec<u8>,
    /// What came with it.
    pub descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Two ends, both of which are closed on exec(2): the second one is for the standard input of a process.
    ///
    /// # Errors
    /// Without descriptors or memory.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(kind.0, kind.1, kind.2, None)?;
        for end in [&ours, &theirs] {
            // Twice: the kernel counts its own records too.
            SockRef::from(end).set_send_buffer_size(2 * LONGEST)?;
        }
        Ok((Self { socket: ours }, theirs))
    }

    /// The end that this process was started with as its standard input, which is empty from then on.
    ///
    /// # Errors
    /// Where its standard input is something else.
    pub fn from_stdin() -> io::Result<Self> {
        let stdin = io::stdin();
        if sockopt::socket_type(&stdin)? != SocketType::SEQPACKET {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let socket = stdin.as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self { socket })
    }

    /// The end whose descriptor another process has handed over.
    pub fn from_descriptor(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// The process at the other end, as the kernel knows it.
    ///
    /// # Errors
    /// As of getsockopt(2).
    pub fn peer(&self) -> io::Result<i32> {
        Ok(sockopt::socket_peercred(&self.socket)?.pid.as_raw_pid())
    }

    /// How long [`Self::send`] and [`Self::receive`] wait.
    ///
    /// # Errors
    /// As of setsockopt(2).
    pub fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        let socket = SockRef::from(&self.socket);
        socket.set_read_timeout(Some(limit)).and_then(|()| socket.set_write_timeout(Some(limit)))
    }

    /// Sends a message that is not empty, with at most [`MOST_DESCRIPTORS`].
    ///
    /// # Errors
    /// `BrokenPipe` where the other end is closed, `TimedOut` where it takes nothing.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut rights = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !rights.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too many descriptors in one message"));
        }
        let sent = sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut rights, SendFlags::NOSIGNAL);
        sent.map(drop).map_err(timed_out)
    }

    /// Waits for the next message; `None` where the other end is closed.
    ///
    /// # Errors
    /// `TimedOut`; `InvalidData` where a part of a message or of its descriptors did not arrive.
    pub fn receive(&self) -> io::Result<Option<Received>> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut rights = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = vec![0; LONGEST];
        let room = &mut [IoSliceMut::new(&mut bytes)];
        let received = match recvmsg(&self.socket, room, &mut rights, RecvFlags::CMSG_CLOEXEC) {
            // It was closed with something unread in it.
            Err(Errno::CONNRESET) => return Ok(None),
            received => received.map_err(timed_out)?,
        };
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            // CTRUNC: this process has no descriptor left for them.
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a part of the message is missing"));
        }
        bytes.truncate(received.bytes);
        let descriptors = rights.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors = descriptors.flatten().collect();
        Ok((received.bytes > 0).then_some(Received { bytes, descriptors }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn timed_out(error: Errno) -> io::Error {
    if error == Errno::AGAIN { io::ErrorKind::TimedOut.into() } else { error.into() }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn pair() -> (Channel, Channel) {
        let (one, other) = Channel::pair().unwrap();
        (one, Channel::from_descriptor(other))
    }

    #[test]
    fn a_listening_socket_goes_over_with_its_queue() {
        let (one, other) = pair();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        one.send(b"web", &[listener.as_fd()]).unwrap();
        drop(listener);
        let Received { bytes, mut descriptors } = other.receive().unwrap().unwrap();
        assert_eq!(bytes, b"web");
        let (_, peer) = TcpListener::from(descriptors.remove(0)).accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    }

    #[test]
    fn as_many_descriptors_as_the_kernel_passes_arrive_with_the_longest_message() {
        let (one, other) = pair();
        let file = File::open("/dev/null").unwrap();
        let descriptors = vec![file.as_fd(); MOST_DESCRIPTORS];
        one.send(&vec![b'x'; LONGEST], &descriptors).unwrap();
        let received = other.receive().unwrap().unwrap();
        assert_eq!((received.bytes.len(), received.descriptors.len()), (LONGEST, MOST_DESCRIPTORS));
        assert!(one.send(b"x", &vec![file.as_fd(); MOST_DESCRIPTORS + 1]).is_err());
    }

    #[test]
    fn the_end_and_silence_are_told_apart() {
        let (one, other) = pair();
        other.set_timeout(Duration::from_millis(10)).unwrap();
        assert_eq!(other.receive().unwrap_err().kind(), io::ErrorKind::TimedOut);
        one.send(b"last", &[]).unwrap();
        drop(one);
        assert_eq!(other.receive().unwrap().unwrap().bytes, b"last");
        assert!(other.receive().unwrap().is_none());
        assert_eq!(other.send(b"x", &[]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }
}
