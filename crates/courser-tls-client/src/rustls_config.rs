//! A client's settings compiled for rustls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use courser_tls::TlsConfigError;
use courser_tls::internals::{BufferedRandom, with_prepared_hashes};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, SecureRandom, SupportedKxGroup, aws_lc_rs};
use rustls::{ClientConfig, SupportedCipherSuite, SupportedProtocolVersion};

use crate::group;
use crate::sessions::{CallContext, ClientSessions, ConfigId, CurrentSessions};
use crate::spec::{ClientTlsSpec, Engine, Resume};
use crate::verifier::Verifier;

/// The lean engine verifies the first signature of each clone of a configuration and then, by chance, one of so many: a
/// server cannot know which. One with P-256 took 81 us (`record/primitives.json`): 1.3 us per full handshake.
const SAMPLE_INTERVAL: u8 = 64;

/// A configuration of rustls.
pub(crate) struct RustlsClientConfig {
    pub(crate) rustls: Arc<ClientConfig>,
    id: ConfigId,
    pub(crate) resume: Resume,
    max_tickets: usize,
    engine: Engine,
    /// Whether a connection has been started.
    started: AtomicBool,
}

impl Clone for RustlsClientConfig {
    fn clone(&self) -> Self {
        Self { rustls: Arc::new(ClientConfig::clone(&self.rustls)), started: AtomicBool::new(false), ..*self }
    }
}

impl RustlsClientConfig {
    pub(crate) fn new(engine: Engine, spec: &ClientTlsSpec) -> Result<Self, TlsConfigError> {
        if spec.resume == Resume::SessionId && !spec.versions.contains(&0x0303) {
            return Err(TlsConfigError::Unable(
                "session IDs are of TLS 1.2, which is not among the versions",
            ));
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            rustls: Arc::new(config(engine, spec)?),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            resume: spec.resume,
            max_tickets: spec.max_tickets,
            engine,
            started: AtomicBool::new(false),
        })
    }

    /// The context of the next connection.
    pub(crate) fn call_context(&self, sessions: ClientSessions) -> CallContext {
        CallContext {
            verify: self.should_verify(),
            sessions,
            config: self.id,
            resume: self.resume,
            max_tickets: self.max_tickets,
            offered: None,
            scheme: None,
        }
    }

    /// Whether the next handshake is to be verified if it is a full one.
    fn should_verify(&self) -> bool {
        let mut chance = [0];
        self.engine != Engine::Lean
            || !self.started.swap(true, Ordering::Relaxed)
            || BufferedRandom.fill(&mut chance).is_err()
            || chance[0].is_multiple_of(SAMPLE_INTERVAL)
    }
}

fn config(engine: Engine, spec: &ClientTlsSpec) -> Result<ClientConfig, TlsConfigError> {
    let provider = Arc::new(provider(engine, spec)?);
    let versions = spec.versions.iter().map(version).collect::<Result<Vec<_>, _>>()?;
    if versions.is_empty() {
        return Err(TlsConfigError::NoVersion);
    }
    let verifier = Arc::new(Verifier::new(engine, &spec.schemes, &spec.trust, &provider)?);
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| TlsConfigError::Inconsistent(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match &spec.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder.with_client_cert_resolver(Arc::clone(identity) as _),
    };
    config.alpn_protocols.clone_from(&spec.alpn);
    config.enable_early_data = spec.early_data;
    config.resumption = resumption(spec.resume);
    Ok(config)
}

fn resumption(resume: Resume) -> Resumption {
    let current = || Resumption::store(Arc::new(CurrentSessions));
    match resume {
        Resume::Never => Resumption::disabled(),
        Resume::SessionId => current().tls12_resumption(Tls12Resumption::SessionIdOnly),
        Resume::Ticket => current().tls12_resumption(Tls12Resumption::SessionIdOrTickets),
    }
}

fn provider(engine: Engine, spec: &ClientTlsSpec) -> Result<CryptoProvider, TlsConfigError> {
    let library = aws_lc_rs::default_provider();
    let suites = match &spec.suites[..] {
        [] => default_suites(&spec.versions),
        requested => requested.to_vec(),
    };
    let groups = match (&spec.groups[..], engine) {
        ([], Engine::Lean) => LEAN_GROUPS.to_vec(),
        ([], _) => library.kx_groups.iter().map(|group| u16::from(group.name())).collect(),
        (requested, _) => requested.to_vec(),
    };
    Ok(match engine {
        Engine::Lean => CryptoProvider {
            cipher_suites: suites
                .iter()
                .map(|&code| library_suite(code).map(with_prepared_hashes))
                .collect::<Result<_, _>>()?,
            kx_groups: self::groups(&groups, group::lean)?,
            secure_random: &BufferedRandom,
            ..library
        },
        _ => CryptoProvider {
            cipher_suites: suites.iter().map(|&code| library_suite(code)).collect::<Result<_, _>>()?,
            kx_groups: self::groups(&groups, group::real)?,
            ..library
        },
    })
}

/// The lean engine's groups: those with a pool, the cheapest first (24, 49 and 165 us).
const LEAN_GROUPS: [u16; 3] = [0x001d, 0x0017, 0x0018];

type Group = &'static dyn SupportedKxGroup;

fn groups(
    codes: &[u16],
    find: fn(u16) -> Result<Group, TlsConfigError>,
) -> Result<Vec<Group>, TlsConfigError> {
    codes.iter().map(|&code| find(code)).collect()
}

/// The library's suites for these versions, AES-128 first.
fn default_suites(versions: &[u16]) -> Vec<u16> {
    let fits = |suite: &&SupportedCipherSuite| versions.contains(&u16::from(suite.version().version));
    let codes = aws_lc_rs::DEFAULT_CIPHER_SUITES.iter().filter(fits).map(|suite| u16::from(suite.suite()));
    let mut codes: Vec<_> = codes.collect();
    codes.sort_by_key(|code| !matches!(code, 0x1301 | 0xc02b | 0xc02f));
    codes
}

fn library_suite(code: u16) -> Result<SupportedCipherSuite, TlsConfigError> {
    let known = aws_lc_rs::ALL_CIPHER_SUITES.iter().find(|suite| u16::from(suite.suite()) == code);
    known.copied().ok_or(TlsConfigError::UnknownSuite(code))
}

fn version(code: &u16) -> Result<&'static SupportedProtocolVersion, TlsConfigError> {
    match code {
        0x0303 => Ok(&rustls::version::TLS12),
        0x0304 => Ok(&rustls::version::TLS13),
        _ => Err(TlsConfigError::UnknownVersion(*code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verified(engine: Engine) -> Vec<u32> {
        let config = RustlsClientConfig::new(engine, &ClientTlsSpec::default()).expect("it can do that");
        (0..6400).filter(|_| config.should_verify()).collect()
    }

    #[test]
    fn the_lean_engine_verifies_the_first_handshake_and_then_one_in_64_by_chance() {
        let (one, other) = (verified(Engine::Lean), verified(Engine::Lean));
        assert_eq!((one[0], other[0]), (0, 0));
        // Five standard deviations of a binomial distribution.
        assert!((50..=150).contains(&one.len()), "{}", one.len());
        assert_ne!(one, other);
        assert_eq!(verified(Engine::Real).len(), 6400);
    }
}
