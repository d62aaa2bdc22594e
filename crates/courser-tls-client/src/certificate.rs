//! Fields of a certificate for display. Verifies nothing: neither the issuer nor the validity.

use std::net::IpAddr;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

/// The fields of a certificate (RFC 5280, section 4.1) that people look at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateInfo {
    /// Distinguished name of the subject, `CN=example.org`.
    pub subject: String,
    /// Distinguished name of the issuer.
    pub issuer: String,
    /// DNS names and IP addresses of the subjectAltName extension.
    pub names: Vec<String>,
    /// Kind and size of the key in bits: `RSA2048`, `EC256`, `ED25519`.
    pub key: String,
    /// Start of validity, Unix seconds.
    pub not_before: i64,
    /// End of validity, Unix seconds.
    pub not_after: i64,
}

impl CertificateInfo {
    /// Parses a certificate, DER; `None` if it is not one.
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        Some(Self {
            subject: certificate.subject().to_string(),
            issuer: certificate.issuer().to_string(),
            names: names.into_iter().flat_map(|names| &names.value.general_names).filter_map(name).collect(),
            key: key(&certificate),
            not_before: certificate.validity().not_before.timestamp(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let sixteen = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            four.or_else(|_| sixteen()).ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

fn key(certificate: &X509Certificate<'_>) -> String {
    let key = certificate.public_key();
    match key.algorithm.algorithm.to_id_string().as_str() {
        "1.3.101.112" => return "ED25519".into(),
        "1.3.101.113" => return "ED448".into(),
        _ => {}
    }
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => format!("RSA{}", rsa.key_size()),
        // Its points are whole bytes.
        Ok(PublicKey::EC(point)) if point.key_size() == 528 => "EC521".into(),
        Ok(PublicKey::EC(point)) => format!("EC{}", point.key_size()),
        Ok(PublicKey::DSA(_)) => "DSA".into(),
        _ => "unknown".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_testkit::{KeyType, Leaf, TestCa};

    #[test]
    fn the_parts_are_those_that_were_issued() {
        let ca = TestCa::with_intermediate();
        for (key, shown) in
            [(KeyType::EcdsaP384, "EC384"), (KeyType::Rsa2048, "RSA2048"), (KeyType::Ed25519, "ED25519")]
        {
            let issued = ca.issue(&Leaf::new(key).names(["a.test", "*.b.test", "::1", "10.0.0.7"]));
            let info = CertificateInfo::read(&issued.certificate).unwrap();
            assert_eq!((info.subject.as_str(), info.key.as_str()), ("CN=a.test", shown));
            assert_eq!(info.names, ["a.test", "*.b.test", "::1", "10.0.0.7"]);
            assert!(info.issuer.contains("courser test intermediate"), "{}", info.issuer);
            assert_eq!(info.not_before, 1_577_836_800, "the first of January 2020");
        }
    }

    #[test]
    fn what_is_no_certificate_is_none() {
        assert_eq!(CertificateInfo::read(b"no certificate"), None);
    }
}
