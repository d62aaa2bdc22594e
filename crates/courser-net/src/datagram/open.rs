//! Opening the sockets: one for a host, and for a multicast group a second one beside it.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::sockopt;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, SockRef, Type};

use super::interface::Interface;

/// Asked of the kernel for each buffer: a second of 2,800 datagrams of full size. It gives at most
/// `net.core.rmem_max` and `wmem_max` unless we are root.
const BUFFER_BYTES: usize = 4 << 20;

/// Headers of IP and UDP: 20 or 40, and 8 bytes.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;

/// What paths are assumed to carry at most: larger frames of a local network seldom reach beyond it.
const LARGEST_MTU: usize = 1500;

/// What every path carries: RFC 8200, section 5, also taken for IPv4.
const SMALLEST_MTU: usize = 1280;

/// Where and how datagrams are received.
#[derive(Clone, Debug)]
pub struct DatagramSettings {
    /// An address of this host, or a multicast group, and the port.
    pub listen: SocketAddr,
    /// Where the multicast group is; the kernel's choice when there is none.
    pub interface: Option<Interface>,
    /// How many routers a datagram to a multicast group may pass, and one: 1 stays on the segment.
    pub hops: u8,
    /// Whether other processes on this machine receive what is sent to the multicast group (IP_MULTICAST_LOOP).
    pub same_machine: bool,
}

impl DatagramSettings {
    /// Zero leaves the choice to the kernel.
    fn interface_index(&self) -> u32 {
        self.interface.as_ref().map_or(0, |interface| interface.index)
    }
}

/// Open sockets that no thread serves yet.
#[derive(Debug)]
pub struct DatagramSocket {
    group: Option<(OwnedFd, Route)>,
    own: OwnedFd,
    address: SocketAddr,
}

#[derive(Debug)]
struct Route {
    /// Our address on it.
    from: SocketAddr,
    /// The longest packet that it carries whole.
    mtu: usize,
}

impl DatagramSocket {
    /// Opens the sockets. Port 0 takes a free port.
    ///
    /// A multicast group takes two: one bound to the group, which other processes may share (SO_REUSEADDR), and one
    /// bound to this host's address on the way there. The second one sends, so that others see an address that answers
    /// reach. It has the same port if that is free, else any.
    ///
    /// # Errors
    /// What failed, and what to do about it.
    pub fn open(settings: &DatagramSettings) -> Result<Self, DatagramError> {
        if settings.listen.ip().is_multicast() {
            Self::open_group(settings)
        } else {
            Self::open_own(settings)
        }
    }

    fn open_own(settings: &DatagramSettings) -> Result<Self, DatagramError> {
        let failed = DatagramError::at(Step::Bind(settings.listen));
        let own = bound(settings.listen).map_err(&failed)?;
        let address = local_address(&SockRef::from(&own)).map_err(&failed)?;
        Ok(Self { group: None, own: own.into(), address })
    }

    fn open_group(settings: &DatagramSettings) -> Result<Self, DatagramError> {
        let no_way = DatagramError::at(Step::Route(settings.listen));
        let not_joined = DatagramError::at(Step::Join(settings.listen));
        let route = Route::to(settings.listen, settings).map_err(&no_way)?;
        let group = joined(settings).map_err(&not_joined)?;
        let address = local_address(&SockRef::from(&group)).map_err(&not_joined)?;
        let beside = |port| bound(with_port(route.from, port));
        let own = beside(address.port())
            .or_else(|_| beside(0))
            .map_err(DatagramError::at(Step::Bind(route.from)))?;
        send_through(&own, settings).map_err(&no_way)?;
        Ok(Self { group: Some((group.into(), route)), own: own.into(), address })
    }

