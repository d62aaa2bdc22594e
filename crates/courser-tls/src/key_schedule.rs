//! The hashing of a handshake, done cheaper than by the library: HKDF for TLS 1.3's key schedule (RFC 5869; RFC 8446,
//! section 7.1), the pseudorandom function of TLS 1.2 (RFC 5246, section 5), and the hash of the transcript.
//!
//! A full handshake expands some twenty secrets, several from the same key. The library sets HMAC up from scratch for each,
//! and allocates for each copy of a hash. Here the two halves of a key are hashed once, an expansion is two compressions,
//! and a hash is a value. The tests hold all of it to the library's own, byte for byte.

use std::iter::once;
use std::sync::LazyLock;

use rustls::crypto::hash::{self, Context, HashAlgorithm};
use rustls::crypto::hmac::Tag;
use rustls::crypto::tls12::Prf;
use rustls::crypto::tls13::{Hkdf, HkdfExpander, OkmBlock, OutputLengthError};
use rustls::crypto::{ActiveKeyExchange, aws_lc_rs};
use rustls::{CipherSuiteCommon, Error, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite, version};
use sha2::Digest;
use zeroize::Zeroize;

use crate::mac::{Function, Key, Sha256, Sha384};

/// The suite with the hashing of this module.
pub fn with_prepared_hashes(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    static OURS: LazyLock<Vec<SupportedCipherSuite>> =
        LazyLock::new(|| aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| prepared(*suite)).collect());
    OURS.iter().find(|ours| ours.suite() == suite.suite()).copied().unwrap_or(suite)
}

fn prepared(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let hash = match suite {
        SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
        SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
    };
    match hash.algorithm() {
        HashAlgorithm::SHA256 => SHA256.suite(suite, has_sha256()),
        HashAlgorithm::SHA384 => SHA384.suite(suite, true),
        _ => suite,
    }
}

/// The processor has instructions for SHA-256. Without them the library's assembly is faster for all but
/// the short messages of HKDF.
fn has_sha256() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("sha");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

static SHA256: Hashing<Sha256> = Hashing::new();
static SHA384: Hashing<Sha384> = Hashing::new();

/// A secret that there is not (RFC 8446, section 7.1): as many of these zeros as a hash has bytes.
const ZEROS: [u8; 64] = [0; 64];

/// All that a handshake does with one hash function.
struct Hashing<F: Function> {
    /// The early secret of every handshake that resumes nothing (RFC 8446, section 7.1).
    early: LazyLock<Key<F>>,
}

impl<F: Function> Hashing<F> {
    const fn new() -> Self {
        Self { early: LazyLock::new(|| extract(&[], &ZEROS[..F::HASH])) }
    }

    /// The suite with this HKDF; with this transcript and pseudorandom function as well if they are faster. It lives as
    /// long as the program.
    fn suite(&'static self, suite: SupportedCipherSuite, faster: bool) -> SupportedCipherSuite {
        let common = |theirs: &CipherSuiteCommon| CipherSuiteCommon {
            hash_provider: if faster { self } else { theirs.hash_provider },
            ..*theirs
        };
        match suite {
            SupportedCipherSuite::Tls13(theirs) => {
                let common = common(&theirs.common);
                let ours = Tls13CipherSuite { common, hkdf_provider: self, quic: None, ..*theirs };
                SupportedCipherSuite::Tls13(Box::leak(Box::new(ours)))
            }
            SupportedCipherSuite::Tls12(theirs) if faster => {
                let common = common(&theirs.common);
                let ours = Tls12CipherSuite { common, prf_provider: self, ..*theirs };
                SupportedCipherSuite::Tls12(Box::leak(Box::new(ours)))
            }
            SupportedCipherSuite::Tls12(_) => suite,
        }
    }
}

impl<F: Function> hash::Hash for Hashing<F> {
    fn start(&self) -> Box<dyn Context> {
        Box::new(Transcript(F::Digest::new()))
    }

