//! X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem) with one ML-KEM key for all connections.
//!
//! Unlike a scalar of 1, there is no key pair of ML-KEM that saves the client its part, but the pair may be made once:
//! the server encapsulates to it at full cost each time, and only the decapsulation is left to pay.

use std::sync::LazyLock;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, ML_KEM_768};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

use super::unit_scalar::{X25519, X25519_ALONE};

/// Length of what the server encapsulates, bytes (FIPS 203, table 3).
const CIPHERTEXT: usize = 1088;

/// The group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hybrid;

/// The key pair of this process.
struct Pair {
    key: DecapsulationKey,
    /// Its public half, and then that of X25519.
    share: Vec<u8>,
}

static PAIR: LazyLock<Result<Pair, Unspecified>> = LazyLock::new(|| {
    let key = DecapsulationKey::generate(&ML_KEM_768)?;
    let public = key.encapsulation_key()?.key_bytes()?.as_ref().to_vec();
    Ok(Pair { key, share: [&public[..], &X25519].concat() })
});

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        match &*PAIR {
            Ok(pair) => Ok(Box::new(pair)),
            Err(Unspecified) => Err(Error::FailedToGetRandomBytes),
        }
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

impl ActiveKeyExchange for &'static Pair {
    /// The secret is that of ML-KEM and then that of X25519, which is the server's own share.
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let refused = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let (ciphertext, classical) = share.split_at_checked(CIPHERTEXT).ok_or_else(refused)?;
        if classical.len() != X25519.len() {
            return Err(refused());
        }
        let secret = self.key.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| refused())?;
        Ok(SharedSecret::from([secret.as_ref(), classical].concat()))
    }

    /// The library sends this share beside the whole one where X25519 is offered too, as browsers do.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((NamedGroup::X25519, &X25519))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        X25519_ALONE.secret(share).map(SharedSecret::from)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}
