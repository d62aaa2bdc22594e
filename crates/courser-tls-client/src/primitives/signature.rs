//! Signatures as TLS 1.3 makes them: RSA as RSASSA-PSS with SHA-256, ECDSA with the hash of the curve's size (RFC 8446,
//! section 4.2.3), ML-DSA (draft-ietf-tls-mldsa).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1,
    ECDSA_P384_SHA384_ASN1_SIGNING, ED25519, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
    ML_DSA_44, ML_DSA_44_SIGNING, ML_DSA_65, ML_DSA_65_SIGNING, ParsedPublicKey, PqdsaKeyPair,
    PqdsaSigningAlgorithm, RSA_PSS_2048_8192_SHA256, RSA_PSS_SHA256, RsaKeyPair, VerificationAlgorithm,
};

use super::operation::{Family, PREPARED, Primitive, Run};

/// The length of what a CertificateVerify signs with SHA-256: 64 spaces, a context of 33 bytes, a zero, the hash
/// (RFC 8446, section 4.4.3).
const MESSAGE: [u8; 130] = [0x20; 130];

/// Room for any signature; ML-DSA-65's has 3309 bytes.
const ROOM: usize = 4096;

/// A kind of key, and what its signatures are verified with.
#[derive(Clone, Copy)]
enum Kind {
    /// RSAPrivateKey, DER (RFC 8017, appendix A.1.2).
    Rsa(&'static [u8]),
    Ecdsa(&'static EcdsaSigningAlgorithm, &'static dyn VerificationAlgorithm),
    Ed25519,
    MlDsa(&'static PqdsaSigningAlgorithm, &'static dyn VerificationAlgorithm),
}

/// RSA keys are the same for everybody, as in `openssl speed`: a fresh one of 4096 bits takes longer to make than to
/// measure.
const KINDS: [(&str, Kind); 8] = [
    ("RSA-2048", Kind::Rsa(include_bytes!("keys/rsa-2048.der"))),
    ("RSA-3072", Kind::Rsa(include_bytes!("keys/rsa-3072.der"))),
    ("RSA-4096", Kind::Rsa(include_bytes!("keys/rsa-4096.der"))),
    ("ECDSA P-256", Kind::Ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING, &ECDSA_P256_SHA256_ASN1)),
    ("ECDSA P-384", Kind::Ecdsa(&ECDSA_P384_SHA384_ASN1_SIGNING, &ECDSA_P384_SHA384_ASN1)),
    ("Ed25519", Kind::Ed25519),
    ("ML-DSA-44", Kind::MlDsa(&ML_DSA_44_SIGNING, &ML_DSA_44)),
    ("ML-DSA-65", Kind::MlDsa(&ML_DSA_65_SIGNING, &ML_DSA_65)),
];

pub(super) fn all() -> Vec<Primitive> {
    KINDS.iter().flat_map(|&(name, kind)| both(name, kind)).collect()
}

fn both(name: &'static str, kind: Kind) -> [Primitive; 2] {
    [
        Primitive::new(name, Family::Sign, None, move || sign(Key::new(kind))),
        Primitive::new(name, Family::Verify, None, move || verify(&Key::new(kind))),
    ]
}

fn sign(key: Key) -> Run {
    let mut signature = [0; ROOM];
    Box::new(move || key.sign(&mut signature).is_some())
}

fn verify(key: &Key) -> Run {
    let public = key.public();
    let mut signature = vec![0; ROOM];
    let length = key.sign(&mut signature).expect(PREPARED);
    signature.truncate(length);
    Box::new(move || public.verify_sig(&MESSAGE, &signature).is_ok())
}

enum Key {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair, &'static dyn VerificationAlgorithm),
    Ed25519(Ed25519KeyPair),
    MlDsa(PqdsaKeyPair, &'static dyn VerificationAlgorithm),
}

impl Key {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Rsa(key) => Self::Rsa(RsaKeyPair::from_der(key).expect(PREPARED)),
            Kind::Ecdsa(algorithm, verification) => {
                Self::Ecdsa(EcdsaKeyPair::generate(algorithm).expect(PREPARED), verification)
            }
            Kind::Ed25519 => Self::Ed25519(Ed25519KeyPair::generate().expect(PREPARED)),
            Kind::MlDsa(algorithm, verification) => {
                Self::MlDsa(PqdsaKeyPair::generate(algorithm).expect(PREPARED), verification)
            }
        }
    }

    /// Signs the message to the front of `signature`, and gives how long that is.
    fn sign(&self, signature: &mut [u8]) -> Option<usize> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let length = key.public_modulus_len();
                key.sign(&RSA_PSS_SHA256, &random, &MESSAGE, &mut signature[..length]).ok().map(|()| length)
            }
            Self::Ecdsa(key, _) => Some(copy_to_front(key.sign(&random, &MESSAGE).ok()?.as_ref(), signature)),
            Self::Ed25519(key) => Some(copy_to_front(key.try_sign(&MESSAGE).ok()?.as_ref(), signature)),
            Self::MlDsa(key, _) => key.sign(&MESSAGE, signature).ok(),
        }
    }

    /// The public key, set up.
    fn public(&self) -> ParsedPublicKey {
        let parsed = match self {
            Self::Rsa(key) => ParsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, key.public_key()),
            Self::Ecdsa(key, verification) => ParsedPublicKey::new(*verification, key.public_key()),
            Self::Ed25519(key) => ParsedPublicKey::new(&ED25519, key.public_key()),
            Self::MlDsa(key, verification) => ParsedPublicKey::new(*verification, key.public_key()),
        };
        parsed.expect(PREPARED)
    }
}

fn copy_to_front(made: &[u8], signature: &mut [u8]) -> usize {
    signature[..made.len()].copy_from_slice(made);
    made.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_signature_is_refused() {
        for (name, kind) in KINDS {
            let key = Key::new(kind);
            let (mut signature, public) = ([0; ROOM], key.public());
            let length = key.sign(&mut signature).unwrap();
            assert!(public.verify_sig(&MESSAGE, &signature[..length]).is_ok(), "{name}");
            assert!(public.verify_sig(&MESSAGE[1..], &signature[..length]).is_err(), "{name}");
            signature[length / 2] ^= 1;
            assert!(public.verify_sig(&MESSAGE, &signature[..length]).is_err(), "{name}");
        }
    }
}
