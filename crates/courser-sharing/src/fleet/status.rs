//! What the fleet's thread knows and has counted.

use std::net::SocketAddr;

use courser_fleet::Status;
use courser_net::datagram::{Unsent, UnsentKind};

/// Status of the fleet, as this host sees it.
#[derive(Clone, Debug)]
pub struct FleetStatus {
    /// The member's own account: its peers, what came, what was refused and why.
    pub member: Status,
    /// Where it receives: an address of this host, or the multicast group.
    pub address: SocketAddr,
    /// Its receivers: the configured peers, or the multicast group.
    pub peers: Vec<SocketAddr>,
    /// The longest payload of a datagram, in bytes.
    pub max_payload: usize,
    /// Bytes that the kernel keeps until they are received.
    pub receive_buffer: usize,
    /// Datagrams that could not be sent, one to several peers counted for each.
    pub unsent: UnsentCounts,
    /// Failed attempts to receive.
    pub receive_errors: u64,
    /// Requests of workers that were dropped because too many were waiting.
    pub dropped: u64,
    /// Sessions that connections are waiting for.
    pub waiting: usize,
}

/// Datagrams that could not be sent, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsentCounts {
    /// The send buffer or the interface's queue was full.
    pub send_buffer_full: u64,
    /// No route, no listener, or forbidden by a firewall of this host.
    pub unreachable: u64,
    /// Longer than the way there carries.
    pub datagram_too_large: u64,
    /// Anything else.
    pub other: u64,
}

impl UnsentCounts {
    pub(super) fn count(&mut self, unsent: &Unsent) {
        *match unsent.kind {
            UnsentKind::NoRoom => &mut self.send_buffer_full,
            UnsentKind::Unreachable => &mut self.unreachable,
            UnsentKind::TooLong => &mut self.datagram_too_large,
            UnsentKind::Other => &mut self.other,
        } += 1;
    }
}
