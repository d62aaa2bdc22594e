//! The cryptographic library's single operations, each ready to be repeated by a caller with a clock.
//!
//! They are what TLS is made of, with the inputs that TLS gives them: a CertificateVerify is signed, a record's header is
//! authenticated beside its content. Keys are made, and set up, before: only the operation itself is repeated. Keys are
//! published or thrown away and nonces repeat, so nothing here protects anything. There is no clock here and no opinion.

mod cipher;
mod digest;
mod exchange;
mod operation;
mod signature;

pub use operation::{Family, Operation, Primitive};

/// Name and version of the cryptographic library, as `AWS-LC 5.12.0`.
pub fn library_version() -> String {
    format!("AWS-LC {}", aws_lc_rs::awslc_version())
}

/// All operations, in the order of a table. Little is made before [`Primitive::prepare`].
pub fn all() -> Vec<Primitive> {
    [signature::all(), exchange::all(), cipher::all(), digest::all()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::operation::SIZES;
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
