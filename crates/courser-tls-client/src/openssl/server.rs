//! The other end, on the same library: for both ends in one process, never behind a socket. It makes its own key, of
//! any size that the library takes, and a self-signed certificate.

use courser_tls::{Failure, TlsConfigError, names};
use openssl::asn1::Asn1Time;
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::ssl::{
    ErrorCode, ShutdownState, Ssl, SslContext, SslContextBuilder, SslMethod, SslSessionCacheMode, SslStream,
};
use openssl::x509::{X509, X509Name};

use super::config::{ContextError, VERSIONS, at_level_0};
use super::connection::read_record;
use super::failure;
use super::memory::Memory;

/// The first is for key exchange. The second has to be there for an ECDSA key on that curve (RFC 8422, section 5.1).
const GROUPS: &str = "X25519:P-256";

/// The key that a [`OpensslServer`] signs or decrypts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpensslKey {
    /// RSA with a modulus of so many bits, 512 or more.
    Rsa(u32),
    /// ECDSA on P-256.
    P256,
}

/// What servers are set up with; clones share it.
#[derive(Clone)]
pub struct OpensslServerConfig {
    context: SslContext,
}

impl OpensslServerConfig {
    /// One version and one suite, by code point; X25519; stateless tickets, two after a TLS 1.3 handshake. The key is
    /// made here: a long one takes its time.
    ///
    /// # Errors
    /// When the library has no such version, suite or key.
    pub fn new(version: u16, suite: u16, key: OpensslKey) -> Result<Self, TlsConfigError> {
        Ok(Self { context: context(version, suite, key)? })
    }
}

fn context(version: u16, suite: u16, key: OpensslKey) -> Result<SslContext, ContextError> {
    let mut builder = SslContext::builder(SslMethod::tls_server())?;
    builder.set_security_level(0);
    let known = VERSIONS.iter().find(|row| row.0 == version);
    let (_, version, _) = known.ok_or(TlsConfigError::UnknownVersion(version))?;
    builder.set_min_proto_version(Some(*version))?;
    builder.set_max_proto_version(Some(*version))?;
    set_suite(&mut builder, suite)?;
    builder.set_groups_list(GROUPS)?;
    builder.set_session_id_context(b"courser")?;
    builder.set_session_cache_mode(SslSessionCacheMode::OFF);
    let key = make(key)?;
    builder.set_certificate(certificate(&key)?.as_ref())?;
    builder.set_private_key(&key)?;
    Ok(builder.build())
}

fn set_suite(builder: &mut SslContextBuilder, suite: u16) -> Result<(), TlsConfigError> {
    let unknown = |_| TlsConfigError::UnknownSuite(suite);
    let name = names::openssl_suite(suite).ok_or(TlsConfigError::UnknownSuite(suite))?;
    if suite >> 8 == 0x13 {
        return builder.set_ciphersuites(name).map_err(unknown);
    }
    builder.set_cipher_list(&at_level_0(name)).map_err(unknown)
}

fn make(key: OpensslKey) -> Result<PKey<Private>, ErrorStack> {
    match key {
        OpensslKey::Rsa(bits) => PKey::from_rsa(Rsa::generate(bits)?),
        OpensslKey::P256 => {
            let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
            PKey::from_ec_key(EcKey::generate(&group)?)
        }
    }
}

fn certificate(key: &PKey<Private>) -> Result<X509, ErrorStack> {
    let mut name = X509Name::builder()?;
    name.append_entry_by_text("CN", "courser self-signed")?;
    let name = name.build();
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_subject_name(&name)?;
    builder.set_issuer_name(&name)?;
    builder.set_not_before(Asn1Time::days_from_now(0)?.as_ref())?;
    builder.set_not_after(Asn1Time::days_from_now(1)?.as_ref())?;
    builder.set_pubkey(key)?;
    builder.sign(key, MessageDigest::sha256())?;
    Ok(builder.build())
}

/// One connection.
pub struct OpensslServer {
    stream: SslStream<Memory>,
    is_open: bool,
}

impl OpensslServer {
    /// # Errors
    /// When the library has no memory.
    pub fn new(config: &OpensslServerConfig) -> Result<Self, Failure> {
        let ours = |error| failure::internal(&error);
        let ssl = Ssl::new(&config.context).map_err(ours)?;
        Ok(Self { stream: SslStream::new(ssl, Memory::default()).map_err(ours)?, is_open: false })
    }

    /// Takes all of `received`. Plaintext is appended to `plaintext`, records to send to `outgoing`.
    ///
    /// # Errors
    /// What the client sends is wrong, or was refused.
    pub fn process(
        &mut self,
        received: &[u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        self.stream.get_mut().receive(received);
        let state = self.advance(plaintext);
        self.stream.get_mut().drain_into(outgoing);
        match state {
            Err(error) if error.code() != ErrorCode::WANT_READ => Err(failure::of(&error, false)),
            _ => Ok(()),
        }
    }

    /// Until nothing is left to read: that, too, is an error to the library.
    fn advance(&mut self, plaintext: &mut Vec<u8>) -> Result<(), openssl::ssl::Error> {
        if !self.is_open {
            self.stream.accept()?;
            self.is_open = true;
        }
        loop {
            read_record(&mut self.stream, plaintext)?;
        }
    }

    /// Appends the records of `plaintext` to `outgoing`.
    ///
    /// # Errors
    /// The handshake is not done.
    pub fn send(&mut self, mut plaintext: &[u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        while !plaintext.is_empty() {
            let written = self.stream.ssl_write(plaintext).map_err(|error| failure::of(&error, false))?;
            plaintext = &plaintext[written..];
        }
        self.stream.get_mut().drain_into(outgoing);
        Ok(())
    }

    /// Whether the client resumed; `None` before the end of the handshake.
    pub fn resumed(&self) -> Option<bool> {
        self.is_open.then(|| self.stream.ssl().session_reused())
    }
}

impl Drop for OpensslServer {
    fn drop(&mut self) {
        // Or the library would take the session for spoilt.
        self.stream.set_shutdown(ShutdownState::SENT | ShutdownState::RECEIVED);
    }
}
