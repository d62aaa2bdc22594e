//! TLS 1.2 and 1.3 without sockets, the server's side and the client's towards backends: certificates and keys,
//! negotiation, a connection's records, sessions. The instrument's client is courser-tls-client, which this crate cannot
//! reach.
//!
//! The two are the only crates that name the TLS library (rustls 0.23 on aws-lc-rs); none of the library's types appears
//! in their public interface, so that another version or another library changes them alone. It does no input or output
//! but reading certificate files, and decides no policy: which certificate, group and order of suites a handshake
//! uses is the caller's choice, handed over in a [`HandshakePlan`].

mod authorities;
mod backend;
mod chain_limits;
mod ciphers;
mod client_auth;
mod config_error;
pub mod failure;
pub mod identity;
mod identity_loader;
#[doc(hidden)]
pub mod internals;
mod issuers;
mod key_schedule;
mod mac;
pub mod names;
mod pem;
mod plan;
mod public_half;
mod random;
mod record_cipher;
mod records;
mod revocation;
mod selfsigned;
mod serial;
mod server;
mod server_config;
mod sessions;
mod signed;
mod signing;
mod staple;
mod trust_path;

pub use authorities::Authorities;
pub use backend::{
    BackendConnection, BackendHandshakeInfo, BackendName, BackendTls, BackendTlsConfig, BackendTlsSpec,
    Verify,
};
pub use client_auth::{ClientAuth, ClientCertificate, Demand};
pub use config_error::TlsConfigError;
pub use failure::{Failure, FailureKind};
pub use identity::{Identity, IdentityError, KeyKind, Staple};
pub use plan::{CachedSession, HandshakePlan, SessionOffer};
pub use record_cipher::RecordRoom;
pub use records::{MAX_HELD, MAX_PLAINTEXT, Progress, RECORD_OVERHEAD, State};
pub use revocation::{Revocation, RevocationDepth, RevocationList, RevocationListError};
pub use selfsigned::{self_signed, self_signed_challenge, self_signed_rsa};
pub use server::{HandshakeInfo, ServerConnection};
pub use server_config::{ServerTlsConfig, ServerTlsSpec, SuiteOrder, Version};
pub use sessions::Sessions;
pub use staple::{StapleError, StapleResponse};
