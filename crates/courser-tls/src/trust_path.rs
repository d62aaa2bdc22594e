//! From a peer's certificate to an authority that is trusted, within the limits of [`chain_limits`](crate::chain_limits).

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use courser_session::UnixSeconds;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::{CertificateError, Error, OtherError, RootCertStore};
use webpki::{Cert, EndEntityCert, KeyUsage, VerifiedPath};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::chain_limits;
use crate::revocation::{Revocation, key_of};

/// Authorities that a path may end at.
#[derive(Debug)]
pub(crate) struct TrustedPaths {
    authorities: Vec<TrustAnchor<'static>>,
    revocation: Option<Revocation>,
}

impl TrustedPaths {
    pub(crate) fn new(authorities: RootCertStore, revocation: Option<Revocation>) -> Self {
        Self { authorities: authorities.roots, revocation }
    }

    /// Verifies that a path leads from `leaf` upwards on which nothing is revoked, and returns until when that holds: when
    /// the first certificate expires, or the first list. The authority's own may have expired: a path ends at its name and
    /// key (RFC 5280, section 6.1).
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
            let until = Cell::new(UnixSeconds::default());
            // Where something is revoked, another path may lead to another authority.
            let check = |path: &VerifiedPath<'_>| {
                until.set(path_expiry(path).min(self.check_path(path, now)?));
                Ok(())
            };
            let anchors = &self.authorities;
            let path =
                leaf.verify_for_usage(algorithms, anchors, intermediates, now, usage, None, Some(&check));
            path.map(|_| until.get()).map_err(library_error)
        };
        chain_limits::with_limits(intermediates, search)
    }

    fn check_path(&self, path: &VerifiedPath<'_>, now: UnixTime) -> Result<UnixSeconds, webpki::Error> {
        let Some(revocation) = &self.revocation else { return Ok(UnixSeconds(u64::MAX)) };
        let end_entity: &Cert<'_> = path.end_entity();
        let signers = path.intermediate_certificates().map(key_of);
        let signers = signers.chain([path.anchor().subject_public_key_info.to_vec()]);
        revocation
            .check_path([end_entity].into_iter().chain(path.intermediate_certificates()).zip(signers), now)
    }

    /// Looks up the chain of a session that is resumed: what was verified when it was made may have been revoked since.
    pub(crate) fn check_session(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let Some(revocation) = &self.revocation else { return Ok(()) };
        let keys = |name: &[u8]| {
            let of_name = self.authorities.iter().filter(|anchor| anchor.subject.as_ref() == name);
            of_name.map(|anchor| anchor.subject_public_key_info.to_vec()).collect()
        };
        revocation.check_session(chain, keys, now).map_err(library_error)
    }

    /// Whether sessions have to be looked up.
    pub(crate) fn has_revocation(&self) -> bool {
        self.revocation.is_some()
    }
}

/// When the first certificate of a path expires, its authority's left out.
fn path_expiry(path: &VerifiedPath<'_>) -> UnixSeconds {
    let intermediates = path.intermediate_certificates().map(Cert::der);
    let all = [path.end_entity().der()].into_iter().chain(intermediates);
    // One that was verified can be parsed; if ever not, its session is never resumed.
    all.map(|der| not_after(&der).unwrap_or_default()).min().unwrap_or_default()
}

fn not_after(der: &CertificateDer<'_>) -> Option<UnixSeconds> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    u64::try_from(certificate.validity().not_after.timestamp()).ok().map(UnixSeconds)
}

/// A list has the authority's name and is not signed with its key.
#[derive(Debug)]
struct ForeignList;

impl fmt::Display for ForeignList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("revocation unknown: the list is not signed by the authority of the certificate")
    }
}

impl std::error::Error for ForeignList {}

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
        Path::CertRevoked => CertificateError::Revoked,
        Path::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        Path::CrlExpired { time, next_update } => {
            CertificateError::ExpiredRevocationListContext { time, next_update }
        }
        Path::InvalidCrlSignatureForPublicKey => CertificateError::Other(OtherError(Arc::new(ForeignList))),
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
        TrustedPaths::new(roots, None)
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
