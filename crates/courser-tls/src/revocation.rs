//! Which certificates are revoked, and what follows where that is not known.

mod list;

use std::sync::Arc;
use std::time::Duration;

use courser_session::UnixSeconds;
use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{Cert, EndEntityCert};
use x509_parser::asn1_rs::{Any, FromDer};

pub use list::{RevocationList, RevocationListError};

/// Which certificates of a chain are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevocationDepth {
    /// All but the authority's own.
    Chain,
    /// The peer's own.
    Leaf,
}

/// What is revoked, and what is done where that is not known. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Revocation {
    /// The lists.
    pub lists: Arc<[RevocationList]>,
    /// Which certificates are looked up.
    pub depth: RevocationDepth,
    /// Whether a certificate that no list covers is accepted.
    pub accepts_unknown: bool,
    /// Whether a list counts beyond its `next_update`.
    pub accepts_expired: bool,
}

impl Revocation {
    /// Looks up the certificates of a path, each with the key that signed it, the peer's own first. Returns until when what
    /// is found holds.
    pub(crate) fn check_path<'a>(
        &self,
        path: impl Iterator<Item = (&'a Cert<'a>, Vec<u8>)>,
        now: UnixTime,
    ) -> Result<UnixSeconds, webpki::Error> {
        let mut until = UnixSeconds(u64::MAX);
        for (depth, (certificate, key)) in path.enumerate() {
            if depth > 0 && self.depth == RevocationDepth::Leaf {
                break;
            }
            until = until.min(self.check(certificate, depth > 0, &[key], now)?);
        }
        Ok(until)
    }

    /// Looks up the certificates of a session, whose chain was verified when it was made, by the names of those who signed
    /// them. `anchors` returns the keys of the authorities with a name.
    pub(crate) fn check_session(
        &self,
        chain: &[CertificateDer<'_>],
        anchors: impl Fn(&[u8]) -> Vec<Vec<u8>>,
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let parsed = chain.iter().map(EndEntityCert::try_from).collect::<Result<Vec<_>, _>>()?;
        let Some(mut current) = parsed.first() else { return Ok(()) };
        for depth in 0..chain.len() {
            let above = parsed.iter().skip(1).filter(|one| one.subject() == current.issuer());
            let above = above.into_iter().find(|one| one.subject() != current.subject());
            let anchors = anchors(current.issuer());
            let is_last = !anchors.is_empty() || self.depth == RevocationDepth::Leaf;
            let keys = anchors.into_iter().chain(above.map(|one| key_of(one)));
            self.check(current, depth > 0, &keys.collect::<Vec<_>>(), now)?;
            match above {
                Some(next) if !is_last => current = next,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    fn check(
        &self,
        certificate: &Cert<'_>,
        is_authority: bool,
        keys: &[Vec<u8>],
        now: UnixTime,
    ) -> Result<UnixSeconds, webpki::Error> {
        let of_issuer =
            self.lists.iter().map(RevocationList::content).filter(|list| list.issuer == certificate.issuer());
        let mut until = None;
        let mut problem = webpki::Error::UnknownRevocationStatus;
        for list in of_issuer.filter(|list| list.covers(certificate, is_authority)) {
            if !keys.iter().any(|key| list.is_signed_by(key)) {
                problem = webpki::Error::InvalidCrlSignatureForPublicKey;
                continue;
            }
            if list.contains(certificate.serial()) {
                return Err(webpki::Error::CertRevoked);
            }
            let next_update = u64::try_from(list.next_update).unwrap_or_default();
            if now.as_secs() >= next_update && !self.accepts_expired {
                let next_update = UnixTime::since_unix_epoch(Duration::from_secs(next_update));
                problem = webpki::Error::CrlExpired { time: now, next_update };
                continue;
            }
            let end = if self.accepts_expired { u64::MAX } else { next_update };
            until = until.max(Some(end));
        }
        match (until, problem) {
            (Some(until), _) => Ok(UnixSeconds(until)),
            (None, webpki::Error::UnknownRevocationStatus) if self.accepts_unknown => {
                Ok(UnixSeconds(u64::MAX))
            }
            (None, problem) => Err(problem),
        }
    }
}

/// The key of a certificate, SubjectPublicKeyInfo without its outermost header.
pub(crate) fn key_of(certificate: &Cert<'_>) -> Vec<u8> {
    let key = certificate.subject_public_key_info();
    Any::from_der(&key).map(|(_, any)| any.data.to_vec()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
