//! HKDF with SHA-256 for TLS 1.3's key schedule (RFC 5869; RFC 8446, section 7.1).
//!
//! A full handshake expands some twenty secrets, several from the same key. The library's HKDF sets HMAC up from
//! scratch for each; here the two halves of the key are hashed once per key, and an expansion is two compressions.
//! The test holds it to the library's own, byte for byte.

use std::iter::once;
use std::sync::{LazyLock, OnceLock};

use rustls::crypto::aws_lc_rs::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256};
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls13CipherSuite};
use zeroize::Zeroize;

use crate::mac::{HASH, Key};

/// HKDF-SHA-256.
#[derive(Debug)]
pub(crate) struct HkdfSha256;

impl Hkdf for HkdfSha256 {
    /// Without a salt this is the early secret of every handshake that resumes nothing (RFC 8446, section 7.1).
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        static EARLY: LazyLock<Key> = LazyLock::new(|| extract(&[0; HASH], &[0; HASH]));
        Box::new(Expander(match salt {
            None => EARLY.clone(),
            Some(salt) => extract(salt, &[0; HASH]),
        }))
    }

    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Expander(extract(salt.unwrap_or(&[0; HASH]), secret)))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Expander(Key::new(okm.as_ref())))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        Tag::new(&Key::new(key.as_ref()).sign([message]))
    }
}

/// A pseudorandom key (RFC 5869, section 2.2).
fn extract(salt: &[u8], secret: &[u8]) -> Key {
    let mut pseudorandom = Key::new(salt).sign([secret]);
    let key = Key::new(&pseudorandom);
    pseudorandom.zeroize();
    key
}

/// A pseudorandom key, as HMAC holds it.
struct Expander(Key);

impl Expander {
    /// T(counter), from the block before it (RFC 5869, section 2.3).
    fn block(&self, previous: &[u8], info: &[&[u8]], counter: u8) -> [u8; HASH] {
        self.0.sign(once(previous).chain(info.iter().copied()).chain(once(&[counter][..])))
    }
}

impl HkdfExpander for Expander {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if output.len() > usize::from(u8::MAX) * HASH {
            return Err(OutputLengthError);
        }
        let mut previous: Option<[u8; HASH]> = None;
        for (chunk, counter) in output.chunks_mut(HASH).zip(1..=u8::MAX) {
            let block = self.block(previous.as_ref().map_or(&[], |block| &block[..]), info, counter);
            chunk.copy_from_slice(&block[..chunk.len()]);
            previous = Some(block);
        }
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        OkmBlock::new(&self.block(&[], info, 1))
    }

    fn hash_len(&self) -> usize {
        HASH
    }
}

/// The suite with this key schedule if it is one of TLS 1.3 with SHA-256; others are returned as they are.
pub fn with_prepared_hkdf(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    static OURS: OnceLock<[Tls13CipherSuite; 2]> = OnceLock::new();
    let ours = OURS.get_or_init(|| {
        [TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256].map(|suite| {
            let Tls13CipherSuite { common, aead_alg, .. } = suite.tls13().expect("both are TLS 1.3 suites");
            let common = CipherSuiteCommon { ..*common };
            Tls13CipherSuite { common, aead_alg: *aead_alg, hkdf_provider: &HkdfSha256, quic: None }
        })
    });
    let known = ours.iter().find(|known| known.common.suite == suite.suite());
    known.map_or(suite, SupportedCipherSuite::Tls13)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library() -> &'static dyn Hkdf {
        TLS13_AES_128_GCM_SHA256.tls13().expect("a TLS 1.3 suite").hkdf_provider
    }

    fn outputs(expander: &dyn HkdfExpander) -> Vec<Vec<u8>> {
        let infos: [&[&[u8]]; 3] = [&[], &[b"tls13 ", b"derived", &[7; 32]], &[&[9; 300]]];
        let mut outputs = Vec::new();
        for info in infos {
            outputs.push(expander.expand_block(info).as_ref().to_vec());
            for length in [1, 12, 16, 31, 32, 33, 64, 200, 255 * 32] {
                let mut output = vec![0; length];
                expander.expand_slice(info, &mut output).expect("within the limit");
                outputs.push(output);
            }
        }
        outputs
    }

    #[test]
    fn every_output_is_the_librarys() {
        for salt in [None, Some(&[1; 32][..]), Some(&[2; 100][..])] {
            let (ours, theirs) =
                (HkdfSha256.extract_from_zero_ikm(salt), library().extract_from_zero_ikm(salt));
            assert_eq!(outputs(&*ours), outputs(&*theirs));
            for secret in [&[3; 32][..], &[4; 64], &[]] {
                let ours = HkdfSha256.extract_from_secret(salt, secret);
                assert_eq!(outputs(&*ours), outputs(&*library().extract_from_secret(salt, secret)));
            }
        }
        let okm = OkmBlock::new(&[5; 32]);
        let (ours, theirs) = (HkdfSha256.expander_for_okm(&okm), library().expander_for_okm(&okm));
        assert_eq!(outputs(&*ours), outputs(&*theirs));
        assert_eq!(HkdfSha256.hmac_sign(&okm, b"x").as_ref(), library().hmac_sign(&okm, b"x").as_ref());
    }

    #[test]
    fn more_than_255_blocks_are_refused() {
        let mut output = vec![0; 255 * 32 + 1];
        assert!(HkdfSha256.extract_from_zero_ikm(None).expand_slice(&[], &mut output).is_err());
    }
}
