//! Certificates of authorities that are trusted.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::identity::{IdentityError, Validity};
use crate::pem;

/// Authorities that issue to clients or to backends: the certificates of one PEM file.
#[derive(Clone, Debug)]
pub struct Authorities(pub(crate) Vec<CertificateDer<'static>>);

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
