//! What both ends of TLS share, for courser-tls-client alone: the record loop, the prepared hashes, buffered random
//! bytes, PEM. The library's types appear here. A test of the workspace holds that no other crate names this module.

use std::sync::Arc;

use rustls::sign::CertifiedKey;

use crate::identity::Identity;
pub use crate::key_schedule::with_prepared_hashes;
pub use crate::random::BufferedRandom;

/// Certificates and keys from the text of PEM files.
pub mod pem {
    pub use crate::pem::{chain, key};
}

/// The record loop.
pub mod records {
    pub use crate::records::{
        RustlsConnection, append, encode, max_records_len, process, send, send_close_notify,
    };
}

/// The chain and the key of an identity, as the library takes them.
pub fn certified_key(identity: &Identity) -> Arc<CertifiedKey> {
    Arc::clone(&identity.certified)
}
