//! Client certificates: which hosts require one, which authorities are trusted, and when a session that rests on one
//! expires.
//!
//! May not decide which connection sends a CertificateRequest: that is a host's [`ServerTlsSpec`](crate::ServerTlsSpec).

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256, digest};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use webpki::KeyUsage;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::authorities::Authorities;
use crate::chain_limits;
use crate::config_error::TlsConfigError;
use crate::plan::with_current;
use crate::revocation::Revocation;
use crate::trust_path::TrustedPaths;

/// Whether a client may answer a CertificateRequest without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It may; a certificate that it sends has to verify.
    Optional,
    /// It may not.
    Required,
}

impl Demand {
    fn name(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

/// A host's setting for client certificates. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    verifier: Arc<dyn ClientCertVerifier>,
    /// The same, where sessions have to be looked up.
    sessions: Option<Arc<ClientVerifier>>,
    mode: &'static str,
    fingerprint: Option<[u8; 32]>,
}

impl ClientAuth {
    /// No CertificateRequest is sent.
    pub fn none() -> Self {
        let verifier = WebPkiClientVerifier::no_client_auth();
        Self { verifier, sessions: None, mode: "none", fingerprint: None }
    }

    /// Requests a certificate that one of these authorities issued, directly or through intermediates that the client
    /// sends, and that is not revoked.
    ///
    /// # Errors
    /// When there is no authority.
    pub fn new<'a>(
        demand: Demand,
        authorities: impl IntoIterator<Item = &'a Authorities>,
        revocation: Option<Revocation>,
    ) -> Result<Self, TlsConfigError> {
        let mut set: Vec<_> = authorities.into_iter().flat_map(|file| &file.0).cloned().collect();
        set.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        set.dedup();
        let fingerprint = fingerprint(&set);
        let mut roots = RootCertStore::empty();
        for der in set {
            roots.add(der).map_err(|error| TlsConfigError::BadRoot(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(TlsConfigError::Unable("no authority to verify clients with"));
        }
        let verifier = Arc::new(ClientVerifier {
            subjects: roots.subjects(),
            paths: TrustedPaths::new(roots, revocation),
            is_mandatory: demand == Demand::Required,
        });
        let sessions = verifier.paths.has_revocation().then(|| Arc::clone(&verifier));
        Ok(Self { verifier, sessions, mode: demand.name(), fingerprint: Some(fingerprint) })
    }

    /// `none`, `optional` or `required`: a part of the policy that sessions are bound to.
    pub fn mode(&self) -> &'static str {
        self.mode
    }

    /// SHA-256 over the authorities' certificates in DER, sorted, each once and preceded by its length: the other part.
    /// Empty where no certificate is requested.
    pub fn fingerprint(&self) -> &[u8] {
        self.fingerprint.as_ref().map_or(&[], |fingerprint| &fingerprint[..])
    }

    /// What looks up the certificates of sessions that are resumed, if anything does.
    pub(crate) fn sessions(&self) -> Option<Arc<ClientVerifier>> {
        self.sessions.clone()
    }

    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.verifier)
    }
}

impl Default for ClientAuth {
    fn default() -> Self {
        Self::none()
    }
}

fn fingerprint(sorted: &[CertificateDer<'_>]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for der in sorted {
        context.update(&(der.len() as u64).to_be_bytes());
        context.update(der);
    }
    context.finish().as_ref().try_into().expect("SHA-256 yields 32 bytes")
}

/// Verifies clients' certificates, and records in the handshake's plan when the accepted ones expire.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    paths: TrustedPaths,
    subjects: Vec<DistinguishedName>,
    is_mandatory: bool,
}

impl ClientVerifier {
    /// Looks up the chain of a session.
    pub(crate) fn check_session(&self, chain: &[CertificateDer<'_>]) -> Result<(), Error> {
        self.paths.check_session(chain, UnixTime::now())
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.subjects
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let end = self.paths.verify(leaf, intermediates, KeyUsage::client_auth(), now)?;
        with_current(|plan| plan.client_expires = Some(end));
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &chain_limits::library_algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &chain_limits::library_algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        chain_limits::library_algorithms().supported_schemes()
    }
}

/// A client's certificate that was verified, in this handshake or in the one whose session it resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The first common name of its subject, where it has one that is text without control characters.
    pub common_name: Option<String>,
    /// SHA-256 of its SubjectPublicKeyInfo (RFC 7469, section 2.4), which is the same after a renewal with the same key.
    pub key_hash: [u8; 32],
    /// The whole, DER, for whoever passes it on.
    pub der: Vec<u8>,
}

impl ClientCertificate {
    /// Reads a leaf certificate, DER, that has been verified.
    pub fn read(leaf: &[u8]) -> Self {
        let certificate = X509Certificate::from_der(leaf).ok().map(|(_, certificate)| certificate);
        let common_name = certificate.as_ref().and_then(|certificate| {
            let name = certificate.subject().iter_common_name().next()?.as_str().ok()?;
            (!name.chars().any(char::is_control)).then(|| name.to_owned())
        });
        // The library has parsed it too, more strictly; what only it can read is taken as a whole.
        let key = certificate.as_ref().map_or(leaf, |certificate| certificate.public_key().raw);
        Self {
            common_name,
            key_hash: digest(&SHA256, key).as_ref().try_into().expect("SHA-256 has 32 bytes"),
            der: leaf.to_vec(),
        }
    }
}

/// A TLS 1.2 client without a required certificate gets handshake_failure (RFC 5246, section 7.4.6). The library sends
/// certificate_required, which is of TLS 1.3 (RFC 8446, section 6.2); the alert is not encrypted yet.
pub(crate) fn correct_alert(outgoing: &mut [u8]) {
    const CERTIFICATE_REQUIRED: [u8; 7] = [21, 3, 3, 0, 2, 2, 116];
    const HANDSHAKE_FAILURE: u8 = 40;
    if outgoing.ends_with(&CERTIFICATE_REQUIRED)
        && let Some(description) = outgoing.last_mut()
    {
        *description = HANDSHAKE_FAILURE;
    }
}

#[cfg(test)]
mod tests {
    use courser_testkit::TestCa;

    use super::*;

    #[test]
    fn the_fingerprint_is_of_the_set() {
        let [a, b] = ["a", "b"].map(|name| Authorities(vec![TestCa::named(name).root()]));
        let of = |files: &[&Authorities]| {
            ClientAuth::new(Demand::Required, files.iter().copied(), None).unwrap().fingerprint().to_vec()
        };
        assert_eq!(of(&[&a, &b]), of(&[&b, &a, &b]));
        assert_ne!(of(&[&a, &b]), of(&[&a]));
        assert!(
            ClientAuth::new(Demand::Required, [], None).is_err(),
            "an empty set would refuse every client"
        );
    }

    #[test]
    fn only_the_one_alert_is_corrected_and_only_at_the_end() {
        let correct = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            correct_alert(&mut bytes);
            bytes
        };
        assert_eq!(correct(&[9, 21, 3, 3, 0, 2, 2, 116]), [9, 21, 3, 3, 0, 2, 2, 40]);
        for other in [&[21, 3, 3, 0, 2, 2, 48][..], &[21, 3, 3, 0, 2, 2, 116, 0], &[116], &[]] {
            assert_eq!(correct(other), other);
        }
    }
}
