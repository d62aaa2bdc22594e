//! What the fleet's thread knows and has counted.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use courser_fleet::{MemberId, Status};
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
    /// How long the fleet's thread has run.
    pub age: Duration,
}

/// Peers are known by then, as far as they are there: three heartbeats.
const ACQUAINTED: Duration = Duration::from_secs(3);

impl FleetStatus {
    /// Who may be asked by a certificate authority and is not among these, for people.
    pub(super) fn without(&self, acknowledged: &HashSet<MemberId>) -> Vec<String> {
        let peers = &self.member.peers;
        let late = peers.iter().filter(|peer| !acknowledged.contains(&peer.id)).map(|peer| {
            let (label, address) = (peer.label(), peer.address);
            match peer.is_silent {
                true => format!("{label} ({address}) is not heard"),
                false => format!("{label} ({address}) does not say that it answers"),
            }
        });
        let is_unheard = |address: &&SocketAddr| {
            !address.ip().is_multicast() && peers.iter().all(|peer| peer.address != **address)
        };
        let unheard = self.peers.iter().filter(is_unheard);
        let unheard = unheard.map(|address| format!("{address} was not heard since the start"));
        let young = (self.age < ACQUAINTED).then(|| "this host does not know its peers yet".to_owned());
        late.chain(unheard).chain(young).collect()
    }
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
