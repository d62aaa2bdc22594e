//! What keeps a client at its server: the key that courser-balance chooses by.

use std::net::IpAddr;

use courser_balance::AffinityKey;

/// What the key of a connection is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The first bits of the client's address.
    Source {
        /// Of an IPv4 address.
        v4: u8,
        /// Of an IPv6 address.
        v6: u8,
    },
    /// The server name that the client asks for.
    ServerName,
    /// The public key of the client's certificate.
    ClientCertificate,
    /// The session that a relayed client resumes, by its ID.
    Session,
}

/// The key of an address without the bits beyond its prefix. An IPv4 client has the same one at a socket that speaks IPv6.
pub(crate) fn of_network(address: IpAddr, v4: u8, v6: u8) -> AffinityKey {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(v4)).unwrap_or(0);
            AffinityKey::of(&(ip.to_bits() & mask).to_be_bytes())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(v6)).unwrap_or(0);
            AffinityKey::of(&(ip.to_bits() & mask).to_be_bytes())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_one_network(a: &str, b: &str, v4: u8, v6: u8) -> bool {
        let key = |text: &str| of_network(text.parse().expect("an address"), v4, v6);
        key(a) == key(b)
    }

    #[test]
    fn addresses_of_one_prefix_have_one_key() {
        assert!(is_one_network("192.0.2.1", "192.0.2.200", 24, 64));
        assert!(!is_one_network("192.0.2.1", "192.0.3.1", 24, 64));
        assert!(!is_one_network("192.0.2.1", "192.0.2.2", 32, 64));
        assert!(is_one_network("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", 32, 64));
        assert!(!is_one_network("2001:db8:1:2::1", "2001:db8:1:3::1", 32, 64));
        assert!(is_one_network("2001:db8:1:2::1", "2001:db8:1:3::1", 32, 56));
        assert!(!is_one_network("2001:db8::1", "2001:db8::2", 32, 128));
    }

    #[test]
    fn an_ipv4_client_is_the_same_at_a_socket_of_ipv6() {
        assert!(is_one_network("192.0.2.1", "::ffff:192.0.2.1", 32, 64));
    }
}
