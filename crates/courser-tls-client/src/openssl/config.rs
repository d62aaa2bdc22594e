//! What is offered, compiled into a context of OpenSSL.

use std::sync::Arc;

use courser_tls::{TlsConfigError, names};
use openssl::error::ErrorStack;
use openssl::pkey::PKey;
use openssl::ssl::{
    SslContext, SslContextBuilder, SslMethod, SslMode, SslOptions, SslVerifyMode, SslVersion,
};
use openssl::x509::X509;
use openssl::x509::store::X509StoreBuilder;

use super::sessions;
use crate::identity::ClientIdentity;
use crate::spec::{ClientTlsSpec, Resume, Trust};

/// A spec, compiled; clones share it.
#[derive(Clone)]
pub(crate) struct OpensslClientConfig {
    pub(crate) context: SslContext,
    pub(crate) resume: Resume,
    pub(crate) max_tickets: usize,
    pub(crate) verify: bool,
    /// Signature schemes that are offered, empty for OpenSSL's own list.
    pub(crate) schemes: Arc<[u16]>,
}

impl OpensslClientConfig {
    pub(crate) fn new(spec: &ClientTlsSpec) -> Result<Self, TlsConfigError> {
        if spec.early_data {
            return Err(TlsConfigError::Unable("the openssl engine has no early data: take lean or real"));
        }
        Ok(Self {
            context: context(spec)?,
            resume: spec.resume,
            max_tickets: spec.max_tickets,
            verify: matches!(spec.trust, Trust::Roots(_)),
            schemes: spec.schemes.as_slice().into(),
        })
    }
}

fn context(spec: &ClientTlsSpec) -> Result<SslContext, ContextError> {
    let mut builder = SslContext::builder(SslMethod::tls_client())?;
    set_versions(&mut builder, &spec.versions)?;
    set_suites(&mut builder, spec)?;
    set_groups(&mut builder, &spec.groups)?;
    set_schemes(&mut builder, &spec.schemes)?;
    set_rest(&mut builder, spec)?;
    set_trust(&mut builder, &spec.trust)?;
    if let Some(identity) = &spec.identity {
        set_identity(&mut builder, identity)?;
    }
    Ok(builder.build())
}

/// From the lowest to the highest, without those in between that are not named.
fn set_versions(builder: &mut SslContextBuilder, versions: &[u16]) -> Result<(), ContextError> {
    let known = |code: u16| VERSIONS.iter().find(|row| row.0 == code);
    if let Some(code) = versions.iter().find(|code| known(**code).is_none()) {
        return Err(TlsConfigError::UnknownVersion(*code).into());
    }
    let lowest = versions.iter().min().and_then(|code| known(*code)).ok_or(TlsConfigError::NoVersion)?;
    let highest = versions.iter().max().and_then(|code| known(*code)).ok_or(TlsConfigError::NoVersion)?;
    builder.set_min_proto_version(Some(lowest.1))?;
    builder.set_max_proto_version(Some(highest.1))?;
    for (_, _, without) in VERSIONS.iter().filter(|row| !versions.contains(&row.0)) {
        builder.set_options(*without);
    }
    Ok(())
}

/// OpenSSL has one list for TLS 1.3, which it offers first, and one for what is older.
fn set_suites(builder: &mut SslContextBuilder, spec: &ClientTlsSpec) -> Result<(), ContextError> {
    if spec.suites.is_empty() {
        return Ok(builder.set_cipher_list(OWN_SUITES)?);
    }
    let (new, old): (Vec<u16>, Vec<u16>) = spec.suites.iter().partition(|code| **code >> 8 == 0x13);
    let new = named(&new, |code, name| {
        builder.set_ciphersuites(name).map_err(|_| TlsConfigError::UnknownSuite(code))
    })?;
    let old = named(&old, |code, name| {
        builder.set_cipher_list(&at_level_0(name)).map_err(|_| TlsConfigError::UnknownSuite(code))
    })?;
    builder.set_ciphersuites(&new)?;
    if old.is_empty() {
        return Ok(());
    }
    Ok(builder.set_cipher_list(&at_level_0(&old))?)
}

/// OpenSSL's names of `suites` with colons between them. A list with an unknown name would be taken without it: each is
/// tried alone first.
fn named(
    suites: &[u16],
    mut check: impl FnMut(u16, &str) -> Result<(), TlsConfigError>,
) -> Result<String, TlsConfigError> {
    let mut list = Vec::new();
    for &code in suites {
        let name = names::openssl_suite(code).ok_or(TlsConfigError::UnknownSuite(code))?;
        check(code, name)?;
        list.push(name);
    }
    Ok(list.join(":"))
}

