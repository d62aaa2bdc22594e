//! Loads an identity from PEM, and reads from its leaf certificate what a server selects by.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use zeroize::Zeroize;

use crate::identity::{Identity, IdentityError, KeyKind};
use crate::serial::serial;
use crate::signing::RecordingKey;
use crate::{issuers, pem, public_half, staple};

impl Identity {
    /// Takes a chain and its key from the text of PEM files (the same text twice where both stand in one file) and
    /// proves that they belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Self::parse(chain, key, false)
    }

    /// As [`Self::from_pem`], for one of very many: where the key's file has the public half too, that has to be the one of the
    /// certificate, and the private half is looked at when a handshake first needs it. One that is damaged fails that handshake.
    pub fn from_pem_at_rest(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        Self::parse(chain, key, true)
    }

    fn parse(chain: &[u8], key: &[u8], may_rest: bool) -> Result<Self, IdentityError> {
        let of_key = |error| IdentityError::KeyFile(Box::new(error));
        let (chain, mut key) = match std::ptr::eq(chain, key) {
            true => pem::chain_and_key(chain)?,
            false => (pem::chain(chain)?, pem::key(key).map_err(of_key)?),
        };
        let identity = Self::of(chain, &key, may_rest);
        key.zeroize();
        identity
    }

    pub(crate) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        Self::of(chain, key, false)
    }

    pub(crate) fn of(
        mut chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
        may_rest: bool,
    ) -> Result<Self, IdentityError> {
        let der = chain.first().ok_or(IdentityError::NoCertificate)?;
        let bad = |text: String| IdentityError::BadCertificate(text);
        let (_, leaf) = X509Certificate::from_der(der).map_err(|error| bad(error.to_string()))?;
        let (kind, key_algorithm) = key_kind(&leaf)?;
        let mut names: Vec<String> = match leaf.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.iter().filter_map(dns_name).collect(),
            Ok(None) => Vec::new(),
            Err(error) => return Err(bad(error.to_string())),
        };
        // It has grown, to room for four.
        names.shrink_to_fit();
        let signature_algorithm = hash_of_signature(&leaf.signature_algorithm.algorithm.to_id_string());
        let validity = leaf.validity();
        let (not_before, not_after) = (validity.not_before.timestamp(), validity.not_after.timestamp());
        let (serial, must_staple) = (serial(leaf.raw_serial()), staple::is_demanded(&leaf));
        let rests =
            may_rest && is_usable(&leaf) && public_half::is_of(key, leaf.public_key().raw) == Some(true);
        let unsupported = |error: rustls::Error| IdentityError::UnsupportedKey(error.to_string());
        let key = match rests {
            true => RecordingKey::at_rest(key, kind),
            false => RecordingKey::new(key).map_err(unsupported)?,
        };
        issuers::share(&mut chain);
        let certified = CertifiedKey::new(chain, Arc::new(key));
        if !rests {
            certified.keys_match().map_err(|_| IdentityError::Mismatch)?;
        }
        Ok(Self {
            certified: Arc::new(certified),
            stapled: None,
            serial,
            must_staple,
            kind,
            names,
            key_algorithm,
            signature_algorithm,
            not_before,
            not_after,
        })
    }
}

/// Whether the library can sign with the key of the certificate, of whose kind it is known that it can: with RSA from 2048 to
/// 8192 bits.
fn is_usable(leaf: &X509Certificate<'_>) -> bool {
    match leaf.public_key().parsed() {
        Ok(PublicKey::RSA(rsa)) => (2048..=8192).contains(&rsa.key_size()),
        Ok(PublicKey::EC(_)) => true,
        _ => false,
    }
}

fn dns_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.trim_end_matches('.').to_ascii_lowercase()),
        _ => None,
    }
}

fn key_kind(leaf: &X509Certificate<'_>) -> Result<(KeyKind, Box<str>), IdentityError> {
    let key = leaf.public_key();
    if key.algorithm.algorithm.to_id_string() == "1.3.101.112" {
        return Ok((KeyKind::Ed25519, "ED25519".into()));
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => Ok((KeyKind::Rsa, format!("RSA{}", rsa.key_size()).into())),
        Ok(PublicKey::EC(point)) => match point.key_size() {
            256 => Ok((KeyKind::EcdsaP256, "EC256".into())),
            384 => Ok((KeyKind::EcdsaP384, "EC384".into())),
            521 | 528 => Ok((KeyKind::EcdsaP521, "EC521".into())),
            bits => Err(IdentityError::UnsupportedKey(format!("an elliptic curve of {bits} bits"))),
        },
        Ok(_) => Err(IdentityError::UnsupportedKey("neither RSA, ECDSA nor Ed25519".into())),
        Err(error) => Err(IdentityError::BadCertificate(error.to_string())),
    }
}

