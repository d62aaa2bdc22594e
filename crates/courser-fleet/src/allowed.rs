//! Whose datagrams are looked at: sources by address. May not count them: an address is easily forged, and a limit for
//! each would silence who has it.

use std::net::{IpAddr, SocketAddr};

use crate::refusal::Refusal;

/// From where messages may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// From any port of these addresses.
    Range(AddressRange),
    /// From this address and port alone: for peers that are configured one by one.
    Exact(SocketAddr),
}

/// Addresses that begin with the same bits: `10.0.3.0/24`, `2001:db8::/32`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// An address in it.
    base: IpAddr,
    /// How many leading bits are alike.
    prefix: u8,
}

impl AddressRange {
    /// The addresses that have the first `prefix` bits of `base`; `None` if it has not as many.
    pub fn new(base: IpAddr, prefix: u8) -> Option<Self> {
        (u32::from(prefix) <= bits(base).1).then_some(Self { base, prefix })
    }

    /// Whether the address is one of them. IPv4 in IPv6 (`::ffff:192.0.2.1`) is IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let ((base, len), (address, address_len)) = (bits(self.base), bits(address.to_canonical()));
        let differing = (base ^ address).checked_shr(len - u32::from(self.prefix)).unwrap_or(0);
        len == address_len && differing == 0
    }
}

/// An address as a number, and how many bits it has.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (address.to_bits().into(), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

/// What stands before anything that costs: the list of sources.
pub(crate) struct Gate {
    /// Empty: from anywhere.
    allowed: Vec<Allowed>,
}

impl Gate {
    pub(crate) fn new(allowed: Vec<Allowed>) -> Self {
        Self { allowed }
    }

    pub(crate) fn admit(&self, from: SocketAddr) -> Result<(), Refusal> {
        let source = from.ip().to_canonical();
        let fits = |allowed: &Allowed| match allowed {
            Allowed::Range(range) => range.contains(source),
            Allowed::Exact(address) => address.ip().to_canonical() == source && address.port() == from.port(),
        };
        let is_allowed = self.allowed.is_empty() || self.allowed.iter().any(fits);
        if is_allowed { Ok(()) } else { Err(Refusal::NotAllowed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> AddressRange {
        let (base, prefix) = text.split_once('/').unwrap();
        AddressRange::new(base.parse().unwrap(), prefix.parse().unwrap()).unwrap()
    }

    fn is_in(address: &str, text: &str) -> bool {
        range(text).contains(address.parse().unwrap())
    }

    #[test]
    fn a_range_has_the_addresses_that_begin_alike() {
        assert!(is_in("10.0.3.255", "10.0.3.0/24") && !is_in("10.0.4.0", "10.0.3.0/24"));
        assert!(is_in("10.0.3.7", "10.0.3.7/32") && !is_in("10.0.3.8", "10.0.3.7/32"));
        assert!(is_in("255.1.2.3", "0.0.0.0/0") && !is_in("::1", "0.0.0.0/0"));
        assert!(is_in("2001:db8:ff::1", "2001:db8::/32") && !is_in("2001:db9::1", "2001:db8::/32"));
        assert!(is_in("ffff::", "::/0") && !is_in("10.0.0.1", "::/0"));
        assert!(is_in("::ffff:10.0.3.9", "10.0.3.0/24"));
    }

    #[test]
    fn an_address_has_no_more_bits_than_its_family() {
        let range = |base: &str, prefix| AddressRange::new(base.parse().unwrap(), prefix);
        assert_eq!((range("10.0.0.0", 33), range("::", 129)), (None, None));
    }

    #[test]
    fn an_empty_list_lets_all_in_and_another_only_who_is_on_it() {
        let exact = Allowed::Exact("192.0.2.1:8888".parse().unwrap());
        let gate = Gate::new(vec![Allowed::Range(range("10.0.3.0/24")), exact]);
        let admit = |from: &str| gate.admit(from.parse().unwrap());
        assert_eq!(admit("10.0.3.1:1"), Ok(()));
        assert_eq!(admit("192.0.2.1:8888"), Ok(()));
        assert_eq!(admit("192.0.2.1:8889"), Err(Refusal::NotAllowed));
        assert_eq!(admit("10.0.3.1:2"), Ok(()));
        assert_eq!(Gate::new(Vec::new()).admit("198.51.100.1:1".parse().unwrap()), Ok(()));
    }
}
