//! Parses the text of PEM files of certificates and keys. Reads no file: the caller checks who may read a key.

use rustls::pki_types::pem::{Error, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::identity::IdentityError;

/// The certificates in `text`, leaf first.
pub fn chain(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    not_empty(text)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(IdentityError::NoCertificate),
        Ok(mut chain) => {
            // It has grown: a hundred thousand certificates would have as many empty places.
            chain.shrink_to_fit();
            Ok(chain)
        }
        Err(error) => Err(bad(&error)),
    }
}

/// Both where they stand in one text, of which each section is decoded once.
pub(crate) fn chain_and_key(
    text: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), IdentityError> {
    not_empty(text)?;
    let (mut chain, mut first_key) = (Vec::with_capacity(1), None);
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(text) {
        let (kind, der) = section.map_err(|error| bad(&error))?;
        match kind {
            SectionKind::Certificate => chain.push(der.into()),
            _ if first_key.is_none() => first_key = PrivateKeyDer::from_pem(kind, der),
            _ => {}
        }
    }
    if chain.is_empty() {
        return Err(IdentityError::NoCertificate);
    }
    chain.shrink_to_fit();
    let no_key = || if is_encrypted(text) { IdentityError::EncryptedKey } else { IdentityError::NoKey };
    let key = first_key.ok_or_else(|| IdentityError::KeyFile(Box::new(no_key())))?;
    Ok((chain, key))
}

/// The private key in `text`, in PKCS#8, PKCS#1 or SEC1.
pub fn key(text: &[u8]) -> Result<PrivateKeyDer<'static>, IdentityError> {
    not_empty(text)?;
    match PrivateKeyDer::from_pem_slice(text) {
        Ok(key) => Ok(key),
        Err(_) if is_encrypted(text) => Err(IdentityError::EncryptedKey),
        Err(Error::NoItemsFound) => Err(IdentityError::NoKey),
        Err(error) => Err(bad(&error)),
    }
}

/// The library prints lines as lists of bytes; and of a key's file nothing may be printed at all.
fn bad(error: &Error) -> IdentityError {
    IdentityError::BadPem(match error {
        Error::MissingSectionEnd { .. } => "a section has no end".into(),
        Error::IllegalSectionStart { .. } => "the first line of a section is wrong".into(),
        Error::Base64Decode(_) => "a section is not base64".into(),
        other => other.to_string(),
    })
}

/// The library would report a missing certificate or key instead.
fn not_empty(text: &[u8]) -> Result<(), IdentityError> {
    if text.iter().all(u8::is_ascii_whitespace) { Err(IdentityError::Empty) } else { Ok(()) }
}

/// PKCS#8's own label, or the header of OpenSSL's older form (RFC 1421, section 4.6.1.1).
fn is_encrypted(text: &[u8]) -> bool {
    let holds = |needle: &[u8]| text.windows(needle.len()).any(|window| window == needle);
    holds(b"BEGIN ENCRYPTED PRIVATE KEY") || holds(b"Proc-Type: 4,ENCRYPTED")
}
