//! The cryptographic library's single operations, each ready to be repeated by whoever has a clock.
//!
//! They are what TLS is made of, with the inputs that TLS gives them: a CertificateVerify is signed, a record's header is
//! authenticated beside its content. Keys are made, and set up, before: only the operation itself is repeated. Keys are
//! published or thrown away and nonces repeat, so nothing here protects anything. There is no clock here and no opinion.

mod cipher;
mod digest;
mod exchange;
mod signature;

use std::fmt;

/// Name and version of the cryptographic library, as `AWS-LC 5.12.0`.
pub fn library_version() -> String {
    format!("AWS-LC {}", aws_lc_rs::awslc_version())
}

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
type Run = Box<dyn FnMut() -> bool>;

/// An operation whose keys and buffers are there.
pub struct Operation {
    run: Run,
}

/// All operations, in the order of a table. Little is made before [`Primitive::prepare`].
pub fn all() -> Vec<Primitive> {
    [signature::all(), exchange::all(), cipher::all(), digest::all()].into_iter().flatten().collect()
}

impl Primitive {
    fn new(
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
    #[must_use]
    pub fn prepare(self) -> Operation {
        Operation { run: (self.prepare)() }
    }
}

impl Operation {
    /// Repeats it, and gives whether each repetition did what it should: a signature was good, a shared secret the
    /// other end's. A `false` is a broken library or machine.
    #[must_use]
    pub fn run(&mut self, times: u64) -> bool {
        let mut good = true;
        for _ in 0..times {
            good &= (self.run)();
        }
        good
    }
}

/// Sizes of what is encrypted or hashed, bytes: those of `openssl speed`, and the largest record.
const SIZES: [usize; 6] = [8, 64, 256, 1024, 8192, 16_384];

/// Why preparing cannot fail but for a machine that could not speak TLS either.
const PREPARED: &str = "the library has randomness, and takes good keys";

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_does_what_it_should_more_than_once() {
        for primitive in all() {
            let (name, family) = (primitive.name, primitive.family);
            assert!(primitive.prepare().run(3), "{name} ({family})");
        }
    }

    #[test]
    fn no_two_go_by_the_same_name() {
        let mut seen = HashSet::new();
        assert!(all().iter().all(|one| seen.insert((one.family, one.name, one.bytes))));
    }

    #[test]
    fn what_tls_is_made_of_is_there() {
        let all = all();
        let count = |family| all.iter().filter(|one| one.family == family).count();
        assert_eq!((count(Family::Sign), count(Family::Verify)), (8, 8));
        assert_eq!(count(Family::Cipher), 3 * 2 * SIZES.len());
        assert_eq!(count(Family::Digest), 6 * SIZES.len());
        let names: HashSet<_> = all.iter().map(|one| one.name).collect();
        let some =
            ["RSA-2048", "ECDSA P-256", "X25519 agree", "ML-KEM-768 decapsulate", "HKDF-SHA-256 expand"];
        assert!(some.iter().all(|name| names.contains(name)), "{names:?}");
    }

    #[test]
    fn the_library_has_a_version() {
        let version = library_version();
        let number = version.strip_prefix("AWS-LC ").unwrap();
        assert!(number.split('.').all(|part| part.parse::<u32>().is_ok()), "{version}");
    }
}
