//! Self-signed certificates, for a server without one and for tests.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::identity::{Identity, IdentityError};

/// Makes an ECDSA P-256 key and a certificate for `names` that it signs itself.
pub fn self_signed(names: &[String]) -> Result<Identity, IdentityError> {
    signed_by(KeyPair::generate(), names)
}

/// The same with an RSA key of 2048 bits, for the instrument: it takes some hundred milliseconds to make.
pub fn self_signed_rsa(names: &[String]) -> Result<Identity, IdentityError> {
    signed_by(KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048), names)
}

fn signed_by(key: Result<KeyPair, rcgen::Error>, names: &[String]) -> Result<Identity, IdentityError> {
    let failed = |error: rcgen::Error| IdentityError::BadCertificate(error.to_string());
    let key = key.map_err(failed)?;
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "courser self-signed");
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Identity::new(vec![certificate.der().clone()], &key)
}
