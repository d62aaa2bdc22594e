//! What a client offers, as the caller specifies it.

use std::fmt;
use std::sync::Arc;

use courser_tls::IdentityError;
use courser_tls::internals::pem;

use crate::identity::ClientIdentity;

/// Implementation of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// As little work as the protocol allows: key pairs that are used again and again, no verification but for a sample.
    /// **Not confidential**, for load only.
    Lean,
    /// A client that does all the work and verifies everything.
    Real,
    /// The system's OpenSSL: an independent implementation, and the only way to what the others no longer speak.
    Openssl,
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lean => "lean",
            Self::Real => "real",
            Self::Openssl => "openssl",
        })
    }
}

/// How sessions are resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resume {
    /// Not at all: each handshake is full.
    Never,
    /// By session ID, TLS 1.2 only; the ticket extension is not sent.
    SessionId,
    /// By ticket: RFC 5077 in TLS 1.2, a pre-shared key in TLS 1.3.
    Ticket,
}

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// All: chains are not verified. [`Engine::Real`] still verifies that the server has the certificate's
    /// key, and [`Engine::Lean`] does so in a sample.
    Any,
    /// Chains up to one of these certificates, DER, that are valid now and for the server's name. [`Engine::Lean`] checks
    /// the first full handshake, and then one in 64 by chance.
    Roots(Vec<Vec<u8>>),
}

impl Trust {
    /// Trusts the certificates in the text of a PEM file.
    ///
    /// # Errors
    /// When it holds none.
    pub fn from_pem(text: &[u8]) -> Result<Self, IdentityError> {
        let chain = pem::chain(text)?;
        Ok(Self::Roots(chain.into_iter().map(|certificate| certificate.to_vec()).collect()))
    }
}

/// What a client offers. Lists hold code points in order of preference and are offered as they are; an empty list of
/// suites, groups or schemes stands for the engine's own.
#[derive(Clone, Debug)]
pub struct ClientTlsSpec {
    /// Protocol versions, at least one.
    pub versions: Vec<u16>,
    /// Cipher suites.
    pub suites: Vec<u16>,
    /// Key exchange groups; the first one gets the key share. (X25519MLKEM768 has that of X25519 as a part of its own,
    /// which is sent as a second one where X25519 is offered too; browsers do the same.)
    pub groups: Vec<u16>,
    /// Signature schemes.
    pub schemes: Vec<u16>,
    /// Application protocols; empty for no such extension.
    pub alpn: Vec<Vec<u8>>,
    /// How sessions are resumed.
    pub resume: Resume,
    /// Most TLS 1.3 tickets that [`ClientSessions`](super::ClientSessions) stores.
    pub max_tickets: usize,
    /// Whether early data is offered where the session allows it.
    pub early_data: bool,
    /// The client's own certificate, for servers that request one.
    pub identity: Option<Arc<ClientIdentity>>,
    /// Which certificates are trusted.
    pub trust: Trust,
}

impl Default for ClientTlsSpec {
    /// TLS 1.3 and 1.2 with all that the engine has; no resumption, no verification.
    fn default() -> Self {
        Self {
            versions: vec![0x0304, 0x0303],
            suites: Vec::new(),
            groups: Vec::new(),
            schemes: Vec::new(),
            alpn: Vec::new(),
            resume: Resume::Never,
            max_tickets: 2,
            early_data: false,
            identity: None,
            trust: Trust::Any,
        }
    }
}
