//! What the cryptographic library does on this machine: the physical limit of any terminator on it.

pub use courser_tls::primitives::library_version;
