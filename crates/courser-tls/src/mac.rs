//! HMAC with its key prepared (RFC 2104), with SHA-256 and SHA-384.
//!
//! A handshake computes some fifty of them, over messages that fit into a block or two. Here a key is its two hash
//! states, and a message costs its own blocks and one more: no buffers to set up, copy and wipe around them.

use rustls::crypto::hash::HashAlgorithm;
use sha2::Digest;
use sha2::block_api::{compress256, compress512};
use zeroize::Zeroize;

/// What the key is padded with for the inner and for the outer hash (RFC 2104, section 2).
const INNER: u8 = 0x36;
const OUTER: u8 = 0x5c;

/// One of the SHA-2 functions (FIPS 180-4, section 6): eight words of state, a compression for each block.
pub(crate) trait Function: 'static {
    /// What the state consists of.
    type Word: Copy + Zeroize + Send + Sync;
    /// What is compressed at once.
    type Block: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// A hash.
    type Hash: Copy + AsRef<[u8]> + AsMut<[u8]>;
    /// The function over a message of any length.
    type Digest: Digest + Clone + Send + Sync;

    /// The library's name for it.
    const ALGORITHM: HashAlgorithm;

    /// The state before the first block (FIPS 180-4, section 5.3).
    const INITIAL: [Self::Word; 8];
    /// A block of zeros.
    const ZEROS: Self::Block;
    /// Length of a block, bytes.
    const BLOCK: usize = size_of::<Self::Block>();
    /// Length of a hash, bytes.
    const HASH: usize = size_of::<Self::Hash>();

    /// Puts a block into the state.
    fn compress(state: &mut [Self::Word; 8], block: &Self::Block);

    /// The state as a hash.
    fn hash(state: &[Self::Word; 8]) -> Self::Hash;
}

/// SHA-256.
pub(crate) struct Sha256;

impl Function for Sha256 {
    type Word = u32;
    type Block = [u8; 64];
    type Hash = [u8; 32];
    type Digest = sha2::Sha256;

    const ALGORITHM: HashAlgorithm = HashAlgorithm::SHA256;
    const INITIAL: [u32; 8] = [
        0x6a09_e667,
        0xbb67_ae85,
        0x3c6e_f372,
        0xa54f_f53a,
        0x510e_527f,
        0x9b05_688c,
        0x1f83_d9ab,
        0x5be0_cd19,
    ];
    const ZEROS: [u8; 64] = [0; 64];

    fn compress(state: &mut [u32; 8], block: &[u8; 64]) {
        compress256(state, &[*block]);
    }

    fn hash(state: &[u32; 8]) -> [u8; 32] {
        let mut hash = [0; 32];
        for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        hash
    }
}

/// SHA-384.
pub(crate) struct Sha384;

impl Function for Sha384 {
    type Word = u64;
    type Block = [u8; 128];
    type Hash = [u8; 48];
    type Digest = sha2::Sha384;

    const ALGORITHM: HashAlgorithm = HashAlgorithm::SHA384;
    const INITIAL: [u64; 8] = [
        0xcbbb_9d5d_c105_9ed8,
        0x629a_292a_367c_d507,
        0x9159_015a_3070_dd17,
        0x152f_ecd8_f70e_5939,
        0x6733_2667_ffc0_0b31,
        0x8eb4_4a87_6858_1511,
        0xdb0c_2e0d_64f9_8fa7,
        0x47b5_481d_befa_4fa4,
    ];
    const ZEROS: [u8; 128] = [0; 128];

    fn compress(state: &mut [u64; 8], block: &[u8; 128]) {
        compress512(state, &[*block]);
    }

    fn hash(state: &[u64; 8]) -> [u8; 48] {
        let mut hash = [0; 48];
        for (bytes, word) in hash.chunks_exact_mut(8).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        hash
    }
}

/// A key: the states after the blocks that it begins both hashes with. Wiped when dropped.
pub(crate) struct Key<F: Function> {
    inner: [F::Word; 8],
    outer: [F::Word; 8],
}

