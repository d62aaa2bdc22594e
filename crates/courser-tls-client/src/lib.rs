//! The client's end of one TLS connection: bytes in, bytes and plaintext out; no socket. For load and for tests.
//!
//! Versions, suites, groups, schemes and the resumption method are the caller's, none is added, and what the server
//! chose is in [`ClientHandshakeInfo`]. It decides nothing, stores nothing between connections (that is the caller's
//! [`ClientSessions`]) and never waits.
//!
//! **[`Engine::Lean`] protects nothing.** Its key pairs are used for many connections, so that whoever learns one can
//! read and forge all of them, and but for a sample it accepts any certificate. It is for load on servers, never for data.
//!
//! May depend on courser-tls alone, and is the only crate to use its `internals`; no type of a TLS library appears in the
//! public interface.

pub mod certificate;
mod config;
mod connection;
pub mod flight;
mod group;
mod handshake_info;
mod hello;
mod identity;
#[cfg(feature = "openssl")]
mod openssl;
pub mod primitives;
mod rustls_config;
mod rustls_connection;
mod server_name;
mod sessions;
mod spec;
mod verifier;

pub use config::ClientTlsConfig;
pub use connection::ClientConnection;
pub use handshake_info::{ClientHandshakeInfo, ResumptionMethod};
pub use identity::ClientIdentity;
#[cfg(feature = "openssl")]
pub use openssl::server::{OpensslKey, OpensslServer, OpensslServerConfig};
pub use server_name::{NameError, ServerName};
pub use sessions::ClientSessions;
pub use spec::{ClientTlsSpec, Engine, Resume, Trust};
