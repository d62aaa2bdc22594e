//! HMAC-SHA-256 with its key prepared (RFC 2104).
//!
//! A handshake computes some fifty of them, over messages that fit into a block or two. Here a key is its two hash
//! states, 64 bytes, and a message costs its own blocks and one more: no buffers to set up, copy and wipe around them.

use sha2::block_api::compress256;
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Length of the hash, bytes.
pub const HASH: usize = 32;

/// Length of a block, bytes.
const BLOCK: usize = 64;

/// Before the first block (FIPS 180-4, section 5.3.3).
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// What the key is padded with for the inner and for the outer hash (RFC 2104, section 2).
const INNER: u8 = 0x36;
const OUTER: u8 = 0x5c;

/// A key: the states after the blocks that it begins both hashes with. Wiped when dropped.
#[derive(Clone)]
pub struct Key {
    inner: [u32; 8],
    outer: [u32; 8],
}

impl Key {
    /// Prepares a key of any length.
    pub fn new(key: &[u8]) -> Self {
        let mut block = [0; BLOCK];
        if key.len() > BLOCK {
            block[..HASH].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (INITIAL, INITIAL);
        block.iter_mut().for_each(|byte| *byte ^= INNER);
        compress256(&mut inner, &[block]);
        block.iter_mut().for_each(|byte| *byte ^= INNER ^ OUTER);
        compress256(&mut outer, &[block]);
        block.zeroize();
        Self { inner, outer }
    }

    /// The code of a message in parts.
    pub fn sign<'m>(&self, message: impl IntoIterator<Item = &'m [u8]>) -> [u8; HASH] {
        let mut hash = Hash { rest: [0; BLOCK], state: self.inner, length: BLOCK };
        message.into_iter().for_each(|part| hash.update(part));
        let inner = hash.finish();
        (hash.state, hash.length) = (self.outer, BLOCK);
        hash.update(&inner);
        hash.finish()
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// A hash that a key's block has gone into. One serves for both hashes: wiping it costs as much as half a block.
struct Hash {
    state: [u32; 8],
    /// What has not made up a block yet: `length % BLOCK` bytes.
    rest: [u8; BLOCK],
    /// Bytes so far, those of the key included.
    length: usize,
}

impl Hash {
    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = self.length % BLOCK;
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - used));
            self.rest[used..used + now.len()].copy_from_slice(now);
            self.length += now.len();
            if self.length.is_multiple_of(BLOCK) {
                compress256(&mut self.state, &[self.rest]);
            }
            bytes = later;
        }
    }

    /// Ends the message with a bit, zeros and its length in bits (FIPS 180-4, section 5.1.1).
    fn finish(&mut self) -> [u8; HASH] {
        let bits = 8 * self.length as u64;
        let used = self.length % BLOCK;
        self.rest[used] = 0x80;
        self.rest[used + 1..].fill(0);
        if used >= BLOCK - size_of_val(&bits) {
            compress256(&mut self.state, &[self.rest]);
            self.rest.fill(0);
        }
        self.rest[BLOCK - size_of_val(&bits)..].copy_from_slice(&bits.to_be_bytes());
        compress256(&mut self.state, &[self.rest]);
        let mut hash = [0; HASH];
        hash.chunks_exact_mut(4).zip(self.state).for_each(|(bytes, word)| {
            bytes.copy_from_slice(&word.to_be_bytes());
        });
        hash
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        self.state.zeroize();
        self.rest.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::hmac;

    #[test]
    fn every_code_is_the_librarys_whatever_the_lengths() {
        let bytes: Vec<u8> = (0..=255).collect();
        for key in [0, 1, 31, 32, 63, 64, 65, 200] {
            let library = hmac::Key::new(hmac::HMAC_SHA256, &bytes[..key]);
            for length in 0..=bytes.len() {
                let message = &bytes[..length];
                let (front, back) = message.split_at(length / 3);
                let expected = hmac::sign(&library, message);
                assert_eq!(Key::new(&bytes[..key]).sign([front, back]), expected.as_ref(), "{key} {length}");
            }
        }
    }
}
