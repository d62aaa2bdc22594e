//! Drops SYNs at a listening socket before anything is spent on them: classic BPF (socket(7), SO_ATTACH_FILTER), which needs
//! no privilege. Says what a program does; whom to drop, and how many, is decided elsewhere.
//!
//! A filter outlives its owner on a socket that is handed over, stored or inherited, and accepted sockets inherit it. So every
//! program passes all packets but pure SYNs, whoever receives a listening socket takes its filter off first
//! ([`ListenSocket::adopt`](crate::ListenSocket::adopt) does), and a socket's filter has one owner at a time.

mod known;
mod program;

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;

use socket2::{SockFilter, SockRef};

pub use known::KnownSources;
use program::Instruction;

/// A program that decides about SYNs. Everything else passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SynFilter {
    program: Vec<Instruction>,
}

/// Whose SYNs are dropped, and what share of them, from 0 to 1.
///
/// A share is of pairs of address and port, so that a SYN that is sent again meets the same answer: retries do not wear the
/// filter out. Addresses of IPv6 count by their network of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct SynShares<'a> {
    /// Which pairs are dropped. With another salt they are others.
    pub salt: u32,
    /// Of networks that are treated apart from all others, the first that fits; at most [`MAX_NETWORKS`] of them count.
    pub networks: &'a [(Network, f64)],
    /// Of the sources that are known.
    pub known: Option<(&'a KnownSources, f64)>,
    /// Of all others.
    pub others: f64,
}

/// Most networks that a program tells apart: with all of them it has under 4,096 instructions (BPF_MAXINSNS).
pub const MAX_NETWORKS: usize = 64;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// With zeros behind the prefix.
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network of so many bits that `address` is in. Of IPv6 at most 64 bits count.
    pub fn new(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
                Self { address: IpAddr::V4((address.to_bits() & mask).into()), bits }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(64);
                let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
                Self { address: IpAddr::V6((address.to_bits() & mask).into()), bits }
            }
        }
    }

    /// The first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// Length of the prefix.
    pub fn bits(self) -> u8 {
        self.bits
    }

    /// Whether `address` is in it.
    pub fn contains(self, address: IpAddr) -> bool {
        Self::new(address, self.bits) == self
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl SynFilter {
    /// Drops every SYN: no client gets in any more, those in the accept queue and all connections go on.
    pub fn drop_all() -> Self {
        Self { program: program::drop_all() }
    }

    /// Drops the given shares.
    pub fn drop_shares(shares: &SynShares<'_>) -> Self {
        Self { program: program::drop_shares(shares) }
    }

    /// Puts it on a listening socket, in the place of the one that is there.
    ///
    /// # Errors
    /// ENOMEM where the program is larger than `net.core.optmem_max` allows (20 KiB before Linux 6.7: without
    /// [`SynShares::known`] it fits), EPERM where the filter is locked (SO_LOCK_FILTER).
    pub fn attach(&self, socket: &impl AsFd) -> io::Result<()> {
        let instructions: Vec<_> = self.program.iter().map(Instruction::compiled).collect();
        SockRef::from(socket).attach_filter(&instructions)
    }

    /// Takes the filter off, if there is one.
    ///
    /// # Errors
    /// EPERM where the filter is locked (SO_LOCK_FILTER).
    pub fn detach(socket: &impl AsFd) -> io::Result<()> {
        match SockRef::from(socket).detach_filter() {
            Err(error) if error.raw_os_error() != Some(libc::ENOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Instructions of the program.
    pub fn len(&self) -> usize {
        self.program.len()
    }

    /// Never: a program has instructions.
    pub fn is_empty(&self) -> bool {
        self.program.is_empty()
    }
}

impl Instruction {
    fn compiled(&self) -> SockFilter {
        SockFilter::new(self.code, self.if_true, self.if_false, self.operand)
    }
}
