//! Sockets and CPUs: listening, connecting, non-blocking streams, datagrams, precise timers, pinning, limits.
//!
//! Moves bytes and asks the kernel; knows no protocol, reads no clock and decides no policy. The only crate that may
//! contain `unsafe`; each use says why it is sound.

pub mod address;
pub mod connect;
pub mod cpu;
pub mod datagram;
pub mod limits;
pub mod listen;
pub mod lookup;
pub mod stream;
pub mod systemd;
pub mod tcp_info;
pub mod timer;

pub use address::Address;
pub use connect::{ConnectError, ConnectErrorKind, Connector};
pub use datagram::{DatagramSettings, DatagramSocket, Datagrams};
pub use listen::{Accepted, Listener, Socket};
pub use lookup::{Lookup, look_up};
pub use stream::{Stream, Then};
pub use tcp_info::TcpInfo;
pub use timer::Timer;
