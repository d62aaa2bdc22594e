//! Checks of a certificate authority that any host of the fleet may be asked for (RFC 8737): one host orders, all answer. "Challenge"
//! is something else here: the freshness test of a peer.

use courser_session::UnixSeconds;

/// What an authority asks for, until when. No secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCheck {
    /// The name, 1 to [`Self::LONGEST_NAME`] bytes.
    pub name: String,
    /// SHA-256 of the key authorization (RFC 8737, section 3).
    pub digest: [u8; 32],
    /// When it is over. One that is over when it comes withdraws an earlier one.
    pub expires: UnixSeconds,
}

impl DomainCheck {
    /// Of a name in the DNS, bytes (RFC 1035, section 2.3.4).
    pub const LONGEST_NAME: usize = 253;
}
