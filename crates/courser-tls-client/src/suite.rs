//! The lean engine's cipher suites: the library's, with hashing done cheaper.
//!
//! The library hashes through an interface that allocates for each hash and each copy of one, and sets up HMAC anew for
//! each key. Suites with SHA-256 hash their transcripts here on the stack, and derive TLS 1.2's keys from a key that is
//! prepared once; the other suites are as they are. Tests hold both to the library's results.

use std::sync::LazyLock;

use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::crypto::tls12::Prf;
use rustls::crypto::{ActiveKeyExchange, aws_lc_rs};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite, version};
use sha2::{Digest, Sha256};

use courser_tls::internals::mac::{HASH, Key};
use courser_tls::internals::with_prepared_hkdf;

/// The lean engine's version of one of the library's suites.
pub(crate) fn lean(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    static OURS: LazyLock<Vec<LeanSuite>> =
        LazyLock::new(|| aws_lc_rs::ALL_CIPHER_SUITES.iter().filter_map(lean_suite).collect());
    let found = OURS.iter().map(LeanSuite::supported).find(|ours| ours.suite() == suite.suite());
    found.unwrap_or(suite)
}

/// A suite in the library's shape.
enum LeanSuite {
    Tls12(Tls12CipherSuite),
    Tls13(Tls13CipherSuite),
}

impl LeanSuite {
    fn supported(&'static self) -> SupportedCipherSuite {
        match self {
            Self::Tls12(suite) => SupportedCipherSuite::Tls12(suite),
            Self::Tls13(suite) => SupportedCipherSuite::Tls13(suite),
        }
    }
}

/// None for suites with another hash.
fn lean_suite(suite: &SupportedCipherSuite) -> Option<LeanSuite> {
    Some(match with_prepared_hkdf(*suite) {
        SupportedCipherSuite::Tls13(suite) => LeanSuite::Tls13(Tls13CipherSuite {
            common: common(&suite.common)?,
            hkdf_provider: suite.hkdf_provider,
            aead_alg: suite.aead_alg,
            quic: None,
        }),
        SupportedCipherSuite::Tls12(suite) => LeanSuite::Tls12(Tls12CipherSuite {
            common: common(&suite.common)?,
            prf_provider: &PrfSha256,
            kx: suite.kx,
            sign: suite.sign,
            aead_alg: suite.aead_alg,
        }),
    })
}

fn common(suite: &CipherSuiteCommon) -> Option<CipherSuiteCommon> {
    let is_sha256 = suite.hash_provider.algorithm() == HashAlgorithm::SHA256;
    is_sha256.then_some(CipherSuiteCommon { hash_provider: &TranscriptSha256, ..*suite })
}

/// SHA-256.
struct TranscriptSha256;

impl Hash for TranscriptSha256 {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Transcript(Sha256::new()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        Output::new(&Sha256::digest(data))
    }

    fn output_len(&self) -> usize {
        HASH
    }

    fn algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }
}

/// A hash under way.
struct Transcript(Sha256);

impl Context for Transcript {
    fn fork_finish(&self) -> Output {
        Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> Output {
        Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

/// TLS 1.2's pseudorandom function with SHA-256 (RFC 5246, section 5).
struct PrfSha256;

impl Prf for PrfSha256 {
    fn for_key_exchange(
        &self,
        output: &mut [u8; 48],
        exchange: Box<dyn ActiveKeyExchange>,
        share: &[u8],
        label: &[u8],
        seed: &[u8],
    ) -> Result<(), Error> {
        let secret = exchange.complete_for_tls_version(share, &version::TLS12)?;
        self.for_secret(output, secret.secret_bytes(), label, seed);
        Ok(())
    }

    fn for_secret(&self, output: &mut [u8], secret: &[u8], label: &[u8], seed: &[u8]) {
        let key = Key::new(secret);
        let mut link = key.sign([label, seed]);
        let mut chunks = output.chunks_mut(HASH).peekable();
        while let Some(chunk) = chunks.next() {
            chunk.copy_from_slice(&key.sign([&link[..], label, seed])[..chunk.len()]);
            if chunks.peek().is_some() {
                link = key.sign([&link[..]]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;

    fn library() -> &'static Tls12CipherSuite {
        match TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 {
            SupportedCipherSuite::Tls12(suite) => suite,
            SupportedCipherSuite::Tls13(_) => panic!("a TLS 1.2 suite"),
        }
    }

    #[test]
    fn the_pseudorandom_function_is_the_librarys() {
        for length in [1, 12, 31, 32, 33, 40, 48, 64, 104, 200] {
            for secret in [&[1; 32][..], &[2; 48], &[3; 66]] {
                let (mut ours, mut theirs) = (vec![0; length], vec![0; length]);
                PrfSha256.for_secret(&mut ours, secret, b"key expansion", &[4; 64]);
                library().prf_provider.for_secret(&mut theirs, secret, b"key expansion", &[4; 64]);
                assert_eq!(ours, theirs);
            }
        }
    }

    #[test]
    fn the_transcript_is_the_librarys_at_each_step() {
        let library = library().common.hash_provider;
        let (mut ours, mut theirs) = (TranscriptSha256.start(), library.start());
        for length in [0, 1, 63, 64, 65, 300] {
            let data = vec![7; length];
            assert_eq!(TranscriptSha256.hash(&data).as_ref(), library.hash(&data).as_ref());
            ours.update(&data);
            theirs.update(&data);
            assert_eq!(ours.fork_finish().as_ref(), theirs.fork_finish().as_ref());
            let (mut fork, mut other) = (ours.fork(), theirs.fork());
            fork.update(b"x");
            other.update(b"x");
            assert_eq!(fork.finish().as_ref(), other.finish().as_ref());
        }
        assert_eq!(ours.finish().as_ref(), theirs.finish().as_ref());
    }

    #[test]
    fn each_suite_stays_itself() {
        for &suite in aws_lc_rs::ALL_CIPHER_SUITES {
            let ours = lean(suite);
            assert_eq!((ours.suite(), ours.version()), (suite.suite(), suite.version()));
            assert_eq!(ours.tls13().is_some(), suite.tls13().is_some());
        }
    }
}