/// The hash in a signature algorithm's object identifier (RFC 4055, RFC 5758).
fn hash_of_signature(oid: &str) -> Option<&'static str> {
    Some(match oid {
        "1.2.840.113549.1.1.5" | "1.2.840.10045.4.1" => "SHA1",
        "1.2.840.113549.1.1.11" | "1.2.840.10045.4.3.2" => "SHA256",
        "1.2.840.113549.1.1.12" | "1.2.840.10045.4.3.3" => "SHA384",
        "1.2.840.113549.1.1.13" | "1.2.840.10045.4.3.4" => "SHA512",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use courser_testkit::{KeyType, Leaf, TestCa};
    use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
    use rustls::SignatureScheme;
    use rustls::pki_types::pem::PemObject;
    use rustls::sign::Signer;

    use super::*;

    const OFFERED: [SignatureScheme; 4] = [
        SignatureScheme::ECDSA_NISTP256_SHA256,
        SignatureScheme::ECDSA_NISTP384_SHA384,
        SignatureScheme::RSA_PSS_SHA256,
        SignatureScheme::ED25519,
    ];

    fn signer(identity: &Identity) -> Box<dyn Signer> {
        identity.certified.key.choose_scheme(&OFFERED).expect("a scheme for each kind is offered")
    }

    #[test]
    fn a_key_at_rest_signs_as_one_that_is_ready_and_belongs_to_its_certificate_alone() {
        let ca = TestCa::new();
        for kind in [KeyType::EcdsaP256, KeyType::EcdsaP384, KeyType::Rsa2048, KeyType::Ed25519] {
            let issued = ca.issue(&Leaf::new(kind));
            let (chain, key) = (issued.chain_pem.as_bytes(), issued.key_pem.as_bytes());
            let ready = Identity::from_pem(chain, key).expect("they belong together");
            let at_rest = Identity::from_pem_at_rest(chain, key).expect("they belong together");
            assert_eq!(signer(&ready).scheme(), signer(&at_rest).scheme());
            assert!(signer(&at_rest).sign(b"message").is_ok());
            assert_eq!(ready.certified.key.public_key(), at_rest.certified.key.public_key());
            // Of RSA the authority of the tests has one key for all.
            let other = match kind {
                KeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)
                    .expect("the library makes keys")
                    .serialize_pem(),
                _ => ca.issue(&Leaf::new(kind)).key_pem,
            };
            let mismatch = Identity::from_pem_at_rest(chain, other.as_bytes());
            assert_eq!(mismatch.err(), Some(IdentityError::Mismatch), "{kind:?}");
        }
    }

    #[test]
    fn a_hundred_thousand_certificates_have_no_empty_places() {
        // Behind the two counters of an Arc they fill one of the allocator's sizes each, 128 and 80 bytes.
        assert!(size_of::<Identity>() <= 112, "{}", size_of::<Identity>());
        assert!(size_of::<RecordingKey>() <= 64, "{}", size_of::<RecordingKey>());
    }

    #[test]
    fn a_chain_and_its_key_in_one_file_are_read_as_in_two() {
        let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256));
        let (chain, key) = (issued.chain_pem.as_str(), issued.key_pem.as_str());
        let encrypted = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        let (no_base64, cut) = (key.replacen('\n', "\n%", 1), &key[..key.len() / 2]);
        let parts = ["", "text\n", chain, key, &encrypted, &no_base64, cut];
        for (one, other) in parts.iter().flat_map(|one| parts.iter().map(move |other| (one, other))) {
            let text = [*one, *other].concat();
            let copy = text.clone();
            let read = |key: &str| Identity::from_pem(text.as_bytes(), key.as_bytes()).map(|read| read.names);
            assert_eq!(read(&text), read(&copy), "{text}");
        }
    }

    #[test]
    fn a_damaged_key_is_refused_when_it_is_read_and_at_rest_when_it_signs() {
        let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256));
        let chain = || pem::chain(issued.chain_pem.as_bytes()).expect("a chain");
        let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).expect("a key");
        let mut damaged = key.secret_der().to_vec();
        // The middle of its private half, which begins behind 36 bytes.
        damaged[50] ^= 1;
        let damaged = PrivateKeyDer::Pkcs8(damaged.into());
        assert!(matches!(Identity::new(chain(), &damaged), Err(IdentityError::UnsupportedKey(_))));
        let at_rest = Identity::of(chain(), &damaged, true).expect("its public half is as it was");
        assert!(signer(&at_rest).sign(b"message").is_err());
    }
}
