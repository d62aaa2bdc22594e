//! What is checked of a backend's certificate.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use webpki::{EndEntityCert, KeyUsage};

use super::sessions::BackendSessions;
use crate::chain_limits::library_algorithms;
use crate::trust_path::{TrustedPaths, library_error};

/// How a certificate proves who the backend is.
#[derive(Debug)]
pub(super) enum Proof {
    /// It is for the server's name, and a path leads to an authority.
    Path(TrustedPaths),
    /// Its key is one of these: SHA-256 of SubjectPublicKeyInfo, as in HTTP (RFC 7469, section 2.4). Names and dates do
    /// not matter.
    Pins(Vec<[u8; 32]>),
    /// None is asked for.
    None,
}

/// The verifier of one server.
#[derive(Debug)]
pub(super) struct BackendVerifier {
    pub(super) proof: Arc<Proof>,
    pub(super) sessions: Arc<BackendSessions>,
}

impl ServerCertVerifier for BackendVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &*self.proof {
            Proof::Path(paths) => {
                let end = paths.verify(leaf, intermediates, KeyUsage::server_auth(), now)?;
                let parsed = EndEntityCert::try_from(leaf).map_err(library_error)?;
                parsed.verify_is_valid_for_subject_name(name).map_err(library_error)?;
                self.sessions.verified_until(name, end);
            }
            Proof::Pins(pins) => check_pin(leaf, pins)?,
            Proof::None => {}
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, leaf, signature, &library_algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &library_algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        library_algorithms().supported_schemes()
    }
}

fn check_pin(leaf: &CertificateDer<'_>, pins: &[[u8; 32]]) -> Result<(), Error> {
    let key = EndEntityCert::try_from(leaf).map_err(library_error)?.subject_public_key_info();
    let found: [u8; 32] = digest(&SHA256, &key).as_ref().try_into().expect("SHA-256 yields 32 bytes");
    if pins.contains(&found) {
        return Ok(());
    }
    Err(CertificateError::Other(OtherError(Arc::new(WrongPin))).into())
}

/// The key of the certificate is none of those that are expected.
#[derive(Debug)]
struct WrongPin;

impl fmt::Display for WrongPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrong key: the certificate's key has none of the pins")
    }
}

impl std::error::Error for WrongPin {}
