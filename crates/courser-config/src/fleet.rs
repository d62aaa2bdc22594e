//! Kinds of value that only a fleet has: the interface for multicast, and networks.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use crate::address;
use crate::dns;
use crate::problem::{Problem, Problems};
use crate::read;
use crate::value::Value;

/// By which interface multicast goes, and how far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetInterface {
    /// Its name, `eth0`.
    pub name: String,
    /// How many routers a message may pass (TTL, hop limit), 1 to 255.
    pub ttl: u8,
}

/// A name whose addresses are hosts of the fleet, such as that of a headless Service of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerName {
    /// In lower case.
    pub host: String,
    /// UDP port of each of them.
    pub port: u16,
}

/// The other hosts, by address or by name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Address(SocketAddr),
    Name(PeerName),
}

/// Reads a peer: as [`address::datagram`], or a name.
pub(crate) fn peer(value: &Value) -> Result<Peer, Problems> {
    let text = read::text(value, "an address")?;
    let name = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    match name {
        Some((host, port @ 1..))
            if host.contains(|c: char| c.is_ascii_alphabetic()) && dns::wrong(host).is_none() =>
        {
            Ok(Peer::Name(PeerName { host: host.to_ascii_lowercase(), port }))
        }
        _ => address::datagram(value).map(Peer::Address),
    }
}

/// A network, `10.0.0.0/16` or `2001:db8::/32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// Its first address: no bit beyond `prefix` is set.
    pub address: IpAddr,
    /// How many leading bits an address of it shares: at most 32, or 128.
    pub prefix: u8,
}

impl Network {
    /// Whether an address is one of it. An IPv4 address is none of `::/0`.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && first(address, self.prefix) == self.address
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Length of an interface's name on Linux, less the zero that ends it (`IFNAMSIZ`, netdevice(7)).
const LONGEST_INTERFACE: usize = 15;

/// Reads `eth0` or `eth0,ttl=2`.
pub(crate) fn interface(value: &Value) -> Result<FleetInterface, Problems> {
    let text = read::text(value, "a network interface")?;
    let (name, option) = text.split_once(',').unwrap_or((text, "ttl=1"));
    let wrong = |what: String, help: &str| Err(Problem::at(&value.origin, what, Some(help.into())).into());
    let possible = |byte: u8| byte.is_ascii_graphic() && byte != b'/';
    if !(1..=LONGEST_INTERFACE).contains(&name.len()) || !name.bytes().all(possible) {
        return wrong(format!("`{name}` cannot be the name of an interface"), "write for example `eth0`");
    }
    match option.trim().strip_prefix("ttl=").map(str::parse) {
        Some(Ok(ttl @ 1..)) => Ok(FleetInterface { name: name.to_owned(), ttl }),
        _ => {
            wrong(format!("`{option}` is not a number of hops"), "write for example `eth0,ttl=2`, up to 255")
        }
    }
}

/// Reads a network; a single address is one of its own.
pub(crate) fn network(value: &Value) -> Result<Network, Problems> {
    let text = read::text(value, "a network")?;
    let wrong = |what: String, help: String| Err(Problem::at(&value.origin, what, Some(help)).into());
    let (address, prefix) = text.split_once('/').unwrap_or((text, ""));
    let Ok(address) = address.parse::<IpAddr>() else {
        return wrong(format!("`{address}` is not an IP address"), "write for example `10.0.0.0/16`".into());
    };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = match prefix.parse::<u8>() {
        Ok(prefix) if prefix <= longest => prefix,
        _ if !text.contains('/') => longest,
        _ => {
            let help = format!("a number from 0 to {longest}");
            return wrong(format!("`{prefix}` is not the length of a prefix"), help);
        }
    };
    let network = Network { address: first(address, prefix), prefix };
    if network.address != address {
        return wrong(format!("`{text}` has bits beyond its prefix"), format!("write `{network}`"));
    }
    Ok(network)
}

/// The address with every bit beyond the prefix cleared.
fn first(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_network(text: &str) -> Result<String, String> {
        let value = Value::builtin(&format!("\"{text}\""));
        network(&value).map(|network| network.to_string()).map_err(|problems| problems.to_string())
    }

    #[test]
    fn networks_are_read_and_their_mistakes_reported() {
        assert_eq!(read_network("10.0.0.0/16").unwrap(), "10.0.0.0/16");
        assert_eq!(read_network("10.0.0.7").unwrap(), "10.0.0.7/32");
        assert_eq!(read_network("2001:db8::/32").unwrap(), "2001:db8::/32");
        assert_eq!(read_network("0.0.0.0/0").unwrap(), "0.0.0.0/0");
        assert_eq!(read_network("::/0").unwrap(), "::/0");
        assert!(read_network("10.0.0.7/16").unwrap_err().contains("write `10.0.0.0/16`"));
        assert!(read_network("10.0.0.0/33").unwrap_err().contains("from 0 to 32"));
        assert!(read_network("10.0.0.0/").unwrap_err().contains("length of a prefix"));
        assert!(read_network("eth0").unwrap_err().contains("not an IP address"));
    }

    #[test]
    fn interfaces_are_read_and_their_mistakes_reported() {
        let read = |text: &str| interface(&Value::builtin(&format!("\"{text}\"")));
        assert_eq!(read("eth0").unwrap(), FleetInterface { name: "eth0".into(), ttl: 1 });
        assert_eq!(read("eth0,ttl=2").unwrap(), FleetInterface { name: "eth0".into(), ttl: 2 });
        for wrong in ["", ",ttl=2", "eth0,ttl=0", "eth0,ttl=256", "eth0,hops=2", "a name", "sixteen-letters-"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
