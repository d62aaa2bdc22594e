//! Several copies of a target that are to resume each other's sessions: what they share, and what tells them apart.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the longest secret that a target takes: nginx's and HAProxy's 80.
const SECRET_BYTES: usize = 80;

/// What all copies share.
#[derive(Clone)]
pub struct Fleet {
    /// How many there are.
    pub hosts: usize,
    /// Hexadecimal digits, of which each target takes as many as it needs.
    pub(super) secret: String,
    /// When it was made, seconds since 1970.
    pub(super) made: u64,
}

impl Fleet {
    /// One with a secret of its own.
    ///
    /// # Errors
    /// When the system gives no randomness, in a sentence.
    pub fn new(hosts: usize) -> Result<Self, String> {
        let mut bytes = [0; SECRET_BYTES];
        let read = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut bytes));
        read.map_err(|why| format!("no secret for the hosts: /dev/urandom: {why}"))?;
        let secret = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        let made = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Ok(Self { hosts, secret, made })
    }
}

impl fmt::Debug for Fleet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// One of the copies.
#[derive(Clone, Debug)]
pub(super) struct FleetHost {
    /// Counted from 1.
    pub(super) number: usize,
    /// Where each of its parts listens, the one in front first.
    pub(super) addresses: Vec<SocketAddr>,
    /// Where the other copies listen.
    pub(super) peers: Vec<SocketAddr>,
}

/// As many copies as there are addresses for, each of so many parts.
pub(super) fn hosts(addresses: &[SocketAddr], parts: usize) -> Vec<FleetHost> {
    let fronts: Vec<SocketAddr> = addresses.iter().copied().step_by(parts).collect();
    let host = |(index, own): (usize, &[SocketAddr])| FleetHost {
        number: index + 1,
        addresses: own.to_vec(),
        peers: fronts.iter().copied().filter(|front| *front != own[0]).collect(),
    };
    addresses.chunks(parts).enumerate().map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_chain_know_each_other_by_the_parts_in_front() {
        let addresses: Vec<SocketAddr> = (1..=4).map(|port| ([127, 0, 0, 1], port).into()).collect();
        let found = hosts(&addresses, 2);
        let peers: Vec<_> = found.iter().map(|host| (host.number, host.addresses[0], &host.peers)).collect();
        assert_eq!(peers, [(1, addresses[0], &vec![addresses[2]]), (2, addresses[2], &vec![addresses[0]])]);
    }

    #[test]
    fn secrets_differ_and_are_not_printed() {
        let [one, other] = [Fleet::new(2).unwrap(), Fleet::new(2).unwrap()];
        assert!(one.secret.len() == 160 && one.secret != other.secret);
        assert!(!format!("{one:?}").contains(&one.secret));
    }
}
