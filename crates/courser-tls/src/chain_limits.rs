//! Limits on the cost of verifying a certificate chain, which an unauthenticated peer sends.
//!
//! The library tries every path through the certificates that a peer sends, of which some 60 fit into 19 KB. Paths
//! multiply with certificates of one name, so their number is bounded, and so is that of the signatures that a search
//! verifies. Their bytes are: the library reads no message of more than 64 KiB.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, LazyLock};

use rustls::crypto::{WebPkiSupportedAlgorithms, aws_lc_rs as provider};
use rustls::pki_types::{
    AlgorithmIdentifier, CertificateDer, InvalidSignature, SignatureVerificationAlgorithm,
};
use rustls::{CertificateError, Error, OtherError};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Certificates that a peer may send, its own included. OpenSSL's limit of depth is 100, Go's none; chains of more
/// than five are hardly seen, and the library itself follows six intermediates at most.
const MAX_CERTIFICATES: usize = 10;

/// Intermediates of one subject: an authority and its cross certificate. With two, at most 2^6 paths lead upwards.
const MAX_OF_ONE_NAME: usize = 2;

/// Signatures that a search may verify: a straight path has as many as certificates, a cross certificate adds to them.
const MAX_SIGNATURES: u32 = 16;

/// The limit that a chain exceeds.
#[derive(Debug, PartialEq, Eq)]
enum ChainLimit {
    Certificates(usize),
    OneName(usize),
    Signatures,
}

impl fmt::Display for ChainLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificates(sent) => {
                write!(f, "{sent} certificates were sent, at most {MAX_CERTIFICATES} are judged")
            }
            Self::OneName(sent) => {
                write!(f, "{sent} intermediates of one name were sent, at most {MAX_OF_ONE_NAME} are judged")
            }
            Self::Signatures => {
                write!(
                    f,
                    "no path within {MAX_SIGNATURES} signatures leads from the certificate to an authority"
                )
            }
        }
    }
}

impl std::error::Error for ChainLimit {}

impl From<ChainLimit> for Error {
    fn from(why: ChainLimit) -> Self {
        Self::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(why))))
    }
}

thread_local! {
    /// Signatures that the search on this thread may still verify.
    static SIGNATURES_LEFT: Cell<u32> = const { Cell::new(0) };
}

/// Runs `search` for a path from a peer's certificate through `intermediates`, within the limits above.
///
/// # Errors
/// Those of the search, or [`CertificateError::Other`] with the limit that is exceeded.
pub(crate) fn with_limits<T>(
    intermediates: &[CertificateDer<'_>],
    search: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    check(intermediates)?;
    SIGNATURES_LEFT.set(MAX_SIGNATURES);
    let found = search();
    if found.is_err() && SIGNATURES_LEFT.get() == 0 { Err(ChainLimit::Signatures.into()) } else { found }
}

fn check(intermediates: &[CertificateDer<'_>]) -> Result<(), ChainLimit> {
    let certificates = 1 + intermediates.len();
    if certificates > MAX_CERTIFICATES {
        return Err(ChainLimit::Certificates(certificates));
    }
    // One that cannot be parsed is on no path.
    let parsed = intermediates.iter().filter_map(|der| X509Certificate::from_der(der).ok());
    let mut names: Vec<_> = parsed.map(|(_, certificate)| certificate.tbs_certificate.subject).collect();
    names.sort_unstable_by(|a, b| a.as_raw().cmp(b.as_raw()));
    let most = names.chunk_by(|a, b| a.as_raw() == b.as_raw()).map(<[_]>::len).max().unwrap_or_default();
    if most > MAX_OF_ONE_NAME { Err(ChainLimit::OneName(most)) } else { Ok(()) }
}

/// The library's algorithms for signatures of certificates, of which each use counts.
pub(crate) fn algorithms() -> &'static [&'static dyn SignatureVerificationAlgorithm] {
    static COUNTED: LazyLock<Vec<&'static dyn SignatureVerificationAlgorithm>> = LazyLock::new(|| {
        let all = library_algorithms().all;
        all.iter().map(|algorithm| Box::leak(Box::new(Counted(*algorithm))) as _).collect()
    });
    &COUNTED
}

/// The library's algorithms for signatures of handshakes.
pub(crate) fn library_algorithms() -> WebPkiSupportedAlgorithms {
    provider::default_provider().signature_verification_algorithms
}

/// An algorithm that verifies nothing more once the search has used up its signatures.
#[derive(Debug)]
struct Counted(&'static dyn SignatureVerificationAlgorithm);

impl SignatureVerificationAlgorithm for Counted {
    fn verify_signature(
        &self,
        public_key: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), InvalidSignature> {
        let left = SIGNATURES_LEFT.get().checked_sub(1).ok_or(InvalidSignature)?;
        SIGNATURES_LEFT.set(left);
        self.0.verify_signature(public_key, message, signature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.0.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.0.signature_alg_id()
    }
}

#[cfg(test)]
mod tests {
    use courser_testkit::TestCa;

    use super::*;
    use crate::Failure;

    fn certificates(names: &[&str]) -> Vec<CertificateDer<'static>> {
        names.iter().map(|name| TestCa::named(name).root()).collect()
    }

    #[test]
    fn many_certificates_or_those_of_one_name_are_not_judged() {
        let nine = ["a", "a", "b", "b", "c", "c", "d", "d", "e"];
        assert_eq!(check(&certificates(&nine)), Ok(()));
        assert_eq!(check(&certificates(&["a"; 10])), Err(ChainLimit::Certificates(11)));
        assert_eq!(check(&certificates(&["a", "b", "a", "a"])), Err(ChainLimit::OneName(3)));
    }

    #[test]
    fn a_search_verifies_so_many_signatures_and_no_more() {
        let algorithm = algorithms()[0];
        let verify = || {
            (0..2 * MAX_SIGNATURES).for_each(|_| {
                let _ = algorithm.verify_signature(&[], &[], &[]);
            });
            Err::<(), _>(Error::DecryptError)
        };
        let refused = Failure::from(with_limits(&[], verify).unwrap_err()).to_string();
        assert!(refused.contains("within 16 signatures"), "{refused}");
        assert_eq!(with_limits(&[], || Err::<(), _>(Error::DecryptError)), Err(Error::DecryptError));
    }
}
