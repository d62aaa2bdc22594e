//! TLS 1.2 and 1.3 without sockets: certificates and keys, what is negotiated, a connection's records, sessions. The
//! server's side is for the terminator, the client's side ([`client`]) for the instrument that loads it.
//!
//! The only crate that names the TLS library (rustls 0.23 on aws-lc-rs); none of the library's types appears in its
//! public interface, so that another version or another library changes this crate alone. It does no input or output
//! but reading certificate files, and decides no policy: which certificate, group and order of suites a handshake
//! uses is the caller's choice, handed over in a [`HandshakePlan`].

pub mod certificate;
pub mod client;
mod client_auth;
mod client_chain;
mod config_error;
pub mod failure;
pub mod flight;
pub mod identity;
mod identity_loader;
mod key_schedule;
mod mac;
pub mod names;
mod pem;
mod plan;
pub mod primitives;
mod random;
mod record_cipher;
mod records;
mod selfsigned;
mod server;
mod server_config;
mod sessions;
mod signing;

pub use client_auth::{Authorities, ClientAuth, ClientCertificate, Demand};
pub use config_error::TlsConfigError;
pub use failure::{Failure, FailureKind};
pub use identity::{Identity, IdentityError, KeyKind};
pub use plan::{CachedSession, HandshakePlan, SessionOffer};
pub use records::{MAX_HELD, Progress, RECORD_OVERHEAD, State};
pub use selfsigned::{self_signed, self_signed_rsa};
pub use server::{HandshakeInfo, ServerConnection};
pub use server_config::{ServerTlsConfig, ServerTlsSpec, SuiteOrder, Version};
pub use sessions::Sessions;
