//! Which certificate a client gets that can use one kind of key only.

use std::net::SocketAddr;
use std::time::Duration;

use courser_tls::names;
use courser_tls_client::certificate::CertificateInfo;
use courser_tls_client::{ClientSessions, ClientTlsConfig, ClientTlsSpec, ServerName};

use super::dialogue;
use super::negotiation::Negotiated;
use super::prober::{InspectError, Prober};
use super::question::Question;
use super::resumption::terms_for;

/// What certificates a client can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    /// ECDSA (and EdDSA) alone.
    Ecdsa,
    /// RSA alone.
    Rsa,
}

/// A chain, and who gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// The kind of client.
    pub to: ClientKind,
    /// What the first certificate of the chain says.
    pub leaf: CertificateInfo,
    /// Certificates in the chain.
    pub length: usize,
    /// Bytes of the chain.
    pub bytes: usize,
}

/// The first certificate that a server sends to a client with exactly these terms; none when the handshake fails.
/// Nothing is requested: there may be no backend that answers.
pub fn leaf(
    address: SocketAddr,
    name: &str,
    terms: &ClientTlsConfig,
    timeout: Duration,
) -> Option<CertificateInfo> {
    let server_name = ServerName::parse(name).ok()?;
    let mut prober = Prober { address, name: server_name, host: name.to_owned(), timeout, connections: 0 };
    CertificateInfo::read(dialogue::shake_hands(&mut prober, terms)?.first()?)
}

/// The chain that each kind of client gets.
pub(super) fn certificates(
    prober: &mut Prober,
    versions: &[Negotiated],
) -> Result<Vec<Served>, InspectError> {
    let mut served = Vec::new();
    for kind in [ClientKind::Ecdsa, ClientKind::Rsa] {
        let chain = match in_the_clear(prober, versions, kind)? {
            Some(chain) => Some(chain),
            None => after_a_handshake(prober, versions, kind),
        };
        served.extend(chain.and_then(|chain| Served::new(kind, &chain)));
    }
    Ok(served)
}

impl Served {
    fn new(to: ClientKind, chain: &[Vec<u8>]) -> Option<Self> {
        let leaf = CertificateInfo::read(chain.first()?)?;
        Some(Self { to, leaf, length: chain.len(), bytes: chain.iter().map(Vec::len).sum() })
    }
}

impl ClientKind {
    /// Whether a suite up to TLS 1.2 has such a certificate.
    fn fits(self, suite: u16) -> bool {
        let beginnings: &[&str] = match self {
            Self::Ecdsa => &["TLS_ECDHE_ECDSA_"],
            Self::Rsa => &["TLS_ECDHE_RSA_", "TLS_DHE_RSA_", "TLS_RSA_"],
        };
        let name = names::suite(suite).unwrap_or_default();
        beginnings.iter().any(|beginning| name.starts_with(beginning))
    }

    fn schemes(self) -> &'static [u16] {
        match self {
            Self::Ecdsa => &[0x0403, 0x0503, 0x0603, 0x0807],
            Self::Rsa => &[0x0804, 0x0805, 0x0806, 0x0401, 0x0501, 0x0601],
        }
    }
}

/// From the newest version up to TLS 1.2 that has such a suite.
fn in_the_clear(
    prober: &mut Prober,
    versions: &[Negotiated],
    kind: ClientKind,
) -> Result<Option<Vec<Vec<u8>>>, InspectError> {
    let groups: Vec<u16> = names::groups().map(|(code, _)| code).collect();
    for found in versions.iter().filter(|found| found.version < TLS13) {
        let suites: Vec<u16> = found.suites.iter().copied().filter(|suite| kind.fits(*suite)).collect();
        if suites.is_empty() {
            continue;
        }
        let (version, schemes) = (found.version, kind.schemes());
        let question = Question { version, suites: &suites, groups: &groups, shares: &[], schemes };
        let said = prober.ask(&question)?.said();
        if let Some(said) = said.filter(|said| !said.certificates.is_empty()) {
            return Ok(Some(said.certificates));
        }
    }
    Ok(None)
}

/// In TLS 1.3 certificates are encrypted.
fn after_a_handshake(prober: &mut Prober, versions: &[Negotiated], kind: ClientKind) -> Option<Vec<Vec<u8>>> {
    let _ = versions.iter().find(|found| found.version == TLS13)?;
    let offer =
        ClientTlsSpec { versions: vec![TLS13], schemes: kind.schemes().to_vec(), ..ClientTlsSpec::default() };
    terms_for(&offer)
        .find_map(|terms| dialogue::hold(prober, &terms, ClientSessions::default()))
        .map(|held| held.certificates)
}

const TLS13: u16 = 0x0304;
