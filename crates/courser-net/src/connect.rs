//! Connecting as one of very many clients: from a chosen address, in as few system calls as it takes, and with a
//! failure that says what ran out.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

use crate::stream::Stream;

/// How a client's TCP connections are made. Closing is the stream's affair: see [`Stream::reset_on_close`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connector {
    /// Local address to connect from; the kernel's choice when there is none. The local port is chosen for the pair
    /// of addresses and the remote port (ip(7), IP_BIND_ADDRESS_NO_PORT): each remote address and port has the whole
    /// range of local ports from each source.
    pub source: Option<IpAddr>,
    /// TCP_NODELAY: a small write does not wait for the acknowledgement of the one before (Nagle's algorithm).
    pub nodelay: bool,
}

impl Connector {
    /// Connects to `target`. It has no time limit of its own; dropping the future gives the attempt up and closes the
    /// socket.
    ///
    /// # Errors
    /// What ran out or who refused; with the kernel's error number.
    pub async fn connect(&self, target: SocketAddr) -> Result<Stream, ConnectError> {
        let socket = self.open(target).map_err(|errno| ConnectError::at(Step::Socket, errno.into()))?;
        if let Some(source) = self.source {
            bind(&socket, source).map_err(|error| ConnectError::at(Step::Bind, error))?;
        }
        let begun = rustix::net::connect(&socket, &target).map_err(io::Error::from);
        Stream::connecting(socket, begun).await.map_err(|error| ConnectError::at(Step::Connect, error))
    }

    fn open(&self, target: SocketAddr) -> rustix::io::Result<OwnedFd> {
        let family = if target.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        if self.nodelay {
            sockopt::set_tcp_nodelay(&socket, true)?;
        }
        Ok(socket)
    }
}

fn bind(socket: &OwnedFd, source: IpAddr) -> io::Result<()> {
    choose_port_at_connect(socket)?;
    Ok(rustix::net::bind(socket, &SocketAddr::new(source, 0))?)
}

/// Without it `bind` takes a local port for all remote addresses at once, and they run out with the first one.
fn choose_port_at_connect(socket: &OwnedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let length = size_of_val(&on).try_into().expect("four bytes");
    #[expect(unsafe_code, reason = "none of the libraries here has this option")]
    // SAFETY: the kernel reads `length` bytes from the pointer, which are those of `on`, alive and initialised for the
    // whole call; the descriptor is borrowed from `socket`, which is open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Why there is no connection.
#[derive(Debug)]
pub struct ConnectError {
    kind: ConnectErrorKind,
    error: io::Error,
}

/// Kinds of failure that want different advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConnectErrorKind {
    /// This process or this machine has no descriptor left (EMFILE, ENFILE).
    NoDescriptor,
    /// The source is no address of this machine (EADDRNOTAVAIL from bind), or of the other family.
    BadSource,
    /// Every local port towards this target is taken, by connections or by TIME_WAIT (EADDRNOTAVAIL from connect).
    NoLocalPort,
    /// The target answered with a reset: it has no listener, or its queue is full and it refuses (ECONNREFUSED,
    /// ECONNRESET).
    Refused,
    /// The kernel gave up asking (ETIMEDOUT); most callers have lost patience long before.
    TimedOut,
    /// No way to the network or host (ENETUNREACH, EHOSTUNREACH and the like).
    Unreachable,
    /// A firewall of this machine forbids it (EACCES, EPERM).
    Forbidden,
    /// The kernel is out of memory for sockets (ENOBUFS, ENOMEM).
    NoMemory,
    /// Anything else.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Socket,
    Bind,
    Connect,
}

impl ConnectError {
    fn at(step: Step, error: io::Error) -> Self {
        Self { kind: ConnectErrorKind::of(step, Errno::from_io_error(&error)), error }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> ConnectErrorKind {
        self.kind
    }

    /// The kernel's error number (errno(3)).
    pub fn raw_os_error(&self) -> Option<i32> {
        self.error.raw_os_error()
    }
}

impl ConnectErrorKind {
    fn of(step: Step, errno: Option<Errno>) -> Self {
        match errno {
            Some(Errno::MFILE | Errno::NFILE) => Self::NoDescriptor,
            Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT | Errno::INVAL) if step == Step::Bind => {
                Self::BadSource
            }
            Some(Errno::ADDRNOTAVAIL) => Self::NoLocalPort,
            Some(Errno::CONNREFUSED | Errno::CONNRESET) => Self::Refused,
            Some(Errno::TIMEDOUT) => Self::TimedOut,
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN | Errno::HOSTDOWN) => {
                Self::Unreachable
            }
            Some(Errno::ACCESS | Errno::PERM) => Self::Forbidden,
            Some(Errno::NOBUFS | Errno::NOMEM) => Self::NoMemory,
            _ => Self::Other,
        }
    }

    /// What happened, whose side it is on, and what to do about it.
    fn explanation(self) -> &'static str {
        match self {
            Self::NoDescriptor => "no file descriptor left here: raise the limit of open files (ulimit -n)",
            Self::BadSource => {
                "the source address is not this machine's: add it to an interface, or name another"
            }
            Self::NoLocalPort => {
                "no local port left towards this target: widen net.ipv4.ip_local_port_range, use more source \
                 addresses, or close with a reset"
            }
            Self::Refused => "refused by the target: is anything listening there?",
            Self::TimedOut => "no answer from the target",
            Self::Unreachable => "no way to the target from here: check address and route",
            Self::Forbidden => "forbidden on this machine: check its firewall",
            Self::NoMemory => "no memory for sockets here: see net.ipv4.tcp_mem",
            Self::Other => "cannot connect",
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind.explanation(), self.error)
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        error.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_ours_is_no_lack_of_ports() {
        let of = |step| ConnectErrorKind::of(step, Some(Errno::ADDRNOTAVAIL));
        assert_eq!(of(Step::Bind), ConnectErrorKind::BadSource);
        assert_eq!(of(Step::Connect), ConnectErrorKind::NoLocalPort);
    }

    #[test]
    fn what_ran_out_is_told_apart() {
        let of = |errno| ConnectErrorKind::of(Step::Connect, Some(errno));
        assert_eq!(of(Errno::MFILE), ConnectErrorKind::NoDescriptor);
        assert_eq!(of(Errno::NETUNREACH), ConnectErrorKind::Unreachable);
        assert_eq!(of(Errno::TIMEDOUT), ConnectErrorKind::TimedOut);
        assert_eq!(ConnectErrorKind::of(Step::Connect, None), ConnectErrorKind::Other);
    }

    #[test]
    fn the_number_of_the_kernel_is_kept() {
        let error = ConnectError::at(Step::Connect, Errno::CONNREFUSED.into());
        assert_eq!(error.raw_os_error(), Some(Errno::CONNREFUSED.raw_os_error()));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::ConnectionRefused);
    }
}
