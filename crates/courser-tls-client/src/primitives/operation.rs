//! An operation: what it is for, and how it is prepared and repeated.

use std::fmt;

/// What an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A signature is made.
    Sign,
    /// A signature is verified.
    Verify,
    /// A key pair is made, or a shared secret derived.
    KeyExchange,
    /// A record is encrypted (sealed) or decrypted (opened), and authenticated.
    Cipher,
    /// A hash, or a keyed one.
    Digest,
    /// A key is derived from another.
    Kdf,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::KeyExchange => "key exchange",
            Self::Cipher => "cipher",
            Self::Digest => "digest",
            Self::Kdf => "key derivation",
        })
    }
}

/// One operation by name.
pub struct Primitive {
    /// Algorithm, and step where it has several: `X25519 agree`.
    pub name: &'static str,
    /// What it is for.
    pub family: Family,
    /// Size of what is processed, or derived; none where the algorithm fixes it.
    pub bytes: Option<usize>,
    prepare: Box<dyn FnOnce() -> Run>,
}

/// One repetition; whether it did what it should.
pub(super) type Run = Box<dyn FnMut() -> bool>;

/// An operation whose keys and buffers are there.
pub struct Operation {
    run: Run,
}

impl Primitive {
    pub(super) fn new(
        name: &'static str,
        family: Family,
        bytes: Option<usize>,
        prepare: impl FnOnce() -> Run + 'static,
    ) -> Self {
        Self { name, family, bytes, prepare: Box::new(prepare) }
    }

    /// Makes keys and buffers.
    ///
    /// # Panics
    /// When the library has no randomness or no memory.
    pub fn prepare(self) -> Operation {
        Operation { run: (self.prepare)() }
    }
}

impl Operation {
    /// Repeats it, and gives whether each repetition did what it should: a signature was good, a shared secret the
    /// other end's. A `false` is a broken library or machine.
    pub fn run(&mut self, times: u64) -> bool {
        let mut good = true;
        for _ in 0..times {
            good &= (self.run)();
        }
        good
    }
}

/// Sizes of what is encrypted or hashed, bytes: those of `openssl speed`, and the largest record.
pub(super) const SIZES: [usize; 6] = [8, 64, 256, 1024, 8192, 16_384];

/// Why preparing cannot fail but for a machine that could not speak TLS either.
pub(super) const PREPARED: &str = "the library has randomness, and takes good keys";
