//! Where challenges of tls-alpn-01 are answered (RFC 8737): the way out of this crate.

use std::time::SystemTime;

/// What a CA may ask this host, or another host of its fleet, for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The name that the CA asks for.
    pub name: String,
    /// SHA-256 of the key authorization, which the certificate of the answer has in its acmeIdentifier extension (RFC 8737,
    /// section 3). No secret.
    pub digest: [u8; 32],
    /// When nobody asks any more.
    pub expires: SystemTime,
}

/// Why a challenge would not be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Another process takes over, and goes on with the order.
    HandedOver,
    /// Who would not, and why.
    Failed(String),
}

/// Answers challenges. In a fleet any host may be asked, so an implementation has to reach them all.
pub trait ChallengeBoard: Send + Sync {
    /// Has the challenge answered. May wait: when it returns, every host that may be asked answers.
    ///
    /// # Errors
    /// The CA is then not told to ask.
    fn publish(&self, challenge: &Challenge) -> Result<(), Unanswered>;

    /// Nobody asks any more.
    fn withdraw(&self, name: &str);
}