    /// Takes over what [`descriptors`](Self::descriptors) of another process were opened with the same settings.
    ///
    /// # Errors
    /// Where they are something else.
    pub fn adopt(settings: &DatagramSettings, mut descriptors: Vec<OwnedFd>) -> Result<Self, DatagramError> {
        let failed = DatagramError::at(Step::Bind(settings.listen));
        let wrong = || failed(io::ErrorKind::InvalidInput.into());
        let own = descriptors.pop().ok_or_else(wrong)?;
        let group = descriptors.pop();
        if group.is_some() != settings.listen.ip().is_multicast() {
            return Err(wrong());
        }
        let address = local_address(&SockRef::from(group.as_ref().unwrap_or(&own))).map_err(&failed)?;
        if address.ip() != settings.listen.ip() || ![0, address.port()].contains(&settings.listen.port()) {
            return Err(wrong());
        }
        let route = |group| Ok((group, Route::to(settings.listen, settings)?));
        let group = group.map(route).transpose().map_err(DatagramError::at(Step::Route(settings.listen)))?;
        Ok(Self { group, own, address })
    }

    /// Further descriptors of it, for another process.
    ///
    /// # Errors
    /// Without descriptors.
    pub fn descriptors(&self) -> io::Result<Vec<OwnedFd>> {
        self.group.iter().map(|(group, _)| group).chain([&self.own]).map(OwnedFd::try_clone).collect()
    }

    /// Where it receives, with the real port: the group's address if there is one.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that others see, as far as it is known: it may be unspecified.
    ///
    /// # Errors
    /// The kernel's.
    pub fn source(&self) -> io::Result<SocketAddr> {
        local_address(&SockRef::from(&self.own))
    }

    /// How many bytes of datagrams and their book-keeping the kernel keeps until they are received. It gives less than
    /// [4 MiB](BUFFER_BYTES) where `net.core.rmem_max` is smaller.
    ///
    /// # Errors
    /// The kernel's.
    pub fn receive_buffer(&self) -> io::Result<usize> {
        // The kernel doubles what is set, and returns the double (socket(7)).
        Ok(SockRef::from(&self.own).recv_buffer_size()? / 2)
    }

    /// The longest payload that reaches the group, or else each of `peers`, in one piece: 1472 bytes (IPv6: 1452), or
    /// less where the way there carries less. An address without a route yet has no limit.
    pub fn payload_limit(&self, peers: &[SocketAddr]) -> usize {
        let alone = DatagramSettings { listen: self.address, interface: None, hops: 1, same_machine: false };
        let measured = peers.iter().filter_map(|&peer| Route::to(peer, &alone).ok()).map(|route| route.mtu);
        let mtu = match &self.group {
            Some((_, route)) => route.mtu,
            None => measured.min().unwrap_or(LARGEST_MTU),
        };
        let headers = if self.address.is_ipv4() { HEADERS_V4 } else { HEADERS_V6 };
        mtu.clamp(SMALLEST_MTU, LARGEST_MTU) - headers
    }

    pub(super) fn into_descriptors(self) -> (Option<OwnedFd>, OwnedFd) {
        (self.group.map(|(group, _)| group), self.own)
    }
}

impl Route {
    /// Asks the kernel by connecting a socket that sends nothing.
    fn to(target: SocketAddr, settings: &DatagramSettings) -> io::Result<Self> {
        let socket = datagram_socket(target)?;
        if target.ip().is_multicast() {
            send_through(&socket, settings)?;
        }
        socket.connect(&with_scope(target, settings).into())?;
        let mtu = if target.is_ipv4() { sockopt::ip_mtu(&socket) } else { sockopt::ipv6_mtu(&socket) }?;
        let from = local_address(&SockRef::from(&socket))?;
        Ok(Self { from, mtu: usize::try_from(mtu).unwrap_or(LARGEST_MTU) })
    }
}

fn datagram_socket(family_of: SocketAddr) -> io::Result<socket2::Socket> {
    let kind = Type::DGRAM.nonblocking().cloexec();
    socket2::Socket::new(Domain::for_address(family_of), kind, Some(Protocol::UDP))
}

