//! The library's record ciphers, wrapped.
//!
//! The library ends some connections without the alert that RFC 8446 and RFC 5246 demand, and offers no way to send one.
//! And it reads a handshake message of up to 64 KiB after the handshake too, where none has more than a few bytes. So
//! its ciphers are wrapped: a connection shares the sealing cipher and can seal an alert of its own, and the opening
//! cipher checks the length in the header of a handshake message. Neither touches a byte of application data.

mod opener;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{
    AeadKey, Iv, KeyBlockShape, MessageDecrypter, MessageEncrypter, OutboundChunks, OutboundOpaqueMessage,
    OutboundPlainMessage, Tls12AeadAlgorithm, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, ProtocolVersion, SupportedCipherSuite,
    Tls12CipherSuite, Tls13CipherSuite,
};

use crate::key_schedule::with_prepared_hashes;
use opener::Opener;

/// The server's suite of this code point.
pub(crate) fn suite(code: u16) -> Option<SupportedCipherSuite> {
    static SUITES: LazyLock<Vec<SupportedCipherSuite>> =
        LazyLock::new(|| aws_lc_rs::ALL_CIPHER_SUITES.iter().map(|suite| wrapped(*suite)).collect());
    SUITES.iter().find(|suite| u16::from(suite.suite()) == code).copied()
}

/// Suites live as long as the program; there are nine.
fn wrapped(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    match with_prepared_hashes(suite) {
        SupportedCipherSuite::Tls13(suite) => {
            let Tls13CipherSuite { common, hkdf_provider, aead_alg, .. } = suite;
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: CipherSuiteCommon { ..*common },
                hkdf_provider: *hkdf_provider,
                aead_alg: Box::leak(Box::new(WrappedAead(*aead_alg))),
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
                aead_alg: Box::leak(Box::new(WrappedAead(*aead_alg))),
            })))
        }
    }
}

/// What seals a connection's records at present.
#[derive(Clone)]
pub(crate) struct Sealer(Arc<Mutex<Sealing>>);

struct Sealing {
    cipher: Box<dyn MessageEncrypter>,
    version: ProtocolVersion,
    /// Sequence number of the next record.
    next: u64,
    /// An alert has been sealed: close_notify, or one that ends the connection.
    alert_sent: bool,
    /// The KeyUpdate before these keys, until the library sends it with the next record.
    key_update: Vec<u8>,
}

/// Result of sealing an alert.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Alert {
    /// The bytes of its record, and of what has to go in front.
    Sealed(Vec<u8>),
    /// An alert has been sent already, and nothing may follow it (RFC 8446, section 6).
    AlreadySent,
    /// Nothing is sealed yet: it leaves in the clear.
    InTheClear,
}

