//! The record ciphers, in the place of the library's.
//!
//! The library ends some connections without the alert that RFC 8446 and RFC 5246 demand, and offers no way to send one.
//! It reads a handshake message of up to 64 KiB after the handshake too, where none has more than a few bytes. And it
//! moves each byte of application data through three buffers. So the suites have ciphers of ours, made of the library's
//! AEAD: a connection shares them, seals an alert of its own, and seals and opens application data where it is.

mod key;
mod opener;
mod sealer;

use std::sync::LazyLock;

use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{
    AeadKey, Iv, KeyBlockShape, MessageDecrypter, MessageEncrypter, Tls12AeadAlgorithm, Tls13AeadAlgorithm,
    UnsupportedOperationError,
};
use rustls::{
    CipherSuite, CipherSuiteCommon, ConnectionTrafficSecrets, SupportedCipherSuite, Tls12CipherSuite,
    Tls13CipherSuite,
};

use crate::key_schedule::with_prepared_hashes;
use key::RecordKey;
pub(crate) use opener::{Opened, Opener};
pub use sealer::RecordRoom;
pub(crate) use sealer::{Alert, Sealed, Sealer};

/// The type of a record of application data, and in TLS 1.3 of every sealed one.
const APPLICATION_DATA: u8 = 23;

/// The suite of this code point with our ciphers.
pub(crate) fn suite(code: u16) -> Option<SupportedCipherSuite> {
    suites().iter().find(|suite| u16::from(suite.suite()) == code).copied()
}

/// All suites with our ciphers, in the library's order. They live as long as the program; there are nine.
pub(crate) fn suites() -> &'static [SupportedCipherSuite] {
    static SUITES: LazyLock<Vec<SupportedCipherSuite>> =
        LazyLock::new(|| aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| with_ciphers(*suite)).collect());
    &SUITES
}

fn with_ciphers(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    match with_prepared_hashes(suite) {
        SupportedCipherSuite::Tls13(suite) => {
            let Tls13CipherSuite { common, hkdf_provider, aead_alg, .. } = suite;
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: CipherSuiteCommon { ..*common },
                hkdf_provider: *hkdf_provider,
                aead_alg: Aead::new(*aead_alg, common),
                quic: None,
            })))
        }
        SupportedCipherSuite::Tls12(suite) => {
            let Tls12CipherSuite { common, prf_provider, kx, sign, aead_alg } = suite;
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: CipherSuiteCommon { ..*common },
                prf_provider: *prf_provider,
                kx: *kx,
                sign,
                aead_alg: Aead::new(*aead_alg, common),
            })))
        }
    }
}

/// A suite's algorithm of the library, whose ciphers ours take the place of.
struct Aead<A: ?Sized + 'static> {
    library: &'static A,
    suite: CipherSuite,
    /// Records that may be sealed with a key.
    limit: u64,
}

impl<A: ?Sized> Aead<A> {
    fn new(library: &'static A, common: &CipherSuiteCommon) -> &'static Self {
        let (suite, limit) = (common.suite, common.confidentiality_limit);
        Box::leak(Box::new(Self { library, suite, limit }))
    }
}

impl Tls13AeadAlgorithm for Aead<dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Sealer::start(RecordKey::new(self.suite, &key, [iv.as_ref(), &[]]), self.limit)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Opener::start(RecordKey::new(self.suite, &key, [iv.as_ref(), &[]]))
    }

    fn key_len(&self) -> usize {
        self.library.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.library.extract_keys(key, iv)
    }
}

impl Tls12AeadAlgorithm for Aead<dyn Tls12AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Sealer::start(RecordKey::new(self.suite, &key, [iv, extra]), self.limit)
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Opener::start(RecordKey::new(self.suite, &key, [iv, &[]]))
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.library.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.library.extract_keys(key, iv, explicit)
    }
}
