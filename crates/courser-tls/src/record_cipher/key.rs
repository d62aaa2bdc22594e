//! The key of one direction, and how each version puts a record together (RFC 8446, section 5.2; RFC 5288; RFC 7905). Seals
//! and opens in place: a record is written where it leaves from, and read where it has arrived.

use std::ops::Range;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::crypto::cipher::{AeadKey, make_tls12_aad, make_tls13_aad};
use rustls::{CipherSuite, ContentType, Error, ProtocolVersion};

/// Length of a tag, bytes; all ciphers have the same.
const TAG: usize = 16;

/// Bytes of the nonce that TLS 1.2 sends with each record of AES-GCM (RFC 5288, section 3).
const EXPLICIT: usize = 8;

/// A key and what its nonces are made of.
pub(super) struct RecordKey {
    key: LessSafeKey,
    /// What a record's number is added to, by exclusive or (RFC 8446, section 5.3; TLS 1.2 leaves it to the sender).
    iv: [u8; NONCE_LEN],
    form: Form,
}

/// How a record is put together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The type at the end of the plaintext, and the record's header as additional data.
    Tls13,
    /// A part of the nonce in front.
    Tls12Explicit,
    /// All of the nonce from the record's number.
    Tls12,
}

impl RecordKey {
    /// `iv` in parts: what the key schedule gives, and what TLS 1.2 lets the sender choose.
    pub(super) fn new(suite: CipherSuite, key: &AeadKey, iv: [&[u8]; 2]) -> Self {
        let (algorithm, form) = cipher(suite);
        let mut nonce = [0; NONCE_LEN];
        let [fixed, chosen] = iv;
        nonce[..fixed.len()].copy_from_slice(fixed);
        nonce[fixed.len()..][..chosen.len()].copy_from_slice(chosen);
        let key = UnboundKey::new(algorithm, key.as_ref()).expect("the library gives keys of this length");
        Self { key: LessSafeKey::new(key), iv: nonce, form }
    }

    pub(super) fn is_tls13(&self) -> bool {
        self.form == Form::Tls13
    }

    /// Length of the body of a record with so much plaintext, bytes.
    pub(super) fn body_len(&self, plaintext: usize) -> usize {
        self.front_len() + plaintext + self.back_len()
    }

    /// Bytes that a body has in front of its plaintext.
    pub(super) fn front_len(&self) -> usize {
        if self.form == Form::Tls12Explicit { EXPLICIT } else { 0 }
    }

    /// Bytes that a body has behind its plaintext: in TLS 1.3 the type, and the tag.
    pub(super) fn back_len(&self) -> usize {
        usize::from(self.is_tls13()) + TAG
    }

    /// Seals a body where it is: room for what goes in front of the plaintext, the plaintext, and room for what goes behind
    /// it. A sequence number may be used once.
    pub(super) fn seal(&self, sequence: u64, content: ContentType, body: &mut [u8]) -> Result<(), Error> {
        let nonce = self.nonce(sequence);
        let (front, rest) = body.split_at_mut(self.front_len());
        front.copy_from_slice(&nonce[NONCE_LEN - front.len()..]);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (plaintext, place) = rest.split_at_mut(rest.len() - TAG);
        let length = plaintext.len();
        let tag = if self.is_tls13() {
            plaintext[length - 1] = u8::from(content);
            self.key.seal_in_place_separate_tag(nonce, Aad::from(make_tls13_aad(length + TAG)), plaintext)
        } else {
            let data = make_tls12_aad(sequence, content, ProtocolVersion::TLSv1_2, length);
            self.key.seal_in_place_separate_tag(nonce, Aad::from(data), plaintext)
        };
        place.copy_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        Ok(())
    }

    /// Opens the body of a record where it is, and returns where its plaintext is: with type and padding in TLS 1.3.
    pub(super) fn open(
        &self,
        sequence: u64,
        content: ContentType,
        version: ProtocolVersion,
        body: &mut [u8],
    ) -> Result<Range<usize>, Error> {
        let start = self.front_len();
        let length = body.len().checked_sub(start + TAG).ok_or(Error::DecryptError)?;
        let mut nonce = self.nonce(sequence);
        nonce[NONCE_LEN - start..].copy_from_slice(&body[..start]);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = &mut body[start..];
        let opened = if self.is_tls13() {
            self.key.open_in_place(nonce, Aad::from(make_tls13_aad(sealed.len())), sealed)
        } else {
            let data = make_tls12_aad(sequence, content, version, length);
            self.key.open_in_place(nonce, Aad::from(data), sealed)
        };
        opened.map_err(|_| Error::DecryptError)?;
        Ok(start..start + length)
    }

    fn nonce(&self, sequence: u64) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        let counted = &mut nonce[NONCE_LEN - size_of_val(&sequence)..];
        counted.iter_mut().zip(sequence.to_be_bytes()).for_each(|(byte, number)| *byte ^= number);
        nonce
    }
}

/// The cipher of a suite, and the form of its records.
fn cipher(suite: CipherSuite) -> (&'static Algorithm, Form) {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => (&AES_128_GCM, Form::Tls13),
        CipherSuite::TLS13_AES_256_GCM_SHA384 => (&AES_256_GCM, Form::Tls13),
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => (&CHACHA20_POLY1305, Form::Tls13),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => (&AES_128_GCM, Form::Tls12Explicit),
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => (&AES_256_GCM, Form::Tls12Explicit),
        _ => (&CHACHA20_POLY1305, Form::Tls12),
    }
}