thread_local! {
    /// Created by the library within the current call on this thread, which passes it no context.
    static LATEST: RefCell<Option<Sealer>> = const { RefCell::new(None) };

    /// Whether there is one: most calls make none, and find that out in an instruction.
    static IS_NEW: Cell<bool> = const { Cell::new(false) };

    /// The KeyUpdate that this thread has just sealed; its connection's next keys are made at once.
    static KEY_UPDATE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Sealer {
    fn start(cipher: Box<dyn MessageEncrypter>, version: ProtocolVersion) -> Box<dyn MessageEncrypter> {
        let key_update = KEY_UPDATE.take();
        let sealing = Sealing { cipher, version, next: 0, alert_sent: false, key_update };
        let sealer = Self(Arc::new(Mutex::new(sealing)));
        LATEST.set(Some(sealer.clone()));
        IS_NEW.set(true);
        Box::new(sealer)
    }

    /// The one that the library has made last on this thread, once.
    pub(crate) fn take_latest() -> Option<Self> {
        if IS_NEW.replace(false) { LATEST.take() } else { None }
    }

    /// Whether the connection has sent an alert that ends it.
    pub(crate) fn has_sent_alert(&self) -> bool {
        self.lock().alert_sent
    }

    /// Marks that the connection has sent such an alert, under the keys before these.
    pub(crate) fn set_alert_sent(&self) {
        self.lock().alert_sent = true;
    }

    /// After a panic in the library: what it left on this thread belongs to no other connection.
    pub(crate) fn clear() {
        drop((LATEST.take(), KEY_UPDATE.take()));
    }

    /// Seals a fatal alert of this description as the connection's next record.
    pub(crate) fn seal_alert(&self, description: u8) -> Alert {
        let Sealing { cipher, version, next, alert_sent, key_update } = &mut *self.lock();
        if *alert_sent {
            return Alert::AlreadySent;
        }
        // TLS 1.2 seals from its Finished on, which is the first that the cipher sees.
        if *version == ProtocolVersion::TLSv1_2 && *next == 0 {
            return Alert::InTheClear;
        }
        *alert_sent = true;
        let content = [FATAL, description];
        let alert = OutboundPlainMessage {
            typ: ContentType::Alert,
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(&content),
        };
        match cipher.encrypt(alert, *next) {
            Ok(record) => {
                let mut bytes = std::mem::take(key_update);
                bytes.extend(record.encode());
                Alert::Sealed(bytes)
            }
            Err(_) => Alert::AlreadySent,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sealing> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MessageEncrypter for Sealer {
    fn encrypt(
        &mut self,
        message: OutboundPlainMessage<'_>,
        sequence: u64,
    ) -> Result<OutboundOpaqueMessage, Error> {
        let sealing = &mut *self.lock();
        sealing.next = sequence + 1;
        if sequence == 0 {
            sealing.key_update = Vec::new();
        }
        // A warning other than close_notify (no_renegotiation) ends nothing, but no failure follows one unanswered.
        sealing.alert_sent |= message.typ == ContentType::Alert && !is_warning(&message.payload);
        if !is_key_update(&message) {
            return sealing.cipher.encrypt(message, sequence);
        }
        let record = sealing.cipher.encrypt(message, sequence)?;
        KEY_UPDATE.set(record.clone().encode());
        Ok(record)
    }

    fn encrypted_payload_len(&self, payload_len: usize) -> usize {
        self.lock().cipher.encrypted_payload_len(payload_len)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// Whether an alert leaves the connection open: a warning that is no close_notify.
fn is_warning(content: &OutboundChunks<'_>) -> bool {
    let is_warning =
        |content: &[u8]| matches!(*content, [WARNING, description] if description != CLOSE_NOTIFY);
    match content {
        OutboundChunks::Single(content) => is_warning(content),
        several => is_warning(&several.to_vec()),
    }
}

/// Whether this is the KeyUpdate that answers the peer's (RFC 8446, section 4.6.3). The library holds it back until it
/// sends something else.
fn is_key_update(message: &OutboundPlainMessage<'_>) -> bool {
    const ANSWER: [u8; 5] = [24, 0, 0, 1, 0];
    message.typ == ContentType::Handshake
        && message.payload.len() == ANSWER.len()
        && message.payload.to_vec() == ANSWER
}

/// An algorithm of the library whose ciphers are wrapped.
struct WrappedAead<A: ?Sized + 'static>(&'static A);

impl Tls13AeadAlgorithm for WrappedAead<dyn Tls13AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        Sealer::start(self.0.encrypter(key, iv), ProtocolVersion::TLSv1_3)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Opener::start(self.0.decrypter(key, iv))
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }
}

impl Tls12AeadAlgorithm for WrappedAead<dyn Tls12AeadAlgorithm> {
    fn encrypter(&self, key: AeadKey, iv: &[u8], extra: &[u8]) -> Box<dyn MessageEncrypter> {
        Sealer::start(self.0.encrypter(key, iv, extra), ProtocolVersion::TLSv1_2)
    }

    fn decrypter(&self, key: AeadKey, iv: &[u8]) -> Box<dyn MessageDecrypter> {
        Opener::start(self.0.decrypter(key, iv))
    }

    fn key_block_shape(&self) -> KeyBlockShape {
        self.0.key_block_shape()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: &[u8],
        explicit: &[u8],
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv, explicit)
    }
}

/// Levels of alerts, and the description of the orderly end (RFC 8446, section 6).
const WARNING: u8 = 1;
const FATAL: u8 = 2;
const CLOSE_NOTIFY: u8 = 0;
