//! Ciphers of records: each is authenticated together with its header (RFC 8446, section 5.2). Setting the key up is
//! paid once per connection, and not here.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, MAX_TAG_LEN, Nonce, UnboundKey,
};

use super::operation::{Family, PREPARED, Primitive, Run, SIZES};

/// A record's header, of any length.
const HEADER: [u8; 5] = [23, 3, 3, 0, 0];

const CIPHERS: [(&str, &str, &Algorithm); 3] = [
    ("AES-128-GCM seal", "AES-128-GCM open", &AES_128_GCM),
    ("AES-256-GCM seal", "AES-256-GCM open", &AES_256_GCM),
    ("ChaCha20-Poly1305 seal", "ChaCha20-Poly1305 open", &CHACHA20_POLY1305),
];

pub(super) fn all() -> Vec<Primitive> {
    let both =
        |&(sealing, opening, algorithm)| [(sealing, seal as Make, algorithm), (opening, open, algorithm)];
    CIPHERS.iter().flat_map(both).flat_map(|(name, make, algorithm)| sized(name, make, algorithm)).collect()
}

type Make = fn(&'static Algorithm, usize) -> Run;

fn sized(name: &'static str, make: Make, algorithm: &'static Algorithm) -> [Primitive; SIZES.len()] {
    SIZES.map(|bytes| Primitive::new(name, Family::Cipher, Some(bytes), move || make(algorithm, bytes)))
}

fn seal(algorithm: &'static Algorithm, bytes: usize) -> Run {
    let key = Key::new(algorithm);
    let mut content = vec![0; bytes];
    Box::new(move || key.seal(&mut content).is_some())
}

/// Into another buffer, or the record would be gone after the first time.
fn open(algorithm: &'static Algorithm, bytes: usize) -> Run {
    let key = Key::new(algorithm);
    let mut record = vec![7; bytes];
    let tag = key.seal(&mut record).expect(PREPARED);
    let mut content = vec![0; bytes];
    Box::new(move || key.open(&record, &tag, &mut content))
}

struct Key(LessSafeKey);

impl Key {
    fn new(algorithm: &'static Algorithm) -> Self {
        let secret = vec![1; algorithm.key_len()];
        Self(LessSafeKey::new(UnboundKey::new(algorithm, &secret).expect(PREPARED)))
    }

    /// Encrypts in place; gives the tag.
    fn seal(&self, content: &mut [u8]) -> Option<[u8; MAX_TAG_LEN]> {
        let tag = self.0.seal_in_place_separate_tag(nonce(), Aad::from(HEADER), content).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open(&self, record: &[u8], tag: &[u8], content: &mut [u8]) -> bool {
        self.0.open_separate_gather(nonce(), Aad::from(HEADER), record, tag, content).is_ok()
    }
}

/// The same for every record: nothing here is secret.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([2; 12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_opens_and_what_was_changed_does_not() {
        for (name, _, algorithm) in CIPHERS {
            let key = Key::new(algorithm);
            let mut record = *b"the same everywhere";
            let tag = key.seal(&mut record).unwrap();
            assert_ne!(&record, b"the same everywhere", "{name}");
            let mut content = [0; 19];
            assert!(key.open(&record, &tag, &mut content), "{name}");
            assert_eq!(&content, b"the same everywhere", "{name}");
            record[3] ^= 1;
            assert!(!key.open(&record, &tag, &mut content), "{name}");
        }
    }
}
