//! Any bytes as a client's certificate. This file is also the body of the fuzz target.

use courser_tls::ClientCertificate;
use courser_tls_client::certificate::CertificateInfo;

/// Reads `input`; a common name that comes out can stand in a log line and in a header.
pub(crate) fn client_certificate(input: &[u8]) -> Option<String> {
    let info = CertificateInfo::read(input);
    let name = ClientCertificate::read(input).common_name;
    assert!(name.is_none() || info.is_some(), "what is no certificate has no name");
    assert!(!name.iter().flat_map(|name| name.chars()).any(char::is_control), "{name:?}");
    name
}
