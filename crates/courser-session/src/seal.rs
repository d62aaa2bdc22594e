//! Sealed bytes, whatever is in them. May not choose a key, draw a nonce or interpret the contents.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | format version |
//! | 16 | key name: identifies the epoch to holders of the secret alone |
//! | 12 | nonce |
//! | n | sealed |
//! | 16 | authentication tag |
//!
//! Sealed with AES-256-GCM-SIV (RFC 8452), version and key name as associated data, and what the caller binds it to
//! behind them. A repeated nonce reveals only that two plaintexts are equal, so hosts need not count nonces together.

use std::borrow::Cow;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::{ResumptionFailure, SecretBytes};

/// A key, and the name that it has in what it seals. The library wipes it when it frees it.
pub(crate) struct NamedKey {
    pub(crate) name: [u8; KEY_NAME_LEN],
    aead: LessSafeKey,
}

impl NamedKey {
    /// Name and key, one behind the other.
    pub(crate) fn new(bytes: &SecretBytes<{ KEY_NAME_LEN + 32 }>) -> Self {
        let (name, key) = bytes.as_bytes().split_first_chunk().expect("48 bytes begin with 16");
        let key = UnboundKey::new(&AES_256_GCM_SIV, key).expect("AES-256-GCM-SIV takes 32 bytes");
        Self { name: *name, aead: LessSafeKey::new(key) }
    }

    /// Seals what `write` appends to the vector that it is given, which has room for `room` bytes.
    pub(crate) fn seal(
        &self,
        format: u8,
        nonce: [u8; NONCE_LEN],
        bound_to: &[u8],
        room: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        // The whole size at once: a vector that grows leaves the plaintext behind in freed memory.
        let mut sealed = Vec::with_capacity(OVERHEAD + room);
        sealed.push(format);
        sealed.extend_from_slice(&self.name);
        sealed.extend_from_slice(&nonce);
        write(&mut sealed);
        debug_assert!(sealed.len() <= HEADER_LEN + NONCE_LEN + room, "the plaintext must not move");
        let (head, plaintext) = sealed.split_at_mut(HEADER_LEN + NONCE_LEN);
        let aad = Aad::from(associated(&head[..HEADER_LEN], bound_to));
        let tag = self
            .aead
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, plaintext)
            .expect("sealing fails only beyond 2^36 bytes, and no caller has that many");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// The plaintext of what this key sealed.
    pub(crate) fn open(
        &self,
        sealed: &Sealed<'_>,
        bound_to: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, ResumptionFailure> {
        let mut buffer = Zeroizing::new(sealed.body.to_vec());
        let aad = Aad::from(associated(sealed.header, bound_to));
        let plaintext_len = self
            .aead
            .open_in_place(Nonce::assume_unique_for_key(sealed.nonce), aad, &mut buffer)
            .map_err(|_| ResumptionFailure::Forged)?
            .len();
        buffer.truncate(plaintext_len);
        Ok(buffer)
    }
}

fn associated<'a>(header: &'a [u8], bound_to: &[u8]) -> Cow<'a, [u8]> {
    if bound_to.is_empty() { Cow::Borrowed(header) } else { Cow::Owned([header, bound_to].concat()) }
}

/// The parts of sealed bytes, before anything about them is believed.
pub(crate) struct Sealed<'a> {
    header: &'a [u8],
    pub(crate) key_name: [u8; KEY_NAME_LEN],
    nonce: [u8; NONCE_LEN],
    body: &'a [u8],
}

impl<'a> Sealed<'a> {
    /// Splits `bytes`, which must be of this format.
    pub(crate) fn parse(format: u8, bytes: &'a [u8]) -> Result<Self, ResumptionFailure> {
        if bytes.len() < OVERHEAD {
            return Err(ResumptionFailure::Malformed);
        }
        let (header, rest) = bytes.split_at(HEADER_LEN);
        let (version, key_name) = header.split_at(1);
        if version != [format] {
            return Err(ResumptionFailure::UnknownFormat);
        }
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or(ResumptionFailure::Malformed)?;
        let key_name = key_name.try_into().map_err(|_| ResumptionFailure::Malformed)?;
        Ok(Self { header, key_name, nonce: *nonce, body })
    }
}

/// Length of a nonce in bytes (RFC 8452, section 4).
pub const NONCE_LEN: usize = aws_lc_rs::aead::NONCE_LEN;
/// Length of a key's name, in bytes.
pub(crate) const KEY_NAME_LEN: usize = 16;
/// What sealed bytes have beyond the plaintext.
pub(crate) const OVERHEAD: usize = HEADER_LEN + NONCE_LEN + TAG_LEN;

/// Format version and key name.
const HEADER_LEN: usize = 1 + KEY_NAME_LEN;
const TAG_LEN: usize = 16;
