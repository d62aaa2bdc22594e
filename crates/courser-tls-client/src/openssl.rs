//! The engine on the system's OpenSSL: an independent implementation, which also speaks what the other engines no
//! longer do (TLS 1.0 and 1.1, RSA-1024, RSA key exchange, AES-CBC-SHA, DHE).
//!
//! Behind the same interface as the others: OpenSSL reads from and writes to memory. What its safe Rust interface does
//! not report (groups, HelloRetryRequest, signature schemes up to TLS 1.2, tickets up to TLS 1.2) is read off the clear
//! part of the server's flight.
//!
//! It has no early data: whether the server took it is not to be learnt through that interface.

pub(crate) mod config;
pub(crate) mod connection;
mod failure;
mod memory;
mod scheme;
pub(crate) mod server;
pub(crate) mod sessions;
