//! A client's settings compiled for an engine: once, then cloned for each thread.

use courser_tls::TlsConfigError;

#[cfg(feature = "openssl")]
use crate::openssl::config::OpensslClientConfig;
use crate::rustls_config::RustlsClientConfig;
use crate::spec::{ClientTlsSpec, Engine};

/// What a client offers, ready for use. A clone shares nothing that connections write to, so that threads with a clone
/// each do not get in each other's way; sessions made on one clone can be resumed on another.
#[derive(Clone)]
pub struct ClientTlsConfig {
    pub(crate) inner: Inner,
}

/// Each library's own.
#[derive(Clone)]
pub(crate) enum Inner {
    Rustls(RustlsClientConfig),
    #[cfg(feature = "openssl")]
    Openssl(OpensslClientConfig),
}

impl ClientTlsConfig {
    /// Compiles settings for an engine.
    ///
    /// # Errors
    /// What of them the engine cannot do.
    pub fn new(engine: Engine, spec: &ClientTlsSpec) -> Result<Self, TlsConfigError> {
        let inner = match engine {
            Engine::Lean | Engine::Real => Inner::Rustls(RustlsClientConfig::new(engine, spec)?),
            #[cfg(feature = "openssl")]
            Engine::Openssl => Inner::Openssl(OpensslClientConfig::new(spec)?),
            #[cfg(not(feature = "openssl"))]
            Engine::Openssl => {
                return Err(TlsConfigError::Unable(
                    "the openssl engine is not part of this build: build with the feature `openssl`",
                ));
            }
        };
        Ok(Self { inner })
    }
}