fn bound(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = datagram_socket(address)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    widen(&socket)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A socket that hears the group on that one interface.
fn joined(settings: &DatagramSettings) -> io::Result<socket2::Socket> {
    let group = with_scope(settings.listen, settings);
    let socket = datagram_socket(group)?;
    socket.set_reuse_address(true)?;
    widen(&socket)?;
    socket.bind(&group.into())?;
    // Without MULTICAST_ALL we hear what we have joined; with it, what any process has joined on any interface (ip(7)).
    match group.ip() {
        IpAddr::V4(address) => {
            socket.set_multicast_all_v4(false)?;
            socket
                .join_multicast_v4_n(&address, &InterfaceIndexOrAddress::Index(settings.interface_index()))?;
        }
        IpAddr::V6(address) => {
            socket.set_multicast_all_v6(false)?;
            socket.join_multicast_v6(&address, settings.interface_index())?;
        }
    }
    Ok(socket)
}

/// Makes what `socket` sends to a group go by the interface of the settings.
fn send_through(socket: &socket2::Socket, settings: &DatagramSettings) -> io::Result<()> {
    let (index, hops, loops) = (settings.interface_index(), u32::from(settings.hops), settings.same_machine);
    if settings.listen.is_ipv4() {
        let any = Ipv4Addr::UNSPECIFIED;
        sockopt::set_ip_multicast_if_with_ifindex(socket, &any, &any, index)?;
        socket.set_multicast_ttl_v4(hops)?;
        socket.set_multicast_loop_v4(loops)
    } else {
        socket.set_multicast_if_v6(index)?;
        socket.set_multicast_hops_v6(hops)?;
        socket.set_multicast_loop_v6(loops)
    }
}

/// A group of one link (`ff02::…`) is nothing without its interface.
fn with_scope(mut address: SocketAddr, settings: &DatagramSettings) -> SocketAddr {
    if let SocketAddr::V6(v6) = &mut address
        && v6.scope_id() == 0
    {
        v6.set_scope_id(settings.interface_index());
    }
    address
}

fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// Larger buffers; beyond the machine's limit only with the privilege to (socket(7), SO_RCVBUFFORCE).
fn widen(socket: &socket2::Socket) -> io::Result<()> {
    sockopt::set_socket_recv_buffer_size_force(socket, BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, BUFFER_BYTES))?;
    sockopt::set_socket_send_buffer_size_force(socket, BUFFER_BYTES)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, BUFFER_BYTES))?;
    Ok(())
}

fn local_address(socket: &SockRef<'_>) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Why there is no socket.
#[derive(Debug)]
pub struct DatagramError {
    step: Step,
    error: io::Error,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Bind(SocketAddr),
    Route(SocketAddr),
    Join(SocketAddr),
}

impl DatagramError {
    fn at(step: Step) -> impl Fn(io::Error) -> Self {
        move |error| Self { step, error }
    }

    /// What to do about it, where that is known.
    fn hint(&self) -> &'static str {
        match (self.step, Errno::from_io_error(&self.error)) {
            (Step::Bind(_), Some(Errno::ADDRNOTAVAIL)) => ": it is no address of this host",
            (Step::Bind(_) | Step::Join(_), Some(Errno::ADDRINUSE)) => ": another process receives there",
            (Step::Route(_), _) => ": name the interface, or add a route",
            (Step::Join(_), Some(Errno::NODEV)) => ": name the interface",
            _ => "",
        }
    }
}

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Step::Bind(address) => write!(f, "cannot receive datagrams on {address}"),
            Step::Route(group) => write!(f, "no way to the multicast group {group}"),
            Step::Join(group) => write!(f, "cannot join the multicast group {group}"),
        }?;
        write!(f, "{} ({})", self.hint(), self.error)
    }
}

impl std::error::Error for DatagramError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
