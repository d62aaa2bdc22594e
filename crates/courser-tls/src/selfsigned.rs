//! A throw-away certificate for a server that was given none.

use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::identity::{Identity, IdentityError};

/// Makes an ECDSA P-256 key and a certificate for `names` that it signs itself. Nobody has a reason to trust it.
pub fn self_signed(names: &[String]) -> Result<Identity, IdentityError> {
    let failed = |error: rcgen::Error| IdentityError::BadCertificate(error.to_string());
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "courser self-signed");
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Identity::new(vec![certificate.der().clone()], &key)
}
