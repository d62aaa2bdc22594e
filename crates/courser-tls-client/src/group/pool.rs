//! Key exchange groups whose key pairs are drawn in turn from a pool that this process has made.
//!
//! A new pair for each connection would cost the client a second multiplication, and the server does the same work
//! whichever share it is sent. Constants, such as the generator with the secret 1, would cost the client nothing at all, but a
//! server could know them, and answer without the work that is measured.

use std::cell::Cell;
use std::sync::LazyLock;

use aws_lc_rs::agreement::{Algorithm, ECDH_P256, ECDH_P384, PrivateKey, UnparsedPublicKey, X25519, agree};
use aws_lc_rs::error::Unspecified;
use rustls::crypto::{ActiveKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// Pairs of each group. It takes P-256 some 5 ms to make them, P-384 some 30.
const PAIRS: usize = 256;

/// A key pair.
pub(super) struct Pair {
    name: NamedGroup,
    private: PrivateKey,
    /// Its public half, encoded as a key share.
    share: Vec<u8>,
}

/// Things of one kind that are made once, at the first use, and then drawn in turn.
pub(super) struct Pool<T: 'static>(LazyLock<Result<Vec<T>, Unspecified>>);

impl<T> Pool<T> {
    pub(super) const fn new(make: fn() -> Result<Vec<T>, Unspecified>) -> Self {
        Self(LazyLock::new(make))
    }

    /// The next one of this thread.
    pub(super) fn draw(&'static self) -> Result<&'static T, Error> {
        thread_local! {
            static NEXT: Cell<usize> = const { Cell::new(0) };
        }
        let all = self.0.as_ref().map_err(|Unspecified| Error::FailedToGetRandomBytes)?;
        Ok(&all[NEXT.replace(NEXT.get().wrapping_add(1)) % all.len()])
    }
}

/// A group whose pairs come from a pool.
pub(super) struct PooledGroup {
    name: NamedGroup,
    pool: Pool<Pair>,
}

pub(super) static GROUPS: [PooledGroup; 3] = [
    PooledGroup { name: NamedGroup::secp256r1, pool: Pool::new(|| pairs(NamedGroup::secp256r1, &ECDH_P256)) },
    PooledGroup { name: NamedGroup::X25519, pool: Pool::new(|| pairs(NamedGroup::X25519, &X25519)) },
    PooledGroup { name: NamedGroup::secp384r1, pool: Pool::new(|| pairs(NamedGroup::secp384r1, &ECDH_P384)) },
];

fn pairs(name: NamedGroup, algorithm: &'static Algorithm) -> Result<Vec<Pair>, Unspecified> {
    (0..PAIRS).map(|_| Pair::new(name, algorithm)).collect()
}

impl Pair {
    pub(super) fn new(name: NamedGroup, algorithm: &'static Algorithm) -> Result<Self, Unspecified> {
        let private = PrivateKey::generate(algorithm)?;
        let share = private.compute_public_key()?.as_ref().to_vec();
        Ok(Self { name, private, share })
    }

    pub(super) fn share(&self) -> &[u8] {
        &self.share
    }

    /// The secret that it has in common with whoever sent this share; `before` goes before it.
    pub(super) fn secret(&self, before: &[u8], share: &[u8]) -> Result<SharedSecret, Error> {
        let peer = UnparsedPublicKey::new(self.private.algorithm(), share);
        let refused = Error::from(PeerMisbehaved::InvalidKeyShare);
        agree(&self.private, peer, refused, |secret| Ok(SharedSecret::from([before, secret].concat())))
    }
}

impl std::fmt::Debug for PooledGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PooledGroup").field(&self.name).finish()
    }
}

impl SupportedKxGroup for PooledGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let group = GROUPS.iter().find(|group| group.name == self.name).expect("all of them are there");
        Ok(Box::new(group.pool.draw()?))
    }

    fn name(&self) -> NamedGroup {
        self.name
    }
}

impl ActiveKeyExchange for &'static Pair {
    fn complete(self: Box<Self>, share: &[u8]) -> Result<SharedSecret, Error> {
        self.secret(&[], share)
    }

    fn pub_key(&self) -> &[u8] {
        &self.share
    }

    fn group(&self) -> NamedGroup {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn shares_differ_and_come_in_turn() {
        for group in &GROUPS {
            let shares = |count: usize| {
                (0..count).map(|_| group.start().expect("a pair").pub_key().to_vec()).collect::<Vec<_>>()
            };
            let (first, second) = (shares(PAIRS), shares(PAIRS));
            assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), PAIRS, "{group:?}");
            assert_eq!(first, second, "{group:?}");
        }
    }
}
