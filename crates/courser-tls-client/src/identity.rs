//! The client's own certificate and key, for servers that request one.

use std::fmt;
use std::sync::Arc;

use courser_tls::internals::certified_key;
use courser_tls::{Identity, IdentityError};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

/// A certificate chain with its key.
pub struct ClientIdentity {
    pub(crate) certified: Arc<CertifiedKey>,
    /// The private key in PKCS#8, PKCS#1 or SEC1, DER, for OpenSSL; wiped when dropped.
    #[cfg(feature = "openssl")]
    pub(crate) key: zeroize::Zeroizing<Vec<u8>>,
}

impl ClientIdentity {
    /// Takes a chain and its key from the text of PEM files, which may be one and the same.
    ///
    /// # Errors
    /// Those of [`Identity::from_pem`].
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Ok(Self {
            certified: certified_key(&Identity::from_pem(chain, key)?),
            #[cfg(feature = "openssl")]
            key: courser_tls::internals::pem::key(key)?.secret_der().to_vec().into(),
        })
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientIdentity")
    }
}

impl ResolvesClientCert for ClientIdentity {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.certified))
    }

    fn has_certs(&self) -> bool {
        true
    }
}
