//! One connection of a client, on the library of its engine.

use courser_tls::{Failure, Progress};

use crate::config::{self, ClientTlsConfig};
use crate::handshake_info::ClientHandshakeInfo;
#[cfg(feature = "openssl")]
use crate::openssl;
use crate::rustls_connection;
use crate::server_name::ServerName;
use crate::sessions::ClientSessions;

/// One connection.
pub struct ClientConnection {
    inner: Inner,
}

/// Each library's own.
enum Inner {
    Rustls(Box<rustls_connection::Connection>),
    #[cfg(feature = "openssl")]
    Openssl(Box<openssl::connection::Connection>),
}

impl ClientConnection {
    /// A connection under `config` to the server of this `name`, with the client's sessions from earlier ones.
    ///
    /// # Errors
    /// `Internal` when the library refuses its own configuration or has no randomness.
    pub fn new(
        config: &ClientTlsConfig,
        name: &ServerName,
        sessions: ClientSessions,
    ) -> Result<Self, Failure> {
        let inner = match &config.inner {
            config::Inner::Rustls(config) => {
                Inner::Rustls(Box::new(rustls_connection::Connection::new(config, name, sessions)?))
            }
            #[cfg(feature = "openssl")]
            config::Inner::Openssl(config) => {
                Inner::Openssl(Box::new(openssl::connection::Connection::new(config, name, sessions)?))
            }
        };
        Ok(Self { inner })
    }

    /// Processes the records in `received` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`. The first call, with nothing received, gives the ClientHello.
    ///
    /// # Errors
    /// What the server did wrong, or how it refused. `outgoing` then ends with the alert for the server, and every
    /// further call fails alike.
    pub fn process(
        &mut self,
        received: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        match &mut self.inner {
            Inner::Rustls(connection) => connection.process(received, plaintext, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.process(received, plaintext, outgoing),
        }
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library holds positions in it.
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
            Inner::Rustls(connection) => connection.send(plaintext, received, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.send(plaintext, outgoing),
        }
    }

    /// Encrypts early data (RFC 8446, section 2.3) behind the ClientHello, which is put into `outgoing` too if
    /// [`Self::process`] has not been called yet. Gives how many bytes of `plaintext` were taken, the session may set a
    /// limit; none when the session allows no early data or the server has answered already. Whether the server accepted
    /// it is in [`ClientHandshakeInfo::early_data`]; if not, it has to be sent again.
    pub fn send_early(&mut self, plaintext: &[u8], outgoing: &mut Vec<u8>) -> Option<usize> {
        match &mut self.inner {
            Inner::Rustls(connection) => connection.send_early(plaintext, outgoing),
            // Its configuration refuses early data.
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
            Inner::Rustls(connection) => connection.send_close_notify(received, outgoing),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.send_close_notify(outgoing),
        }
    }

    /// Result of the handshake, once it is done on this side. (In a full TLS 1.3 handshake the server has not
    /// checked the client's Finished by then.)
    pub fn handshake_info(&self) -> Option<ClientHandshakeInfo> {
        match &self.inner {
            Inner::Rustls(connection) => connection.handshake_info(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.handshake_info(),
        }
    }

    /// How many TLS 1.3 tickets have come in so far; they come with the first bytes after the handshake.
    pub fn tickets_received(&self) -> u32 {
        match &self.inner {
            Inner::Rustls(connection) => connection.tickets_received(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.tickets_received(),
        }
    }

    /// The server's certificates, DER, leaf first; those of the original handshake after a resumption.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        match &self.inner {
            Inner::Rustls(connection) => connection.peer_certificates(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.peer_certificates(),
        }
    }

    /// Returns the client's sessions, with those that the server sent.
    pub fn into_sessions(self) -> ClientSessions {
        match self.inner {
            Inner::Rustls(connection) => connection.into_sessions(),
            #[cfg(feature = "openssl")]
            Inner::Openssl(connection) => connection.into_sessions(),
        }
    }
}
