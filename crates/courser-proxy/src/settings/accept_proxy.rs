//! Who has to send a PROXY header.

use std::net::{IpAddr, SocketAddr};

/// Sources that have to send a PROXY header. All others may not.
#[derive(Clone, Debug, Default)]
pub struct AcceptProxy {
    /// Networks: an address, and how many leading bits of it count.
    pub networks: Vec<(IpAddr, u8)>,
    /// Whoever connects to a unix socket of the listener.
    pub unix: bool,
}

impl AcceptProxy {
    /// Whether a peer has to send a header; `None` is one on a unix socket.
    pub fn expects(&self, peer: Option<SocketAddr>) -> bool {
        let contains =
            |ip: IpAddr| self.networks.iter().any(|(network, prefix)| is_in(ip, *network, *prefix));
        peer.map_or(self.unix, |peer| contains(peer.ip().to_canonical()))
    }
}

fn is_in(ip: IpAddr, network: IpAddr, prefix: u8) -> bool {
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (ip.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(prefix)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            (ip.to_bits() ^ network.to_bits()).leading_zeros() >= u32::from(prefix)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_the_addresses_of_its_prefix_and_no_others() {
        let networks = [("10.0.0.0", 24), ("192.0.2.7", 32), ("2001:db8::", 32)];
        let networks = networks.map(|(ip, prefix)| (ip.parse().unwrap(), prefix)).into();
        let accept = AcceptProxy { networks, unix: false };
        let expects = |peer: &str| accept.expects(Some(peer.parse().unwrap()));
        assert!(
            ["10.0.0.255:1", "192.0.2.7:1", "[2001:db8:1::1]:1", "[::ffff:10.0.0.9]:1"]
                .into_iter()
                .all(expects)
        );
        assert!(!["10.0.1.0:1", "192.0.2.6:1", "[2001:db9::1]:1", "[::a00:1]:1"].into_iter().any(expects));
        assert!(!accept.expects(None));
        assert!(AcceptProxy { networks: vec![("0.0.0.0".parse().unwrap(), 0)], unix: true }.expects(None));
    }
}
