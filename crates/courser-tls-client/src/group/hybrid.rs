//! X25519MLKEM768 (draft-ietf-tls-ecdhe-mlkem) with key pairs from a pool, as the other groups have them.

use aws_lc_rs::agreement::X25519;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, ML_KEM_768};
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved, ProtocolVersion};

use super::pool::{self, Pool};

/// Length of what the server encapsulates, bytes (FIPS 203, table 3).
const CIPHERTEXT: usize = 1088;

/// Key pairs: it takes some 5 ms to make them.
const PAIRS: usize = 64;

/// The group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hybrid;

/// A key pair of both kinds.
struct Pair {
    key: DecapsulationKey,
    classical: pool::Pair,
    /// The public half of ML-KEM's, and then that of X25519's.
    share: Vec<u8>,
}

static POOL: Pool<Pair> = Pool::new(|| (0..PAIRS).map(|_| Pair::new()).collect());

impl Pair {
    fn new() -> Result<Self, Unspecified> {
        let key = DecapsulationKey::generate(&ML_KEM_768)?;
        let classical = pool::Pair::new(NamedGroup::X25519, &X25519)?;
        let share = [key.encapsulation_key()?.key_bytes()?.as_ref(), classical.share()].concat();
        Ok(Self { key, classical, share })
    }
}

impl SupportedKxGroup for Hybrid {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(POOL.draw()?))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version == ProtocolVersion::TLSv1_3
    }
}

impl ActiveKeyExchange for &'static Pair {
    /// The secret is that of ML-KEM and then that of X25519.
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        let refused = || Error::from(PeerMisbehaved::InvalidKeyShare);
        let (ciphertext, classical) = share.split_at_checked(CIPHERTEXT).ok_or_else(refused)?;
        let secret = self.key.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| refused())?;
        self.classical.secret(secret.as_ref(), classical)
    }

    /// The library sends this share beside the whole one where X25519 is offered too, as browsers do.
    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        Some((NamedGroup::X25519, self.classical.share()))
    }

    fn complete_hybrid_component(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.classical.secret(&[], share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519MLKEM768
    }
}
