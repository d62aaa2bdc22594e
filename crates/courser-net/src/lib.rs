//! Sockets and CPUs: listening, connecting, non-blocking streams, pinning, limits.
//!
//! Moves bytes and asks the kernel; knows no protocol, reads no clock and decides no policy. The only crate that may
//! contain `unsafe`; each use says why it is sound.

pub mod address;
pub mod cpu;
pub mod limits;
pub mod listen;
pub mod stream;
pub mod systemd;

pub use address::Address;
pub use listen::{Accepted, Listener, Socket};
pub use stream::{Stream, Then};
