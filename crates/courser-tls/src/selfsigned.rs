//! Self-signed certificates, for a server without one and for tests.

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, PKCS_RSA_SHA256, RsaKeySize,
};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::identity::{Identity, IdentityError};

/// Makes an ECDSA P-256 key and a certificate for `names` that it signs itself.
pub fn self_signed(names: &[String]) -> Result<Identity, IdentityError> {
    signed_by(KeyPair::generate(), names, None)
}

/// The same for one name, with the digest that a CA looks for when it checks who has the name (RFC 8737, section 3).
pub fn self_signed_challenge(name: &str, digest: &[u8; 32]) -> Result<Identity, IdentityError> {
    signed_by(KeyPair::generate(), &[name.to_owned()], Some(CustomExtension::new_acme_identifier(digest)))
}

/// The same with an RSA key of 2048 bits, for the instrument: it takes some hundred milliseconds to make.
pub fn self_signed_rsa(names: &[String]) -> Result<Identity, IdentityError> {
    signed_by(KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048), names, None)
}

fn signed_by(
    key: Result<KeyPair, rcgen::Error>,
    names: &[String],
    extension: Option<CustomExtension>,
) -> Result<Identity, IdentityError> {
    let failed = |error: rcgen::Error| IdentityError::BadCertificate(error.to_string());
    let key = key.map_err(failed)?;
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "courser self-signed");
    let is_challenge = extension.is_some();
    params.custom_extensions.extend(extension);
    let certificate = params.self_signed(&key).map_err(failed)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let chain = vec![certificate.der().clone()];
    match is_challenge {
        // The library reads no certificate with a critical extension that it does not know: the key's public half is compared.
        true => Identity::of(chain, &key, true),
        false => Identity::new(chain, &key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::{FromDer, X509Certificate};

    #[test]
    fn a_challenge_is_for_one_name_and_has_its_digest_in_a_critical_extension() {
        let identity = self_signed_challenge("a.example", &[7; 32]).unwrap();
        assert_eq!(identity.names, ["a.example"]);
        let (_, leaf) = X509Certificate::from_der(&identity.certified.cert[0]).unwrap();
        let found =
            leaf.extensions().iter().find(|found| found.oid.to_id_string() == "1.3.6.1.5.5.7.1.31").unwrap();
        // An octet string of 32 bytes (RFC 8737, section 3).
        assert!(found.critical);
        assert_eq!(found.value, [&[4, 32][..], &[7; 32]].concat());
    }
}
