//! The client's end of one TLS connection: bytes in, bytes and plaintext out; no socket. For load and for tests.
//!
//! It does what it is asked and reports what came of it: versions, suites, groups, schemes and the kind of resumption
//! are the caller's, none is added, and what the server chose is in [`ClientFacts`]. It decides nothing, keeps nothing
//! between connections (that is the caller's [`Purse`]) and never waits.
//!
//! **[`Engine::Lean`] protects nothing.** Its key shares are public constants, so that anyone who sees the handshake
//! can read and forge what follows, and it believes any certificate. It is for load on servers, never for data.

mod config;
mod group;
mod hello;
mod library;
mod name;
#[cfg(feature = "openssl")]
mod openssl;
mod sessions;
mod spec;
mod suite;
mod verifier;

pub use config::ClientTlsConfig;
pub use name::{NameError, ServerName};
#[cfg(feature = "openssl")]
pub use openssl::{OpensslKey, OpensslServer, OpensslServerConfig};
pub use sessions::ClientSessions;
pub use spec::{ClientTlsSpec, Engine, Resume, Trust};

use crate::failure::Failure;
use crate::names;
use crate::records::Progress;

/// One connection.
pub struct ClientConnection {
    inner: Inner,
}

/// Each library's own.
enum Inner {
    Library(Box<library::Connection>),
    #[cfg(feature = "openssl")]
    Openssl(Box<openssl::Connection>),
}

/// With what a session was offered for resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Offered {
    /// By its ID, TLS 1.2 (RFC 5246, section 7.4.1.2).
    SessionId,
    /// By a ticket, TLS 1.2 (RFC 5077).
    Ticket,
    /// By a pre-shared key, TLS 1.3 (RFC 8446, section 4.2.11).
    Psk,
}

/// What a finished handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// Protocol version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Key exchange group, code point; none for a TLS 1.2 resumption.
    pub group: Option<u16>,
    /// Scheme of the server's signature, code point; none for a resumption.
    pub scheme: Option<u16>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// With what a session was offered for resumption, if one was.
    pub offered: Option<Offered>,
    /// Whether the server resumed it.
    pub resumed: bool,
    /// Whether the server asked for another ClientHello first (HelloRetryRequest; RFC 8446, section 4.1.4).
    pub retried: bool,
    /// Whether the server took the early data; none when it was not announced.
    pub early_data: Option<bool>,
}

impl ClientFacts {
    /// Name of the version.
    pub fn version_name(&self) -> &'static str {
        names::version(self.version).unwrap_or("unknown")
    }

    /// Name of the suite.
    pub fn suite_name(&self) -> &'static str {
        names::suite(self.suite).unwrap_or("unknown")
    }
}

impl ClientConnection {
    /// A connection on `terms` to the server of this `name`, with what the client has kept from earlier ones.
    ///
    /// # Errors
    /// `Internal` when the library refuses its own configuration or has no randomness.
    pub fn new(terms: &ClientTlsConfig, name: &ServerName, purse: ClientSessions) -> Result<Self, Failure> {
        let inner = match &terms.inner {
            config::Inner::Library(terms) => {
                Inner::Library(Box::new(library::Connection::new(terms, name, purse)?))
            }
            #[cfg(feature = "openssl")]
            config::Inner::Openssl(terms) => {
                Inner::Openssl(Box::new(openssl::Connection::new(terms, name, purse)?))
            }
        };
        Ok(Self { inner })
    }

    /// Processes the records in `received` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`. The first call, with nothing received, gives the ClientHello.
    ///
    /// # Errors
    /// What the server did wrong, or how it refused. `outgoing` then ends with the alert that says so to the server,
    /// and every further call fails alike.
    pub fn process(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        match &mut self.inner {
            Inner::Library(connection) => connection.process(received, plaintext, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.process(received, plaintext, outgoing),
        }
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library keeps positions in it.
    ///
    /// # Errors
    /// `Internal` before the handshake is done; after a failure the same again.
    pub fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        match &mut self.inner {
            Inner::Library(connection) => connection.send(plaintext, received, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.send(plaintext, outgoing),
        }
    }

    /// Encrypts early data (RFC 8446, section 2.3) behind the ClientHello, which is put into `outgoing` too if
    /// [`Self::process`] has not been called yet. Gives how many bytes of `plaintext` were taken, the session may set a
    /// limit; none when the session allows no early data or the server has been heard already. Whether the server took
    /// it is in [`ClientFacts::early_data`]; if not, it has to be sent again.
    pub fn send_early(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Option<usize> {
        match &mut self.inner {
            Inner::Library(connection) => connection.send_early(plaintext, outgoing),
            // Its terms are refused where early data is asked for.
            #[cfg(feature = "openssl")]
            Inner::Openssl(_) => None,
        }
    }

    /// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`Self::send`].
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        match &mut self.inner {
            Inner::Library(connection) => connection.send_close_notify(received, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.send_close_notify(outgoing),
        }
    }

    /// What the handshake agreed on, once it is done on this side. (In a full TLS 1.3 handshake the server has not
    /// checked the client's Finished by then.)
    pub fn facts(&self) -> Option<ClientFacts> {
        match &self.inner {
            Inner::Library(connection) => connection.facts(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.facts(),
        }
    }

    /// How many TLS 1.3 tickets have come in so far; they come with the first bytes after the handshake.
    pub fn tickets_received(&self) -> u32 {
        match &self.inner {
            Inner::Library(connection) => connection.tickets_received(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.tickets_received(),
        }
    }

    /// The server's certificates, DER, leaf first; those of the original handshake after a resumption.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        match &self.inner {
            Inner::Library(connection) => connection.peer_certificates(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.peer_certificates(),
        }
    }

    /// Gives the purse back, with what came in.
    pub fn into_purse(self) -> ClientSessions {
        match self.inner {
            Inner::Library(connection) => connection.into_purse(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.into_purse(),
        }
    }
}
