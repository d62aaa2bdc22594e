//! The bytes of every object and of every request's body: the alphabet again and again, so that a byte that is lost,
//! doubled or out of its place shows.

/// Bytes of [`block`]: a multiple of 26, so that the alphabet goes on from one block to the next.
pub(crate) const BLOCK: usize = 26 * 2520;

/// The object of `size` bytes that the origin serves.
#[must_use]
pub fn body(size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    while bytes.len() < size {
        bytes.extend_from_slice(&block()[..BLOCK.min(size - bytes.len())]);
    }
    bytes
}

/// The first [`BLOCK`] bytes of every object that is so long.
pub(crate) fn block() -> &'static [u8; BLOCK] {
    static ALPHABET: [u8; BLOCK] = alphabet();
    &ALPHABET
}

const fn alphabet() -> [u8; BLOCK] {
    let mut bytes = [b'a'; BLOCK];
    let mut at = 0;
    let mut letter = 0;
    while at < BLOCK {
        bytes[at] = b'a' + letter;
        letter = (letter + 1) % 26;
        at += 1;
    }
    bytes
}
