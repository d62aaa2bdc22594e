//! Signing keys. Each records the signature scheme in the handshake's plan, which the library does not report; and one may
//! rest as it stood in its file until a handshake needs it.

use std::sync::{Arc, OnceLock};

use rustls::crypto::aws_lc_rs::sign::{any_ecdsa_type, any_supported_type};
use rustls::pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::{Signer, SigningKey};
use rustls::{Error, SignatureAlgorithm, SignatureScheme};
use zeroize::Zeroize;

use crate::identity::KeyKind;
use crate::plan;

#[derive(Debug)]
pub(crate) struct RecordingKey {
    /// The error is boxed: few have one, and there may be a hundred thousand keys.
    ready: OnceLock<Result<Arc<dyn SigningKey>, Box<Error>>>,
    at_rest: Option<KeyAtRest>,
    algorithm: SignatureAlgorithm,
}

impl RecordingKey {
    /// A key that is ready to sign.
    ///
    /// # Errors
    /// Where it is not one that TLS here can use.
    pub(crate) fn new(key: &PrivateKeyDer<'static>) -> Result<Self, Error> {
        let key = parse(key)?;
        let algorithm = key.algorithm();
        Ok(Self { ready: Ok(key).into(), at_rest: None, algorithm })
    }

    /// A key of this kind that is made ready when a handshake first needs it: ready, one of ECDSA takes five times the memory of
    /// its text.
    pub(crate) fn at_rest(key: &PrivateKeyDer<'static>, kind: KeyKind) -> Self {
        let algorithm = match kind {
            KeyKind::Rsa => SignatureAlgorithm::RSA,
            KeyKind::Ed25519 => SignatureAlgorithm::ED25519,
            KeyKind::EcdsaP256 | KeyKind::EcdsaP384 | KeyKind::EcdsaP521 => SignatureAlgorithm::ECDSA,
        };
        // A copy that is as long as the key: what the parser of the file has made has room to spare.
        Self { ready: OnceLock::new(), at_rest: Some(KeyAtRest(key.clone_key())), algorithm }
    }

    fn ready(&self) -> &Result<Arc<dyn SigningKey>, Box<Error>> {
        self.ready.get_or_init(|| match &self.at_rest {
            Some(key) => parse(&key.0).map_err(Box::new),
            None => Err(Box::new(Error::General("there is no key".to_owned()))),
        })
    }
}

impl SigningKey for RecordingKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = match self.ready() {
            Ok(key) => key.choose_scheme(offered)?,
            Err(error) => Box::new(Damaged { scheme: *offered.first()?, error: Error::clone(error) }),
        };
        plan::with_current(|plan| plan.scheme = Some(u16::from(signer.scheme())));
        Some(signer)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.ready().as_ref().ok()?.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }
}

/// Of the parsers the one for ECDSA first: the library's own order takes a key of ECDSA for one of RSA first, and proves it
/// whole to find that it is not.
fn parse(key: &PrivateKeyDer<'_>) -> Result<Arc<dyn SigningKey>, Error> {
    any_ecdsa_type(key).or_else(|_| any_supported_type(key))
}

#[derive(Debug)]
struct KeyAtRest(PrivateKeyDer<'static>);

impl Drop for KeyAtRest {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A key whose private half is not what its public one says: the handshake fails with the reason.
#[derive(Debug)]
struct Damaged {
    scheme: SignatureScheme,
    error: Error,
}

impl Signer for Damaged {
    fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, Error> {
        Err(self.error.clone())
    }

    fn scheme(&self) -> SignatureScheme {
        self.scheme
    }
}
