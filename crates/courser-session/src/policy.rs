//! What a session is bound to. May not know what the parts of a policy mean: it only distinguishes them.

use std::fmt;

use aws_lc_rs::constant_time;
use aws_lc_rs::digest::{Context, SHA256};

/// Version of how a session's state is stored. Raise it when the bytes of a state change their meaning: sessions
/// of another version are then not resumed, for [`ResumptionFailure::OtherPolicy`](crate::ResumptionFailure::OtherPolicy).
pub const STATE_FORMAT: u16 = 1;

/// Identifies everything that decides whether a session made *there* may be resumed *here*: SHA-256 over labelled
/// parts.
///
/// It is not a secret, and it is the same on every host whose listener and virtual host have the same configured
/// names and rules, whatever their addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PolicyHash([u8; 32]);

impl PolicyHash {
    /// Starts a policy from the configured names of the listener and of the virtual host, and [`STATE_FORMAT`].
    ///
    /// ```
    /// use courser_session::PolicyHash;
    /// let strict = PolicyHash::builder("public", "example.org").part("client-auth", b"required").finish();
    /// let open = PolicyHash::builder("public", "example.org").part("client-auth", b"none").finish();
    /// assert_ne!(strict, open);
    /// ```
    pub fn builder(listener: &str, virtual_host: &str) -> PolicyBuilder {
        PolicyBuilder { context: Context::new(&SHA256) }
            .part("courser policy, state format", &STATE_FORMAT.to_be_bytes())
            .part("listener", listener.as_bytes())
            .part("virtual host", virtual_host.as_bytes())
    }

    /// A hash that came from elsewhere: it is good for nothing but comparison.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether `bytes` are this hash, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        constant_time::verify_slices_are_equal(&self.0, bytes).is_ok()
    }
}

/// Shows the first four bytes: enough to tell policies apart in a log.
impl fmt::Debug for PolicyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "PolicyHash({a:02x}{b:02x}{c:02x}{d:02x}..)")
    }
}

/// Collects the parts of a policy. Their order counts: always add them in the same one.
pub struct PolicyBuilder {
    context: Context,
}

impl PolicyBuilder {
    /// Adds one part. Label and value are length-prefixed, so no two lists of parts read the same.
    #[must_use]
    pub fn part(mut self, label: &str, value: &[u8]) -> Self {
        for field in [label.as_bytes(), value] {
            self.context.update(&(field.len() as u64).to_be_bytes());
            self.context.update(field);
        }
        self
    }

    /// The hash of all parts.
    pub fn finish(self) -> PolicyHash {
        let digest = self.context.finish();
        PolicyHash(digest.as_ref().try_into().expect("SHA-256 yields 32 bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let base = || PolicyHash::builder("public", "example.org");
        let hashes = [
            base().finish(),
            base().part("client-auth", b"none").finish(),
            base().part("client-auth", b"required").finish(),
            base().part("client-auth", b"").finish(),
            base().part("", b"client-auth").finish(),
            PolicyHash::builder("internal", "example.org").finish(),
            PolicyHash::builder("public", "example.net").finish(),
        ];
        for (position, hash) in hashes.iter().enumerate() {
            assert!(!hashes[position + 1..].contains(hash), "part list {position} is not told apart");
        }
    }

    #[test]
    fn moving_a_boundary_between_fields_changes_the_hash() {
        let a = PolicyHash::builder("ab", "c").finish();
        let b = PolicyHash::builder("a", "bc").finish();
        assert_ne!(a, b);
        let c = PolicyHash::builder("l", "v").part("x", b"y").part("z", b"").finish();
        let d = PolicyHash::builder("l", "v").part("xy", b"").part("z", b"").finish();
        assert_ne!(c, d);
    }

    /// Hosts of different releases must agree on the hash, or a fleet stops resuming during an upgrade. Computed
    /// with Python's hashlib.
    #[test]
    fn the_hash_is_the_same_in_every_release() {
        let hash = PolicyHash::builder("public", "example.org").part("client-auth", b"none").finish();
        let hex: String = hash.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "d2fe1b6fa8651941a4bb4d003d4b89a2e60f8c2b218ec0c92a6b7efb81a91996");
    }
}
