//! Hashes, and the derivation of keys from secrets (HKDF: RFC 5869). The server has an HKDF of its own where the
//! hash is SHA-256; the library's is what stands here.

use std::hint::black_box;

use aws_lc_rs::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA384, SHA512};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, HKDF_SHA384, KeyType, Prk, Salt};
use aws_lc_rs::hmac::{self, HMAC_SHA256, HMAC_SHA384};

use super::operation::{Family, Primitive, Run, SIZES};

/// What TLS 1.3 expands with, as to a traffic secret: a length, a label, a transcript's hash (RFC 8446, section 7.1).
const INFO: [u8; 53] = [5; 53];

pub(super) fn all() -> Vec<Primitive> {
    let mut all = Vec::new();
    // SHA-1 is there to be laid beside what was published when it was new.
    let hashes = [
        ("SHA-1", &SHA1_FOR_LEGACY_USE_ONLY),
        ("SHA-256", &SHA256),
        ("SHA-384", &SHA384),
        ("SHA-512", &SHA512),
    ];
    for (name, algorithm) in hashes {
        all.extend(sized(name, move |bytes| hash(algorithm, bytes)));
    }
    for (name, algorithm) in [("HMAC-SHA-256", HMAC_SHA256), ("HMAC-SHA-384", HMAC_SHA384)] {
        all.extend(sized(name, move |bytes| keyed_hash(algorithm, bytes)));
    }
    all.extend(derivations());
    all
}

/// Expansion to a nonce's base, a cipher's key, a secret. The library puts an extraction off until something is expanded
/// from it, so the two come together.
fn derivations() -> [Primitive; 7] {
    let derive = |name, bytes, prepare: fn(usize) -> Run| {
        Primitive::new(name, Family::Kdf, Some(bytes), move || prepare(bytes))
    };
    let (short, long) = (|bytes| expand(HKDF_SHA256, bytes), |bytes| expand(HKDF_SHA384, bytes));
    [
        derive("HKDF-SHA-256 extract and expand", 32, |bytes| extract(HKDF_SHA256, bytes)),
        derive("HKDF-SHA-256 expand", 12, short),
        derive("HKDF-SHA-256 expand", 16, short),
        derive("HKDF-SHA-256 expand", 32, short),
        derive("HKDF-SHA-384 extract and expand", 48, |bytes| extract(HKDF_SHA384, bytes)),
        derive("HKDF-SHA-384 expand", 32, long),
        derive("HKDF-SHA-384 expand", 48, long),
    ]
}

fn sized(name: &'static str, make: impl Fn(usize) -> Run + Copy + 'static) -> [Primitive; SIZES.len()] {
    SIZES.map(|bytes| Primitive::new(name, Family::Digest, Some(bytes), move || make(bytes)))
}

fn hash(algorithm: &'static digest::Algorithm, bytes: usize) -> Run {
    let data = vec![3; bytes];
    Box::new(move || black_box(digest::digest(algorithm, &data)).as_ref().len() == algorithm.output_len())
}

fn keyed_hash(algorithm: hmac::Algorithm, bytes: usize) -> Run {
    let key = hmac::Key::new(algorithm, &[4; 32]);
    let data = vec![3; bytes];
    Box::new(move || black_box(hmac::sign(&key, &data)).as_ref().len() == algorithm.tag_len())
}

fn extract(algorithm: hkdf::Algorithm, bytes: usize) -> Run {
    let (salt, secret) = (vec![1; bytes], vec![2; bytes]);
    let mut key = vec![0; bytes];
    Box::new(move || {
        let extracted = Salt::new(algorithm, &salt).extract(&secret);
        extracted.expand(&[&INFO], Length(bytes)).is_ok_and(|expanded| expanded.fill(&mut key).is_ok())
    })
}

fn expand(algorithm: hkdf::Algorithm, bytes: usize) -> Run {
    let secret = Prk::new_less_safe(algorithm, &[6; 48]);
    let mut key = vec![0; bytes];
    Box::new(move || {
        secret.expand(&[&INFO], Length(bytes)).is_ok_and(|expanded| expanded.fill(&mut key).is_ok())
    })
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
