//! Sockets and CPUs: listening, connecting, non-blocking streams, datagrams, precise timers, pinning, limits, accounts.
//!
//! Moves bytes and asks the kernel; knows no protocol, reads no clock and decides no policy. The only crate that may
//! contain `unsafe`; each use says why it is sound.

pub mod accept_queue;
pub mod account;
pub mod address;
pub mod channel;
pub mod confinement;
pub mod connect;
pub mod cpu;
pub mod datagram;
mod landlock;
pub mod limits;
pub mod listen;
pub mod liveness;
pub mod lookup;
pub mod memory_file;
pub mod stream;
pub mod syn_filter;
mod syscalls;
pub mod systemd;
pub mod tcp_info;
pub mod timer;

pub use accept_queue::AcceptQueue;
pub use address::Address;
pub use connect::{ConnectError, ConnectErrorKind, Connector};
pub use datagram::{DatagramSettings, DatagramSocket, Datagrams};
pub use listen::{Accepted, AsyncListener, ListenSocket};
pub use liveness::Liveness;
pub use lookup::{Lookup, look_up};
pub use stream::{Pieces, Stream, Then};
pub use syn_filter::{KnownSources, Network, SynFilter, SynShares};
pub use tcp_info::TcpInfo;
pub use timer::Timer;