impl<F: Function> Key<F> {
    /// Prepares a key of any length.
    pub(crate) fn new(key: &[u8]) -> Self {
        let mut block = F::ZEROS;
        let bytes = block.as_mut();
        if key.len() > F::BLOCK {
            bytes[..F::HASH].copy_from_slice(&F::Digest::digest(key));
        } else {
            bytes[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (F::INITIAL, F::INITIAL);
        bytes.iter_mut().for_each(|byte| *byte ^= INNER);
        F::compress(&mut inner, &block);
        block.as_mut().iter_mut().for_each(|byte| *byte ^= INNER ^ OUTER);
        F::compress(&mut outer, &block);
        block.as_mut().zeroize();
        Self { inner, outer }
    }

    /// The code of a message in parts.
    pub(crate) fn sign<'m>(&self, message: impl IntoIterator<Item = &'m [u8]>) -> F::Hash {
        let mut hash = Hash::<F> { rest: F::ZEROS, state: self.inner, length: F::BLOCK };
        message.into_iter().for_each(|part| hash.update(part));
        let inner = hash.finish();
        (hash.state, hash.length) = (self.outer, F::BLOCK);
        hash.update(inner.as_ref());
        hash.finish()
    }
}

impl<F: Function> Clone for Key<F> {
    fn clone(&self) -> Self {
        Self { inner: self.inner, outer: self.outer }
    }
}

impl<F: Function> Drop for Key<F> {
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// A hash that a key's block has gone into. One serves for both hashes: wiping it costs as much as half a block.
struct Hash<F: Function> {
    state: [F::Word; 8],
    /// What has not made up a block yet: `length % BLOCK` bytes.
    rest: F::Block,
    /// Bytes so far, those of the key included.
    length: usize,
}

impl<F: Function> Hash<F> {
    fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let used = self.length % F::BLOCK;
            let (now, later) = bytes.split_at(bytes.len().min(F::BLOCK - used));
            self.rest.as_mut()[used..used + now.len()].copy_from_slice(now);
            self.length += now.len();
            if self.length.is_multiple_of(F::BLOCK) {
                F::compress(&mut self.state, &self.rest);
            }
            bytes = later;
        }
    }

    /// Ends the message with a bit, zeros and its length in bits, an eighth of a block long (FIPS 180-4, section 5.1).
    fn finish(&mut self) -> F::Hash {
        let bits = (8 * self.length as u64).to_be_bytes();
        let used = self.length % F::BLOCK;
        let rest = self.rest.as_mut();
        rest[used] = 0x80;
        rest[used + 1..].fill(0);
        if used >= F::BLOCK - F::BLOCK / 8 {
            F::compress(&mut self.state, &self.rest);
            self.rest = F::ZEROS;
        }
        self.rest.as_mut()[F::BLOCK - bits.len()..].copy_from_slice(&bits);
        F::compress(&mut self.state, &self.rest);
        F::hash(&self.state)
    }
}

impl<F: Function> Drop for Hash<F> {
    fn drop(&mut self) {
        self.state.zeroize();
        self.rest.as_mut().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::hmac;

    fn every_code_is_the_librarys<F: Function>(algorithm: hmac::Algorithm) {
        let bytes: Vec<u8> = (0..=255).cycle().take(300).collect();
        for key in [0, 1, 31, 32, 48, 63, 64, 65, 127, 128, 129, 200] {
            let library = hmac::Key::new(algorithm, &bytes[..key]);
            for length in 0..=bytes.len() {
                let message = &bytes[..length];
                let (front, back) = message.split_at(length / 3);
                let (ours, theirs) =
                    (Key::<F>::new(&bytes[..key]).sign([front, back]), hmac::sign(&library, message));
                assert_eq!(ours.as_ref(), theirs.as_ref(), "{key} {length}");
            }
        }
    }

    #[test]
    fn every_code_is_the_librarys_whatever_the_lengths() {
        every_code_is_the_librarys::<Sha256>(hmac::HMAC_SHA256);
        every_code_is_the_librarys::<Sha384>(hmac::HMAC_SHA384);
    }
}
