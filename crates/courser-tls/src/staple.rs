//! Staples: an authority's answer about a certificate (OCSP, RFC 6960), which a server sends along with it (RFC 6066, section
//! 8; RFC 8446, section 4.4.2.1). They come from files. May not fetch anything.
//!
//! Clients are strict: to one an answer that is outdated, foreign or wrongly signed may be worse than none. So it is judged
//! here as they do, and what they would not take is not sent.

mod response;

use std::fmt;

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::identity::{Identity, Staple};
use crate::serial::SERIAL;
use crate::signed::Signed;
use response::{Answer, CertificateStatus, Response};

/// An answer as it was read from a file: about one certificate or several, not yet verified.
#[derive(Debug)]
pub struct StapleResponse {
    bytes: Vec<u8>,
    serials: Vec<[u8; SERIAL]>,
}

/// Why an answer is no staple for a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StapleError {
    /// It is no OCSP response in DER, or of a kind other than id-pkix-ocsp-basic.
    Malformed,
    /// The responder has not answered, but said so.
    NotAnswered(&'static str),
    /// It is about others.
    Foreign,
    /// The certificate of the issuer is in neither the chain nor the answer, so that nothing can be verified.
    NoIssuer,
    /// Neither the issuer has signed it nor a responder that it has appointed.
    BadSignature,
    /// The certificate is revoked.
    Revoked,
    /// The responder does not know the certificate.
    Unknown,
    /// It does not say until when it counts.
    NoEnd,
}

impl StapleError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Malformed => {
                "openssl ocsp -respin FILE -resp_text -noverify shows whether others can read it"
            }
            Self::NotAnswered(_) => {
                "ask the responder again: openssl ocsp -issuer CA -cert LEAF -url URL -respout FILE"
            }
            Self::Foreign => "ask for the certificate that is served; a renewed one needs a new staple",
            Self::NoIssuer => "put the certificate of its issuer behind it, into the file of the chain",
            Self::BadSignature => {
                "openssl ocsp -respin FILE -issuer CA -cert LEAF says what is wrong with it"
            }
            Self::Revoked => "replace the certificate: clients that ask for its status refuse it",
            Self::Unknown => "ask again once the authority has published the certificate",
            Self::NoEnd => "ask for one with nextUpdate (openssl ocsp: -ndays)",
        }
    }
}

impl fmt::Display for StapleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it is no OCSP response in DER",
            Self::NotAnswered(why) => return write!(f, "the responder has not answered: {why}"),
            Self::Foreign => "it is about another certificate",
            Self::NoIssuer => "the certificate of the issuer is missing, so that it cannot be verified",
            Self::BadSignature => "neither the issuer nor a responder that it has appointed has signed it",
            Self::Revoked => "it says that the certificate is revoked",
            Self::Unknown => "it says that the responder does not know the certificate",
            Self::NoEnd => "it does not say until when it counts",
        })
    }
}

impl std::error::Error for StapleError {}

impl StapleResponse {
    /// Takes the bytes of a file, DER.
    ///
    /// # Errors
    /// [`StapleError::Malformed`] and [`StapleError::NotAnswered`].
    pub fn read(bytes: Vec<u8>) -> Result<Self, StapleError> {
        let serials = Response::read(&bytes)?.answers.iter().map(|answer| answer.serial).collect();
        Ok(Self { bytes, serials })
    }

    /// Whether it may be about the certificate: its serial number is in it.
    pub fn may_be_for(&self, identity: &Identity) -> bool {
        identity.serial.is_some_and(|serial| self.serials.contains(&serial))
    }