fn set_groups(builder: &mut SslContextBuilder, groups: &[u16]) -> Result<(), ContextError> {
    let mut list = Vec::new();
    for &code in groups {
        let name = names::group(code).ok_or(TlsConfigError::UnknownGroup(code))?;
        builder.set_groups_list(name).map_err(|_| TlsConfigError::UnknownGroup(code))?;
        list.push(name);
    }
    if list.is_empty() { Ok(()) } else { Ok(builder.set_groups_list(&list.join(":"))?) }
}

/// OpenSSL knows most schemes by RFC 8446's names, and the oldest only by its own.
fn set_schemes(builder: &mut SslContextBuilder, schemes: &[u16]) -> Result<(), ContextError> {
    let mut list = Vec::new();
    for &code in schemes {
        let names = names::scheme(code).into_iter().chain(names::openssl_scheme(code));
        let known = names.into_iter().find(|name| builder.set_sigalgs_list(name).is_ok());
        list.push(known.ok_or(TlsConfigError::UnknownScheme(code))?);
    }
    if list.is_empty() { Ok(()) } else { Ok(builder.set_sigalgs_list(&list.join(":"))?) }
}

fn set_rest(builder: &mut SslContextBuilder, spec: &ClientTlsSpec) -> Result<(), ErrorStack> {
    builder.set_security_level(0);
    // Old servers know no secure renegotiation (RFC 5746), and nothing here ever renegotiates.
    builder.set_options(SslOptions::ALLOW_UNSAFE_LEGACY_RENEGOTIATION | SslOptions::NO_RENEGOTIATION);
    if spec.resume != Resume::Ticket {
        builder.set_options(SslOptions::NO_TICKET);
    }
    builder.set_mode(SslMode::RELEASE_BUFFERS);
    sessions::enable(builder);
    let protocols: Vec<u8> = spec.alpn.iter().flat_map(|name| prefixed(name)).collect();
    if protocols.is_empty() { Ok(()) } else { builder.set_alpn_protos(&protocols) }
}

fn set_trust(builder: &mut SslContextBuilder, trust: &Trust) -> Result<(), ContextError> {
    let Trust::Roots(roots) = trust else {
        builder.set_verify(SslVerifyMode::NONE);
        return Ok(());
    };
    let mut store = X509StoreBuilder::new()?;
    for root in roots {
        let root = X509::from_der(root).map_err(|error| TlsConfigError::BadRoot(error.to_string()))?;
        store.add_cert(root)?;
    }
    builder.set_cert_store(store.build());
    builder.set_verify(SslVerifyMode::PEER);
    Ok(())
}

fn set_identity(builder: &mut SslContextBuilder, identity: &ClientIdentity) -> Result<(), ErrorStack> {
    let mut chain = identity.certified.cert.iter();
    if let Some(leaf) = chain.next() {
        builder.set_certificate(X509::from_der(leaf)?.as_ref())?;
    }
    for certificate in chain {
        builder.add_extra_chain_cert(X509::from_der(certificate)?)?;
    }
    builder.set_private_key(PKey::private_key_from_der(&identity.key)?.as_ref())
}

/// A protocol name behind its length (RFC 7301, section 3.1). None has more than 255 bytes.
fn prefixed(name: &[u8]) -> impl Iterator<Item = u8> {
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    std::iter::once(length).chain(name.iter().take(length.into()).copied())
}

pub(crate) fn at_level_0(list: &str) -> String {
    format!("{list}:@SECLEVEL=0")
}

/// Why there is no context: what the settings have wrong, or what OpenSSL reports.
pub(super) struct ContextError(TlsConfigError);

impl From<TlsConfigError> for ContextError {
    fn from(error: TlsConfigError) -> Self {
        Self(error)
    }
}

impl From<ErrorStack> for ContextError {
    fn from(error: ErrorStack) -> Self {
        Self(TlsConfigError::Inconsistent(error.to_string()))
    }
}

impl From<ContextError> for TlsConfigError {
    fn from(error: ContextError) -> Self {
        error.0
    }
}

/// Code point, OpenSSL's version, and the option that leaves it out.
pub(crate) const VERSIONS: [(u16, SslVersion, SslOptions); 4] = [
    (0x0301, SslVersion::TLS1, SslOptions::NO_TLSV1),
    (0x0302, SslVersion::TLS1_1, SslOptions::NO_TLSV1_1),
    (0x0303, SslVersion::TLS1_2, SslOptions::NO_TLSV1_2),
    (0x0304, SslVersion::TLS1_3, SslOptions::NO_TLSV1_3),
];

/// What OpenSSL offers by itself, but for its lower limit on the sizes of keys and on old algorithms.
const OWN_SUITES: &str = "DEFAULT:@SECLEVEL=0";
