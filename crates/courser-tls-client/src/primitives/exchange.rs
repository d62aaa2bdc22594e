//! Key exchange. To generate is to make a key pair and the share that goes on the wire; the steps that derive a secret
//! start from the peer's share as it came from there.

use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, PrivateKey, UnparsedPublicKey, X25519};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768;

use super::operation::{Family, PREPARED, Primitive, Run};

pub(super) fn all() -> Vec<Primitive> {
    let primitive = |name, prepare: fn() -> Run| Primitive::new(name, Family::KeyExchange, None, prepare);
    vec![
        primitive("X25519 generate", || generate(&X25519)),
        primitive("X25519 agree", || agree(&X25519)),
        primitive("P-256 generate", || generate(&ECDH_P256)),
        primitive("P-256 agree", || agree(&ECDH_P256)),
        primitive("P-384 generate", || generate(&ECDH_P384)),
        primitive("P-384 agree", || agree(&ECDH_P384)),
        primitive("ML-KEM-768 generate", kem_generate),
        primitive("ML-KEM-768 encapsulate", kem_encapsulate),
        primitive("ML-KEM-768 decapsulate", kem_decapsulate),
        primitive("X25519MLKEM768 server", hybrid_server),
        primitive("X25519MLKEM768 both ends", hybrid_both),
    ]
}

fn generate(algorithm: &'static agreement::Algorithm) -> Run {
    Box::new(move || PrivateKey::generate(algorithm).and_then(|key| key.compute_public_key()).is_ok())
}

fn agree(algorithm: &'static agreement::Algorithm) -> Run {
    let pair = || {
        let private = PrivateKey::generate(algorithm).expect(PREPARED);
        let public = private.compute_public_key().expect(PREPARED).as_ref().to_vec();
        (private, public)
    };
    let ((private, public), (peer_private, peer_public)) = (pair(), pair());
    let secret = move |private: &PrivateKey, public: &[u8]| {
        let public = UnparsedPublicKey::new(algorithm, public);
        agreement::agree(private, public, (), |secret| Ok(secret.to_vec())).ok()
    };
    let expected = secret(&peer_private, &public);
    Box::new(move || expected.is_some() && secret(&private, &peer_public) == expected)
}

fn kem_generate() -> Run {
    Box::new(|| {
        let share = DecapsulationKey::generate(&ML_KEM_768)
            .and_then(|key| key.encapsulation_key())
            .and_then(|key| key.key_bytes().map(|share| share.as_ref().len()));
        share.is_ok()
    })
}

fn kem_encapsulate() -> Run {
    let key = DecapsulationKey::generate(&ML_KEM_768).expect(PREPARED);
    let share = key.encapsulation_key().and_then(|key| key.key_bytes()).expect(PREPARED).as_ref().to_vec();
    Box::new(move || EncapsulationKey::new(&ML_KEM_768, &share).is_ok_and(|key| key.encapsulate().is_ok()))
}

fn kem_decapsulate() -> Run {
    let key = DecapsulationKey::generate(&ML_KEM_768).expect(PREPARED);
    let sent = key.encapsulation_key().and_then(|key| key.encapsulate());
    let (ciphertext, expected) = sent.expect(PREPARED);
    let ciphertext = ciphertext.as_ref().to_vec();
    Box::new(move || {
        let secret = key.decapsulate(Ciphertext::from(&ciphertext[..]));
        secret.is_ok_and(|secret| secret.as_ref() == expected.as_ref())
    })
}

/// From the client's share to the server's share and the secret.
fn hybrid_server() -> Run {
    let share = X25519MLKEM768.start().expect(PREPARED).pub_key().to_vec();
    Box::new(move || X25519MLKEM768.start_and_complete(&share).is_ok())
}

/// Both ends, since the client's second half needs what the server made for its first.
fn hybrid_both() -> Run {
    Box::new(|| {
        let exchange = || {
            let client = X25519MLKEM768.start().ok()?;
            let server = X25519MLKEM768.start_and_complete(client.pub_key()).ok()?;
            let secret = client.complete(&server.pub_key).ok()?;
            Some(secret.secret_bytes() == server.secret.secret_bytes())
        };
        exchange().unwrap_or(false)
    })
}
