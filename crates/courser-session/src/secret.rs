//! Bytes that are secret. May not be printed, and are wiped on drop.

use std::fmt;

use zeroize::Zeroizing;

/// `N` secret bytes: never printed, and wiped on drop.
// Boxed, so that a value that moves leaves no copy behind on a stack or in a list.
pub struct SecretBytes<const N: usize>(Box<Zeroizing<[u8; N]>>);

impl<const N: usize> SecretBytes<N> {
    /// New bytes from the system's random number generator.
    ///
    /// # Errors
    /// [`NoRandomness`] if the generator fails.
    pub fn random() -> Result<Self, NoRandomness> {
        Self::filled(|bytes| aws_lc_rs::rand::fill(bytes).map_err(|_| NoRandomness))
    }

    /// The bytes themselves: do not keep copies.
    pub fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }

    /// The same bytes once more.
    pub(crate) fn copy(&self) -> Self {
        Self(self.0.clone())
    }

    /// Bytes that are written in place.
    pub(crate) fn filled<E>(fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut secret = Self(Box::new(Zeroizing::new([0; N])));
        fill(&mut secret.0[..])?;
        Ok(secret)
    }
}

impl<const N: usize> fmt::Debug for SecretBytes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretBytes(..)")
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
        let secret = SecretBytes::<32>::random().unwrap();
        assert_eq!(format!("{secret:?}"), "SecretBytes(..)");
    }

    #[test]
    fn random_secrets_differ() {
        let (a, b) = (SecretBytes::<32>::random().unwrap(), SecretBytes::<32>::random().unwrap());
        assert_ne!(a.as_bytes(), b.as_bytes());
        assert_ne!(*a.as_bytes(), [0; 32]);
    }
}
