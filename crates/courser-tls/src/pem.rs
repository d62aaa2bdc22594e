//! PEM files of certificates and keys: what is inside, or what is wrong with it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::identity::IdentityError;

/// Largest file read, 1 MiB: a chain is a few kilobytes, and a wrong path (a log, a device) must not fill the memory.
const LIMIT: u64 = 1 << 20;

/// Permission bits that let others than owner and group read a file.
const OTHERS_READ: u32 = 0o004;

/// The certificates in `path`, leaf first.
pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let (text, _) = read(path)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err(IdentityError::NoCertificate),
        Ok(chain) => Ok(chain),
        Err(error) => Err(bad(&error)),
    }
}

/// The private key in `path`, in PKCS#8, PKCS#1 or SEC1.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    let (text, mode) = read(path)?;
    if mode & OTHERS_READ != 0 {
        return Err(IdentityError::OthersCanRead { mode: mode & 0o7777 });
    }
    if is_encrypted(&text) {
        return Err(IdentityError::EncryptedKey);
    }
    match PrivateKeyDer::from_pem_slice(&text) {
        Ok(key) => Ok(key),
        Err(Error::NoItemsFound) => Err(IdentityError::NoKey),
        Err(error) => Err(bad(&error)),
    }
}

/// The library shows lines as lists of bytes; and of a key's file nothing should be shown at all.
fn bad(error: &Error) -> IdentityError {
    IdentityError::BadPem(match error {
        Error::MissingSectionEnd { .. } => "a section has no end".into(),
        Error::IllegalSectionStart { .. } => "the first line of a section is wrong".into(),
        Error::Base64Decode(_) => "a section is not base64".into(),
        other => other.to_string(),
    })
}

/// The file's text, wiped when done with, and its permission bits.
fn read(path: &Path) -> Result<(Zeroizing<Vec<u8>>, u32), IdentityError> {
    let unreadable = |error: std::io::Error| IdentityError::Unreadable(error.to_string());
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.permissions().mode();
    // Large enough at once: a buffer that grows leaves copies of the key behind.
    let size = usize::try_from(metadata.len().min(LIMIT) + 1).unwrap_or_default();
    let mut text = Zeroizing::new(Vec::with_capacity(size));
    file.take(LIMIT + 1).read_to_end(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LIMIT {
        return Err(IdentityError::TooLarge);
    }
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(IdentityError::Empty);
    }
    Ok((text, mode))
}

/// PKCS#8's own label, or the header of OpenSSL's older form (RFC 1421, section 4.6.1.1).
fn is_encrypted(text: &[u8]) -> bool {
    let holds = |needle: &[u8]| text.windows(needle.len()).any(|window| window == needle);
    holds(b"BEGIN ENCRYPTED PRIVATE KEY") || holds(b"Proc-Type: 4,ENCRYPTED")
}
