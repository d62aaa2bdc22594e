//! What is read from a certificate that was issued.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_tls::Identity;
use x509_parser::extensions::ParsedExtension;
use x509_parser::pem::Pem;

use crate::names::NameSet;
use crate::plan::Lifetime;

/// The leaf of a chain.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub(crate) lifetime: Lifetime,
    /// What its CA knows it by for renewal (RFC 9773, section 4.1): key identifier of the issuer and serial number. None where
    /// the certificate names no issuer's key.
    pub(crate) id: Option<(String, String)>,
}

impl Leaf {
    /// The first certificate in the text of a PEM file.
    pub(crate) fn of(pem: &[u8]) -> Option<Self> {
        let pem = Pem::iter_from_buffer(pem).filter_map(Result::ok).find(|pem| pem.label == "CERTIFICATE")?;
        let leaf = pem.parse_x509().ok()?;
        let validity = leaf.validity();
        let issuer = leaf.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::AuthorityKeyIdentifier(issuer) => issuer.key_identifier.as_ref(),
            _ => None,
        });
        let serial = URL_SAFE_NO_PAD.encode(leaf.tbs_certificate.raw_serial());
        Some(Self {
            lifetime: Lifetime {
                begin: validity.not_before.timestamp(),
                end: validity.not_after.timestamp(),
            },
            id: issuer.map(|issuer| (URL_SAFE_NO_PAD.encode(issuer.0), serial)),
        })
    }
}

/// Whether a chain can be served for these names with this key.
pub(crate) fn check(chain: &str, key: &str, set: &NameSet) -> Result<(), String> {
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes());
    let identity = identity.map_err(|error| format!("the CA has sent what cannot be served: {error}"))?;
    match set.names().into_iter().find(|name| !identity.names.contains(name)) {
        Some(missing) => Err(format!("the CA has sent a certificate that is not for {missing}")),
        None => Ok(()),
    }
}
