//! Whether a private key is the one of a certificate, by the public half that its file carries beside the private one. Reads
//! the few elements of DER that lead there, and proves nothing about the private half.

use rustls::pki_types::PrivateKeyDer;

/// Compares the public half in a key's file with the subjectPublicKeyInfo of a certificate. `None` where the file has none
/// (RFC 5915, section 3, leaves it open; Ed25519 in PKCS#8 version 1 has none), or is of a form that is not read here.
pub(crate) fn is_of(key: &PrivateKeyDer<'_>, public_key_info: &[u8]) -> Option<bool> {
    let mut info = sequence(public_key_info)?;
    let algorithm = element(&mut info, SEQUENCE)?;
    // A BIT STRING begins with the number of its unused bits.
    let public_key = element(&mut info, BIT_STRING)?.strip_prefix(&[0])?;
    match key {
        PrivateKeyDer::Pkcs1(key) => rsa_is(key.secret_pkcs1_der(), public_key),
        PrivateKeyDer::Pkcs8(key) => {
            let mut key = sequence(key.secret_pkcs8_der())?;
            element(&mut key, INTEGER)?;
            let of_key = element(&mut key, SEQUENCE)?;
            let private_key = element(&mut key, OCTET_STRING)?;
            let is_same = match of_key {
                _ if of_key.starts_with(RSA) => rsa_is(private_key, public_key)?,
                _ if of_key.starts_with(EC) => ec_is(private_key, public_key)?,
                _ => return None,
            };
            Some(is_same && of_key == algorithm)
        }
        _ => None,
    }
}

/// RSAPrivateKey (RFC 8017, appendix A.1.2) and RSAPublicKey (A.1.1): modulus and public exponent.
fn rsa_is(private_key: &[u8], public_key: &[u8]) -> Option<bool> {
    let (mut private_key, mut public_key) = (sequence(private_key)?, sequence(public_key)?);
    element(&mut private_key, INTEGER)?;
    let numbers =
        |key: &mut &'_ [u8]| Some([element(key, INTEGER)?.to_vec(), element(key, INTEGER)?.to_vec()]);
    Some(numbers(&mut private_key)? == numbers(&mut public_key)?)
}

/// ECPrivateKey (RFC 5915, section 3).
fn ec_is(private_key: &[u8], public_key: &[u8]) -> Option<bool> {
    let mut key = sequence(private_key)?;
    element(&mut key, INTEGER)?;
    element(&mut key, OCTET_STRING)?;
    // The parameters, which stand in the algorithm already.
    let _ = element(&mut key, CONTEXT_0);
    let point = element(&mut element(&mut key, CONTEXT_1)?, BIT_STRING)?.strip_prefix(&[0])?;
    Some(point == public_key)
}

/// The contents of a SEQUENCE.
fn sequence(mut bytes: &[u8]) -> Option<&[u8]> {
    element(&mut bytes, SEQUENCE)
}

/// Takes an element of this tag from the head of `bytes`, and returns its contents (X.690, section 8.1).
fn element<'a>(bytes: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (&[found, first], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => {
            let (&[len], rest) = rest.split_first_chunk()?;
            (usize::from(len), rest)
        }
        0x82 => {
            let (&len, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(len)), rest)
        }
        // No key has 64 KiB.
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(len).filter(|_| found == tag)?;
    *bytes = rest;
    Some(contents)
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_1: u8 = 0xa1;

/// rsaEncryption (RFC 8017, appendix A.1).
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
/// id-ecPublicKey (RFC 5480, section 2.1.1).
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
