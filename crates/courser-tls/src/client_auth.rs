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
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::chain_limits;
use crate::config_error::TlsConfigError;
use crate::identity::{IdentityError, Validity};
use crate::pem;
use crate::plan::with_current;
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

/// Authorities that issue to clients: the certificates of one PEM file.
#[derive(Clone, Debug)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Takes one or several certificates from the text of a PEM file.
    ///
    /// # Errors
    /// What is wrong with the text, or that a certificate in it belongs to no authority.
    pub fn from_pem(text: &[u8]) -> Result<Self, IdentityError> {
        let certificates = pem::chain(text)?;
        certificates.iter().try_for_each(check_authority)?;
        Ok(Self(certificates))
    }

    /// Those that the system trusts: of `SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set, of the distribution
    /// otherwise. One that cannot be parsed is left out: large collections have old ones.
    ///
    /// # Errors
    /// When there is none, with the reasons.
    pub fn system() -> Result<Self, String> {
        let mut found = rustls_native_certs::load_native_certs();
        found.certs.retain(|der| check_authority(der).is_ok());
        if found.certs.is_empty() {
            let reasons: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
            return Err(if reasons.is_empty() { "it has none".to_owned() } else { reasons.join("; ") });
        }
        Ok(Self(found.certs))
    }

    pub(crate) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }

    /// Those that are not valid at `now` (Unix seconds), by their subjects. They are trusted all the same: a path ends
    /// at an authority's name and key, whatever its own certificate contains (RFC 5280, section 6.1).
    pub fn invalid(&self, now: i64) -> Vec<(String, Validity)> {
        let judged = |der| {
            let (_, certificate) = X509Certificate::from_der(der).ok()?;
            let validity = certificate.validity();
            let judged = Validity::at(now, validity.not_before.timestamp(), validity.not_after.timestamp());
            (judged != Validity::Valid).then(|| (certificate.subject().to_string(), judged))
        };
        self.0.iter().filter_map(|der| judged(der)).collect()
    }
}

/// Certificates of version 1 have no field for whether they belong to an authority (RFC 5280, section 4.2.1.9).
fn check_authority(der: &CertificateDer<'static>) -> Result<(), IdentityError> {
    let bad = |text: String| IdentityError::BadCertificate(text);
    let (_, certificate) = X509Certificate::from_der(der).map_err(|error| bad(error.to_string()))?;
    if certificate.version() != X509Version::V1 && !certificate.is_ca() {
        return Err(IdentityError::NotAuthority(certificate.subject().to_string()));
    }
    RootCertStore::empty().add(der.clone()).map_err(|error| bad(error.to_string()))
}

/// A host's setting for client certificates. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientAuth {
    verifier: Arc<dyn ClientCertVerifier>,
    mode: &'static str,
    fingerprint: Option<[u8; 32]>,
}

impl ClientAuth {
    /// No CertificateRequest is sent.
    pub fn none() -> Self {
        Self { verifier: WebPkiClientVerifier::no_client_auth(), mode: "none", fingerprint: None }
    }

    /// Requests a certificate that one of these authorities issued, directly or through intermediates that the client
    /// sends.
    ///
    /// # Errors
    /// When there is no authority.
    pub fn new<'a>(
        demand: Demand,
        authorities: impl IntoIterator<Item = &'a Authorities>,
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
            paths: TrustedPaths::new(roots),
            is_mandatory: demand == Demand::Required,
        });
        Ok(Self { verifier, mode: demand.name(), fingerprint: Some(fingerprint) })
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
struct ClientVerifier {
    paths: TrustedPaths,
    subjects: Vec<DistinguishedName>,
    is_mandatory: bool,
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
            ClientAuth::new(Demand::Required, files.iter().copied()).unwrap().fingerprint().to_vec()
        };
        assert_eq!(of(&[&a, &b]), of(&[&b, &a, &b]));
        assert_ne!(of(&[&a, &b]), of(&[&a]));
        assert!(ClientAuth::new(Demand::Required, []).is_err(), "an empty set would refuse every client");
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
