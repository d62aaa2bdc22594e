//! A signing key that records the signature scheme in the handshake's plan: the library does not report it.

use std::sync::Arc;

use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::plan;

#[derive(Debug)]
pub(crate) struct RecordingKey {
    key: Arc<dyn SigningKey>,
}

impl RecordingKey {
    pub(crate) fn new(key: Arc<dyn SigningKey>) -> Self {
        Self { key }
    }
}

impl SigningKey for RecordingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.key.choose_scheme(offered)?;
        plan::with_current(|plan| plan.scheme = Some(u16::from(signer.scheme())));
        Some(signer)
    }

    fn public_key(&self) -> Option<rustls::pki_types::SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}
