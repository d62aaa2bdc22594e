//! From a peer's certificate to an authority that is trusted, within the limits of [`chain_limits`](crate::chain_limits).

use std::sync::Arc;

use courser_session::UnixSeconds;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::chain_limits;

/// Authorities that a path may end at.
#[derive(Debug)]
pub(crate) struct TrustedPaths {
    authorities: Vec<TrustAnchor<'static>>,
}

impl TrustedPaths {
    pub(crate) fn new(authorities: RootCertStore) -> Self {
        Self { authorities: authorities.roots }
    }

    /// Verifies that a path leads from `leaf` upwards, and returns when the first certificate on it expires. The
    /// authority's own may have expired: a path ends at its name and key (RFC 5280, section 6.1).
    pub(crate) fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        usage: KeyUsage,
        now: UnixTime,
    ) -> Result<UnixSeconds, Error> {
        let leaf = EndEntityCert::try_from(leaf).map_err(library_error)?;
        let search = || {
            let algorithms = chain_limits::algorithms();
            let path =
                leaf.verify_for_usage(algorithms, &self.authorities, intermediates, now, usage, None, None);
            path.map(|path| path_expiry(&path)).map_err(library_error)
        };
        chain_limits::with_limits(intermediates, search)
    }
}

/// When the first certificate of a path expires, its authority's left out.
fn path_expiry(path: &VerifiedPath<'_>) -> UnixSeconds {
    let intermediates = path.intermediate_certificates().map(webpki::Cert::der);
    let all = [path.end_entity().der()].into_iter().chain(intermediates);
    // One that was verified can be parsed; if ever not, its session is never resumed.
    all.map(|der| not_after(&der).unwrap_or_default()).min().unwrap_or_default()
}

fn not_after(der: &CertificateDer<'_>) -> Option<UnixSeconds> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok().map(UnixSeconds)
}

/// The error as the library for TLS has it, which sends the alert.
pub(crate) fn library_error(error: webpki::Error) -> Error {
    use webpki::Error as Path;
    Error::InvalidCertificate(match error {
        Path::CertExpired { time, not_after } => CertificateError::ExpiredContext { time, not_after },
        Path::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        Path::CertNotValidForName(webpki::InvalidNameContext { expected, presented }) => {
            CertificateError::NotValidForNameContext { expected, presented }
        }
        Path::UnknownIssuer => CertificateError::UnknownIssuer,
        Path::BadDer | Path::BadDerTime | Path::TrailingData(_) => CertificateError::BadEncoding,
        Path::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        Path::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use courser_testkit::{KeyType, Leaf, TestCa};

    use super::*;
    use crate::Failure;

    const NOW: u64 = 1_700_000_000;

    /// Verifies a leaf that expires so many seconds after `NOW`, together with these intermediates.
    fn verify(
        ca: &TestCa,
        trusted: &TestCa,
        after: i64,
        more: &[CertificateDer<'static>],
    ) -> Result<u64, String> {
        let end = UNIX_EPOCH + Duration::from_secs(NOW.saturating_add_signed(after));
        let leaf = Leaf::new(KeyType::EcdsaP256).of_client("someone").with_expiry(end);
        let issued = ca.issue(&leaf);
        let chain = crate::pem::chain(issued.chain_pem.as_bytes()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(trusted.root()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW));
        let intermediates = [&chain[1..], more].concat();
        TrustedPaths::new(roots)
            .verify(&chain[0], &intermediates, KeyUsage::client_auth(), now)
            .map(|end| end.0 - NOW)
            .map_err(|error| Failure::from(error).detail)
    }

    #[test]
    fn a_path_ends_with_the_first_of_its_certificates_and_others_do_not_count() {
        let ca = TestCa::with_intermediate();
        assert_eq!(verify(&ca, &ca, 60, &[]), Ok(60));
        let junk = CertificateDer::from(b"no certificate".to_vec());
        assert_eq!(verify(&ca, &ca, 60, &[TestCa::expired().root(), junk]), Ok(60));
    }

    #[test]
    fn a_path_has_to_end_at_an_authority() {
        let (ca, other) = (TestCa::new(), TestCa::named("other"));
        assert!(verify(&ca, &other, 60, &[]).unwrap_err().starts_with("unknown authority"));
        assert!(verify(&ca, &ca, -1, &[]).unwrap_err().starts_with("expired: "));
    }
}
