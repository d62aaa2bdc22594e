//! The client's end of one TLS connection, to a backend: bytes in, bytes and plaintext out; no socket.
//!
//! [`BackendTlsConfig`] is a pool's settings, compiled; [`BackendTls`] one server's part of them, with the sessions that
//! it can resume; [`BackendConnection`] one connection.

mod config;
mod sessions;
mod verifier;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::{Error, HandshakeKind};

use crate::failure::{Failure, FailureKind};
use crate::names;
use crate::records::{self, MAX_HELD, Progress};

pub use config::{BackendName, BackendTls, BackendTlsConfig, BackendTlsSpec, Verify};

/// One connection.
pub struct BackendConnection {
    tls: UnbufferedClientConnection,
    /// Whether the server's first bytes have been seen to be a record.
    is_tls: bool,
    reported: bool,
    /// Set once it has failed. The library may not be called again then: it would send its alert twice.
    failure: Option<Box<Failure>>,
}

/// What a finished handshake agreed on.
#[derive(Clone, Debug)]
pub struct BackendHandshakeInfo {
    /// Protocol version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Whether a session was resumed.
    pub resumed: bool,
}

impl BackendHandshakeInfo {
    /// Name of the version.
    pub fn version_name(&self) -> &'static str {
        names::version(self.version).unwrap_or("unknown")
    }

    /// Name of the suite.
    pub fn suite_name(&self) -> &'static str {
        names::suite(self.suite).unwrap_or("unknown")
    }
}

impl BackendConnection {
    fn new(server: &BackendTls, name: ServerName<'static>, alpn: Option<&[u8]>) -> Result<Self, Failure> {
        let alpn = alpn.map(<[u8]>::to_vec).into_iter().collect();
        let tls = UnbufferedClientConnection::new_with_alpn(server.rustls(), name, alpn)?;
        Ok(Self { tls, is_tls: false, reported: false, failure: None })
    }

    /// Processes the records in `incoming` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`: the first call, without input, appends the ClientHello. On failure `outgoing` ends with
    /// the alert for the server, and every further call fails alike.
    ///
    /// At most [`MAX_HELD`] bytes are left unconsumed.
    ///
    /// # Errors
    /// Whatever ends the connection; a certificate that is refused has the kind [`FailureKind::Certificate`].
    pub fn process(
        &mut self,
        incoming: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        if !self.is_tls && !incoming.is_empty() {
            self.is_tls = is_tls(incoming).map_err(|failure| self.fail(failure))?;
        }
        let progress = records::process(&mut self.tls, incoming, plaintext, outgoing);
        let progress = progress.map_err(|error| self.fail(error.into()))?;
        if incoming.len() - progress.consumed > MAX_HELD {
            let detail = "a handshake message that does not end within four records".to_owned();
            return Err(self.fail(Failure { kind: FailureKind::Protocol, detail }));
        }
        Ok(progress)
    }

    /// What the handshake agreed on, once, after it is done.
    pub fn finish_handshake(&mut self) -> Option<BackendHandshakeInfo> {
        if self.reported || self.tls.is_handshaking() {
            return None;
        }
        self.reported = true;
        Some(BackendHandshakeInfo {
            version: u16::from(self.tls.protocol_version()?),
            suite: u16::from(self.tls.negotiated_cipher_suite()?.suite()),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
        })
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library holds positions in it.
    ///
    /// # Errors
    /// Before the end of the handshake, and after a failure.
    pub fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.check_not_failed()?;
        let sent = records::send(&mut self.tls, plaintext, received, outgoing);
        self.check_sent(sent)
    }

    /// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`Self::send`].
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        self.check_not_failed()?;
        let sent = records::send_close_notify(&mut self.tls, received, outgoing);
        self.check_sent(sent)
    }

    fn check_sent(&mut self, sent: Result<(), Error>) -> Result<(), Failure> {
        sent.map_err(|error| self.fail(error.into()))
    }

    fn fail(&mut self, failure: Failure) -> Failure {
        self.failure = Some(Box::new(failure.clone()));
        failure
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failure.as_deref().map_or(Ok(()), |failure| Err(failure.clone()))
    }
}

/// Whether the server's first bytes are those of a record (RFC 8446, section 5.1); not yet, if there is one alone.
fn is_tls(received: &[u8]) -> Result<bool, Failure> {
    match received {
        [20..=23] => Ok(false),
        [20..=23, 3, ..] => Ok(true),
        _ => {
            let beginning = String::from_utf8_lossy(&received[..received.len().min(40)]);
            let line = beginning.lines().next().unwrap_or_default();
            let detail = format!("the answer is not TLS, it begins with {line:?}");
            Err(Failure { kind: FailureKind::NotTls, detail })
        }
    }
}

#[cfg(test)]
mod tests;
