//! A virtual host's TLS settings, compiled into the library's configurations.
//!
//! The library picks a key exchange group by the client's order and requests another key share (HelloRetryRequest)
//! when that group has none, even where the client has sent a share that would do. And it has one order of suites per
//! configuration. Both choices are ours: there is one configuration for each group and each order, all alike but for
//! that, and the caller names the one for the ClientHello at hand.

use std::sync::Arc;

use courser_session::{PolicyHash, SessionId, UnixSeconds};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::server::NoServerSessionStorage;
use rustls::{ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use crate::client_auth::{ClientAuth, ClientVerifier};
use crate::config_error::TlsConfigError;
use crate::names;
use crate::plan::PlannedCertificate;
use crate::random::BufferedRandom;
use crate::record_cipher;
use crate::sessions::Sessions;

/// A protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// Whose preference comes first among the suites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuiteOrder {
    /// The configured order.
    Configured,
    /// ChaCha20-Poly1305 first, then the configured order: for clients that put it first themselves, because they have
    /// no AES in hardware.
    ChaChaFirst,
}

/// A virtual host's TLS settings, before they are compiled.
#[derive(Clone, Debug, Default)]
pub struct ServerTlsSpec {
    /// Versions, at least one.
    pub versions: Vec<Version>,
    /// Cipher suites by code point, in order of preference.
    pub suites: Vec<u16>,
    /// Key exchange groups by code point, in order of preference; at least one.
    pub groups: Vec<u16>,
    /// Application protocols in order of preference.
    pub alpn: Vec<Vec<u8>>,
    /// Number of TLS 1.3 tickets sent after a handshake.
    pub tickets: usize,
    /// Whether clients need a certificate, and from which authorities.
    pub client_auth: ClientAuth,
}

/// A virtual host's TLS settings, compiled: a configuration of the library for each group and order of suites.
#[derive(Debug)]
pub struct ServerTlsConfig {
    /// Versions, at least one.
    pub versions: Vec<Version>,
    /// Cipher suites by code point, in order of preference.
    pub suites: Vec<u16>,
    /// Key exchange groups by code point, in order of preference.
    pub groups: Vec<u16>,
    configs: Vec<[Arc<ServerConfig>; 2]>,
    sessions: Sessions,
    /// What looks up the certificates of sessions.
    pub(crate) client_sessions: Option<Arc<ClientVerifier>>,
}

impl ServerTlsConfig {
    /// Compiles a virtual host's settings.
    ///
    /// # Errors
    /// When there is no group, or something that the library has not.
    pub fn new(spec: ServerTlsSpec, sessions: &Sessions) -> Result<Self, TlsConfigError> {
        let both = |&group: &u16| {
            let build = |order| build(&spec, group, order, sessions);
            Ok([build(SuiteOrder::Configured)?, build(SuiteOrder::ChaChaFirst)?].map(Arc::new))
        };
        let configs = spec.groups.iter().map(both).collect::<Result<Vec<_>, TlsConfigError>>()?;
        if configs.is_empty() {
            return Err(TlsConfigError::NoGroup);
        }
        let ServerTlsSpec { versions, suites, groups, client_auth, .. } = spec;
        let (client_sessions, sessions) = (client_auth.sessions(), sessions.clone());
        Ok(Self { versions, suites, groups, configs, sessions, client_sessions })
    }

    /// Whether a client that offers these tickets and this session ID has been here by `until`: one of the tickets opens, or
    /// the session is there, and it was made under this policy. Nothing is counted or used.
    pub fn has_session<'a>(
        &self,
        policy: &PolicyHash,
        tickets: impl Iterator<Item = &'a [u8]>,
        id: Option<&SessionId>,
        until: UnixSeconds,
    ) -> bool {
        self.sessions.has_session(policy, tickets, id, until)
    }

    /// Whether `version` is among them.
    pub fn allows(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }

    pub(crate) fn config(&self, group: u16, order: SuiteOrder) -> Arc<ServerConfig> {
        let index = self.groups.iter().position(|&known| known == group).unwrap_or(0);
        Arc::clone(&self.configs[index][usize::from(order == SuiteOrder::ChaChaFirst)])
    }
}

fn build(
    spec: &ServerTlsSpec,
    group: u16,
    order: SuiteOrder,
    sessions: &Sessions,
) -> Result<ServerConfig, TlsConfigError> {
    let provider = CryptoProvider {
        cipher_suites: ordered(&spec.suites, order).map(suite).collect::<Result<_, _>>()?,
        kx_groups: vec![kx_group(group)?],
        secure_random: &BufferedRandom,
        ..aws_lc_rs::default_provider()
    };
    let versions: Vec<_> = spec.versions.iter().map(|version| library_version(*version)).collect();
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&versions)
        .map_err(|error| TlsConfigError::Inconsistent(error.to_string()))?
        .with_client_cert_verifier(spec.client_auth.verifier())
        .with_cert_resolver(Arc::new(PlannedCertificate));
    config.ignore_client_order = true;
    config.alpn_protocols.clone_from(&spec.alpn);
    // Early data stays off: the library refuses it with tickets, and a terminator cannot make it safe from replay.
    config.max_early_data_size = 0;
    config.send_tls13_tickets = if sessions.ticketer.is_some() { spec.tickets } else { 0 };
    config.ticketer = Arc::new(sessions.clone());
    config.session_storage = match sessions.cache {
        Some(_) => Arc::new(sessions.clone()),
        None => Arc::new(NoServerSessionStorage {}),
    };
    Ok(config)
}

fn ordered(suites: &[u16], order: SuiteOrder) -> impl Iterator<Item = u16> {
    let mut suites = suites.to_vec();
    if order == SuiteOrder::ChaChaFirst {
        suites.sort_by_key(|&code| !is_chacha(code)); // stable: the configured order holds within each half
    }
    suites.into_iter()
}

/// Whether a suite (its code point) encrypts with ChaCha20-Poly1305.
fn is_chacha(code: u16) -> bool {
    names::suite(code).is_some_and(|name| name.contains("CHACHA20"))
}

fn suite(code: u16) -> Result<SupportedCipherSuite, TlsConfigError> {
    record_cipher::suite(code).ok_or(TlsConfigError::UnknownSuite(code))
}

fn kx_group(code: u16) -> Result<&'static dyn SupportedKxGroup, TlsConfigError> {
    let known = aws_lc_rs::ALL_KX_GROUPS.iter().find(|group| u16::from(group.name()) == code);
    known.copied().ok_or(TlsConfigError::UnknownGroup(code))
}

fn library_version(version: Version) -> &'static SupportedProtocolVersion {
    match version {
        Version::Tls12 => &rustls::version::TLS12,
        Version::Tls13 => &rustls::version::TLS13,
    }
}
