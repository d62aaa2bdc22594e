//! The secret that ticket keys derive from. May not be printed, and is wiped on drop.

use std::fmt;

use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use zeroize::Zeroizing;

/// 32 random bytes that all hosts of a fleet share; of one host alone when there is no fleet.
pub struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    /// A secret from elsewhere. The bytes must be random: nothing here makes a password strong.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new secret from the system's random number generator.
    ///
    /// # Errors
    /// [`NoRandomness`] if the generator fails.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = Zeroizing::new([0; 32]);
        aws_lc_rs::rand::fill(&mut bytes[..]).map_err(|_| NoRandomness)?;
        Ok(Self(bytes))
    }

    /// The root of everything that derives from this secret (HKDF-Extract, RFC 5869, section 2.2).
    pub(crate) fn root(&self) -> Root {
        Root(Salt::new(HKDF_SHA256, b"courser secret 1").extract(&self.0[..]))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A secret after extraction: gives a key for each purpose and epoch. Wiped on drop by the library that holds it.
pub(crate) struct Root(Prk);

impl Root {
    /// `N` bytes for one purpose and epoch (HKDF-Expand, RFC 5869, section 2.3).
    ///
    /// One label per purpose, and none may be another's beginning: the epoch follows it without a separator.
    pub(crate) fn derive<const N: usize>(&self, label: &'static str, epoch: u64) -> Zeroizing<[u8; N]> {
        let mut key = Zeroizing::new([0; N]);
        self.0
            .expand(&[label.as_bytes(), &epoch.to_be_bytes()], Length(N))
            .and_then(|okm| okm.fill(&mut key[..]))
            .expect("HKDF-SHA-256 yields up to 8160 bytes, and the length asked for is the buffer's");
        key
    }
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// The system's random number generator failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRandomness;

impl fmt::Display for NoRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system gave no random bytes")
    }
}

impl std::error::Error for NoRandomness {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_never_printed() {
        assert_eq!(format!("{:?}", Secret::from_bytes([0x42; 32])), "Secret(..)");
    }

    #[test]
    fn keys_differ_by_secret_label_and_epoch() {
        let root = Secret::from_bytes([1; 32]).root();
        let key = *root.derive::<32>("one", 7);
        assert_eq!(key, *Secret::from_bytes([1; 32]).root().derive::<32>("one", 7));
        assert_ne!(key, *Secret::from_bytes([2; 32]).root().derive::<32>("one", 7));
        assert_ne!(key, *root.derive::<32>("two", 7));
        assert_ne!(key, *root.derive::<32>("one", 8));
    }

    #[test]
    fn random_secrets_differ() {
        let (a, b) = (Secret::random().unwrap(), Secret::random().unwrap());
        assert_ne!(*a.0, *b.0);
        assert_ne!(*a.0, [0; 32]);
    }
}