    fn hash(&self, data: &[u8]) -> hash::Output {
        hash::Output::new(&F::Digest::digest(data))
    }

    fn output_len(&self) -> usize {
        F::HASH
    }

    fn algorithm(&self) -> HashAlgorithm {
        F::ALGORITHM
    }
}

/// A hash under way.
struct Transcript<D>(D);

impl<D: Digest + Clone + Send + Sync + 'static> Context for Transcript<D> {
    fn fork_finish(&self) -> hash::Output {
        hash::Output::new(&self.0.clone().finalize())
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.clone()))
    }

    fn finish(self: Box<Self>) -> hash::Output {
        hash::Output::new(&self.0.finalize())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }
}

impl<F: Function> Prf for Hashing<F> {
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
        let key = Key::<F>::new(secret);
        let mut link = key.sign([label, seed]);
        let mut chunks = output.chunks_mut(F::HASH).peekable();
        while let Some(chunk) = chunks.next() {
            chunk.copy_from_slice(&key.sign([link.as_ref(), label, seed]).as_ref()[..chunk.len()]);
            if chunks.peek().is_some() {
                link = key.sign([link.as_ref()]);
            }
        }
    }
}

impl<F: Function> Hkdf for Hashing<F> {
    fn extract_from_zero_ikm(&self, salt: Option<&[u8]>) -> Box<dyn HkdfExpander> {
        Box::new(Expander(match salt {
            None => self.early.clone(),
            Some(salt) => extract(salt, &ZEROS[..F::HASH]),
        }))
    }

    /// No salt is one of zeros (RFC 5869, section 2.2), and so is, for HMAC, an empty key.
    fn extract_from_secret(&self, salt: Option<&[u8]>, secret: &[u8]) -> Box<dyn HkdfExpander> {
        Box::new(Expander::<F>(extract(salt.unwrap_or_default(), secret)))
    }

    fn expander_for_okm(&self, okm: &OkmBlock) -> Box<dyn HkdfExpander> {
        Box::new(Expander::<F>(Key::new(okm.as_ref())))
    }

    fn hmac_sign(&self, key: &OkmBlock, message: &[u8]) -> Tag {
        Tag::new(Key::<F>::new(key.as_ref()).sign([message]).as_ref())
    }
}

/// A pseudorandom key (RFC 5869, section 2.2).
fn extract<F: Function>(salt: &[u8], secret: &[u8]) -> Key<F> {
    let mut pseudorandom = Key::<F>::new(salt).sign([secret]);
    let key = Key::new(pseudorandom.as_ref());
    pseudorandom.as_mut().zeroize();
    key
}

/// A pseudorandom key, as HMAC holds it.
struct Expander<F: Function>(Key<F>);

impl<F: Function> Expander<F> {
    /// T(counter), from the block before it (RFC 5869, section 2.3).
    fn block(&self, previous: &[u8], info: &[&[u8]], counter: u8) -> F::Hash {
        self.0.sign(once(previous).chain(info.iter().copied()).chain(once(&[counter][..])))
    }
}

impl<F: Function> HkdfExpander for Expander<F> {
    fn expand_slice(&self, info: &[&[u8]], output: &mut [u8]) -> Result<(), OutputLengthError> {
        if output.len() > usize::from(u8::MAX) * F::HASH {
            return Err(OutputLengthError);
        }
        let mut previous: Option<F::Hash> = None;
        for (chunk, counter) in output.chunks_mut(F::HASH).zip(1..=u8::MAX) {
            let block = self.block(previous.as_ref().map_or(&[], AsRef::as_ref), info, counter);
            chunk.copy_from_slice(&block.as_ref()[..chunk.len()]);
            previous = Some(block);
        }
        Ok(())
    }

    fn expand_block(&self, info: &[&[u8]]) -> OkmBlock {
        OkmBlock::new(self.block(&[], info, 1).as_ref())
    }

    fn hash_len(&self) -> usize {
        F::HASH
    }
}

#[cfg(test)]
mod tests;
