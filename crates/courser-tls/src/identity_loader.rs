//! Loads an identity from PEM, and reads from its leaf certificate what a server selects by.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;
use zeroize::Zeroize;

use crate::identity::{Identity, IdentityError, KeyKind};
use crate::pem;
use crate::signing::RecordingKey;

impl Identity {
    /// Takes a chain and its key from the text of PEM files (the same text twice where both stand in one file) and
    /// proves that they belong together.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let of_key = |error| IdentityError::KeyFile(Box::new(error));
        let chain = pem::chain(chain)?;
        let mut key = pem::key(key).map_err(of_key)?;
        let identity = Self::new(chain, &key);
        key.zeroize();
        identity
    }

    pub(crate) fn new(
        chain: Vec<CertificateDer<'static>>,
        key: &PrivateKeyDer<'static>,
    ) -> Result<Self, IdentityError> {
        let signing =
            any_supported_type(key).map_err(|error| IdentityError::UnsupportedKey(error.to_string()))?;
        let certified = CertifiedKey::new(chain, Arc::new(RecordingKey::new(signing)));
        let der = certified.cert.first().ok_or(IdentityError::NoCertificate)?.clone();
        let bad = |text: String| IdentityError::BadCertificate(text);
        let (_, leaf) = X509Certificate::from_der(&der).map_err(|error| bad(error.to_string()))?;
        let (kind, key_algorithm) = key_kind(&leaf)?;
        let names = match leaf.subject_alternative_name() {
            Ok(Some(extension)) => extension.value.general_names.iter().filter_map(dns_name).collect(),
            Ok(None) => Vec::new(),
            Err(error) => return Err(bad(error.to_string())),
        };
        certified.keys_match().map_err(|_| IdentityError::Mismatch)?;
        Ok(Self {
            certified: Arc::new(certified),
            kind,
            names,
            key_algorithm,
            signature_algorithm: hash_of_signature(&leaf.signature_algorithm.algorithm.to_id_string()),
            not_before: leaf.validity().not_before.timestamp(),
            not_after: leaf.validity().not_after.timestamp(),
        })
    }
}

fn dns_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.trim_end_matches('.').to_ascii_lowercase()),
        _ => None,
    }
}

fn key_kind(leaf: &X509Certificate<'_>) -> Result<(KeyKind, String), IdentityError> {
    let key = leaf.public_key();
    if key.algorithm.algorithm.to_id_string() == "1.3.101.112" {
        return Ok((KeyKind::Ed25519, "ED25519".into()));
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => Ok((KeyKind::Rsa, format!("RSA{}", rsa.key_size()))),
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