    /// Verifies it for a certificate: that it is about this one, signed by its issuer or by a responder that the issuer has
    /// appointed (RFC 6960, section 4.2.2.2), and that the certificate is good. Whether it counts *now* is for the caller.
    ///
    /// # Errors
    /// When one of these does not hold.
    pub fn judge(&self, identity: &Identity) -> Result<Staple, StapleError> {
        let response = Response::read(&self.bytes)?;
        let chain = &identity.certified.cert;
        let leaf = chain.first().ok_or(StapleError::Foreign)?;
        let (_, certificate) = X509Certificate::from_der(leaf).map_err(|_| StapleError::Foreign)?;
        let issuer_name = certificate.issuer().as_raw();
        let is_about = |answer: &&Answer| {
            Some(answer.serial) == identity.serial
                && answer.hash.of(issuer_name).as_ref() == answer.issuer_name_hash
        };
        let answers: Vec<_> = response.answers.iter().filter(is_about).collect();
        if answers.is_empty() {
            return Err(StapleError::Foreign);
        }
        let issuer = Issuer::of(leaf, issuer_name, chain, &response).ok_or(StapleError::NoIssuer)?;
        let is_of = |answer: &&&Answer| answer.hash.of(&issuer.bits).as_ref() == answer.issuer_key_hash;
        let answer = answers.iter().find(is_of).ok_or(StapleError::Foreign)?;
        let signer = issuer.signer(&response).ok_or(StapleError::BadSignature)?;
        match answer.status {
            CertificateStatus::Good => {}
            CertificateStatus::Revoked => return Err(StapleError::Revoked),
            CertificateStatus::Unknown => return Err(StapleError::Unknown),
        }
        Ok(Staple {
            response: self.bytes.as_slice().into(),
            not_before: answer.this_update.max(signer.not_before),
            not_after: answer.next_update.ok_or(StapleError::NoEnd)?.min(signer.not_after),
        })
    }
}

/// Whether a certificate obliges its server to send a staple (must-staple, RFC 7633: status_request in the TLS feature
/// extension).
pub(crate) fn is_demanded(leaf: &X509Certificate<'_>) -> bool {
    const TLS_FEATURE: &str = "1.3.6.1.5.5.7.1.24";
    let features = leaf.extensions().iter().find(|extension| extension.oid.to_id_string() == TLS_FEATURE);
    features.is_some_and(|features| response::numbers(features.value).contains(&5))
}

/// The owner of the key that signed the certificate. Whose key that is needs no proof: the certificate is ours.
struct Issuer<'a> {
    name: &'a [u8],
    /// SubjectPublicKeyInfo without its outermost header.
    key: Vec<u8>,
    /// The public key alone, which is what is hashed (RFC 6960, section 4.1.1).
    bits: Vec<u8>,
}

/// From when until when a signer may sign, Unix seconds.
struct Signer {
    not_before: i64,
    not_after: i64,
}

impl<'a> Issuer<'a> {
    fn of(
        leaf: &[u8],
        name: &'a [u8],
        chain: &[CertificateDer<'_>],
        response: &Response<'_>,
    ) -> Option<Self> {
        let (signed, _) = Signed::read(leaf)?;
        let above = chain.iter().skip(1).map(AsRef::as_ref).chain(response.certificates.iter().copied());
        let parsed = above.filter_map(|der| X509Certificate::from_der(der).ok());
        let mut named = parsed.map(|(_, one)| one).filter(|one| one.subject().as_raw() == name);
        named.find_map(|one| {
            let (key, bits) = key_of(&one)?;
            signed.is_by(&key).then_some(Self { name, key, bits })
        })
    }

    /// Who signed the answer: the issuer, or whom it has appointed. The responder's name is compared as well: clients look
    /// for the signer by it.
    fn signer(&self, response: &Response<'_>) -> Option<Signer> {
        if response.responder.is(self.name, &self.bits) && response.signed.is_by(&self.key) {
            return Some(Signer { not_before: i64::MIN, not_after: i64::MAX });
        }
        response.certificates.iter().find_map(|der| {
            let (_, appointed) = X509Certificate::from_der(der).ok()?;
            let (key, bits) = key_of(&appointed)?;
            let is_appointed = appointed.issuer().as_raw() == self.name
                && may_answer(&appointed)
                && response.responder.is(appointed.subject().as_raw(), &bits)
                && Signed::read(der)?.0.is_by(&self.key)
                && response.signed.is_by(&key);
            let validity = appointed.validity();
            let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
            is_appointed.then_some(Signer { not_before, not_after })
        })
    }
}

/// Whether the extended key usage is OCSPSigning (RFC 6960, section 4.2.2.2); "any" is not enough.
fn may_answer(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| match extension.parsed_extension() {
        ParsedExtension::ExtendedKeyUsage(usage) => usage.ocsp_signing,
        _ => false,
    })
}

fn key_of(certificate: &X509Certificate<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
    let key = certificate.public_key();
    Some((response::content(key.raw)?.to_vec(), key.subject_public_key.data.to_vec()))
}

#[cfg(test)]
mod tests;
