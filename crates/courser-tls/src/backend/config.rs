//! A pool's settings for TLS with its servers, compiled into the library's configuration: one for each server, all alike
//! but for the sessions.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::BackendConnection;
use super::sessions::BackendSessions;
use super::verifier::{BackendVerifier, Proof};
use crate::authorities::Authorities;
use crate::config_error::TlsConfigError;
use crate::failure::Failure;
use crate::identity::Identity;
use crate::key_schedule::with_prepared_hashes;
use crate::revocation::{Revocation, RevocationDepth};
use crate::trust_path::TrustedPaths;

/// How a server proves who it is.
#[derive(Clone, Debug)]
pub enum Verify {
    /// Its certificate is for its name, and one of these issued it, directly or through intermediates that it sends.
    Authorities(Vec<Authorities>),
    /// The key of its certificate is one of these: SHA-256 of SubjectPublicKeyInfo. Several, so that keys can roll.
    Pins(Vec<[u8; 32]>),
    /// It does not: whoever is on the path can be it.
    Off,
}

/// The name that a server is asked for (RFC 6066, section 3), and that its certificate has to be for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendName {
    /// The one that it is configured by: a name, or an IP address, which is not sent.
    Own,
    /// The one that the client asked for; its own where the client named none.
    Client,
    /// This one, a DNS name or an IP address.
    Fixed(String),
}

/// A pool's settings for TLS, before they are compiled.
#[derive(Clone, Debug)]
pub struct BackendTlsSpec {
    /// How a server proves who it is.
    pub verify: Verify,
    /// The name that it is asked for.
    pub name: BackendName,
    /// The certificate that it gets where it asks for one.
    pub identity: Option<Arc<Identity>>,
    /// What is revoked. Only with authorities.
    pub revocation: Option<Revocation>,
}

/// A pool's settings for TLS, compiled.
#[derive(Debug)]
pub struct BackendTlsConfig {
    /// Of every server, without its sessions.
    rustls: ClientConfig,
    proof: Arc<Proof>,
    name: BackendName,
    fingerprint: [u8; 32],
}

impl BackendTlsConfig {
    /// Compiles a pool's settings.
    ///
    /// # Errors
    /// When there is no authority or no pin, or a name that is none.
    pub fn new(spec: BackendTlsSpec) -> Result<Self, TlsConfigError> {
        let fingerprint = fingerprint(&spec);
        let BackendTlsSpec { verify, name, identity, revocation } = spec;
        if let BackendName::Fixed(name) = &name {
            server_name(name).ok_or_else(|| bad_name(name))?;
        }
        let proof = Arc::new(proof(verify, revocation)?);
        let library = provider::default_provider();
        let suites = library.cipher_suites.iter().map(|suite| with_prepared_hashes(*suite)).collect();
        let provider = CryptoProvider { cipher_suites: suites, ..library };
        let builder = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| TlsConfigError::Inconsistent(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier(&proof, &Arc::default()));
        let rustls = match identity {
            Some(identity) => builder
                .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&identity.certified)))),
            None => builder.with_no_client_auth(),
        };
        Ok(Self { rustls, proof, name, fingerprint })
    }

    /// SHA-256 over all that it is made of: sessions that were made under another are not resumed.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Whether a server that is configured by neither name nor IP address cannot be verified.
    pub fn needs_name(&self) -> bool {
        self.name == BackendName::Own && matches!(*self.proof, Proof::Path(_))
    }

    /// The settings of one server, without a session. `own` is the name or IP address that it is configured by; a unix
    /// socket has none.
    pub fn of_server(&self, own: Option<&str>) -> BackendTls {
        let name = match &self.name {
            BackendName::Fixed(name) => server_name(name),
            BackendName::Own | BackendName::Client => own.and_then(server_name),
        };
        let sessions = Arc::new(BackendSessions::default());
        let mut rustls = self.rustls.clone();
        rustls.dangerous().set_certificate_verifier(verifier(&self.proof, &sessions));
        rustls.resumption = Resumption::store(Arc::clone(&sessions) as _)
            .tls12_resumption(Tls12Resumption::SessionIdOrTickets);
        BackendTls {
            rustls: Arc::new(rustls),
            name: name.unwrap_or_else(nameless),
            by_client: self.name == BackendName::Client,
            #[cfg(test)]
            sessions,
        }
    }
}

fn verifier(proof: &Arc<Proof>, sessions: &Arc<BackendSessions>) -> Arc<BackendVerifier> {
    Arc::new(BackendVerifier { proof: Arc::clone(proof), sessions: Arc::clone(sessions) })
}

/// TLS with one server.
pub struct BackendTls {
    rustls: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    by_client: bool,
    #[cfg(test)]
    pub(super) sessions: Arc<BackendSessions>,
}

impl BackendTls {
    /// A connection that has not begun. `client_name` is the name that the client asked for, `alpn` the protocol that it
    /// got, which is the only one that the server is offered.
    ///
    /// # Errors
    /// A fault of this side.
    pub fn connect(
        &self,
        client_name: Option<&str>,
        alpn: Option<&[u8]>,
    ) -> Result<BackendConnection, Failure> {
        let by_client = || client_name.filter(|_| self.by_client).and_then(server_name);
        BackendConnection::new(self, by_client().unwrap_or_else(|| self.name.clone()), alpn)
    }

    /// The same server without sessions, for checks: each handshake is a full one, with the server's certificate and its
    /// proof, and takes no session from connections.
    #[must_use]
    pub fn without_sessions(&self) -> Self {
        let mut rustls = ClientConfig::clone(&self.rustls);
        rustls.resumption = Resumption::disabled();
        Self {
            rustls: Arc::new(rustls),
            name: self.name.clone(),
            by_client: self.by_client,
            #[cfg(test)]
            sessions: Arc::clone(&self.sessions),
        }
    }

    pub(super) fn rustls(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.rustls)
    }
}

impl fmt::Debug for BackendTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackendTls").field("name", &self.name).finish_non_exhaustive()
    }
}

fn fingerprint(spec: &BackendTlsSpec) -> [u8; 32] {
    let BackendTlsSpec { verify, name, identity, revocation } = spec;
    let mut context = Context::new(&SHA256);
    let mut add = |kind: &str, part: &[u8]| {
        for part in [kind.as_bytes(), part] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
    };
    match verify {
        Verify::Authorities(files) => {
            files.iter().flat_map(Authorities::certificates).for_each(|der| add("authority", der));
        }
        Verify::Pins(pins) => pins.iter().for_each(|pin| add("pin", pin)),
        Verify::Off => add("off", &[]),
    }
    match name {
        BackendName::Own => add("own name", &[]),
        BackendName::Client => add("client's name", &[]),
        BackendName::Fixed(name) => add("name", name.as_bytes()),
    }
    let chain = identity.iter().flat_map(|identity| &identity.certified.cert);
    chain.for_each(|der| add("certificate", der));
    if let Some(Revocation { lists, depth, accepts_unknown, accepts_expired }) = revocation {
        lists.iter().for_each(|list| add("list", list.digest()));
        let is_leaf = *depth == RevocationDepth::Leaf;
        add("revocation", &[is_leaf, *accepts_unknown, *accepts_expired].map(u8::from));
    }
    context.finish().as_ref().try_into().expect("SHA-256 yields 32 bytes")
}

fn proof(verify: Verify, revocation: Option<Revocation>) -> Result<Proof, TlsConfigError> {
    match verify {
        Verify::Authorities(files) => {
            let mut roots = RootCertStore::empty();
            for der in files.iter().flat_map(Authorities::certificates) {
                roots.add(der.clone()).map_err(|error| TlsConfigError::BadRoot(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(TlsConfigError::Unable("no authority to verify servers with"));
            }
            Ok(Proof::Path(TrustedPaths::new(roots, revocation)))
        }
        Verify::Pins(pins) if pins.is_empty() => Err(TlsConfigError::Unable("no pin to verify servers with")),
        Verify::Pins(pins) => Ok(Proof::Pins(pins)),
        Verify::Off => Ok(Proof::None),
    }
}

fn server_name(text: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(text.trim_end_matches('.').to_owned()).ok()
}

fn bad_name(text: &str) -> TlsConfigError {
    TlsConfigError::Inconsistent(format!("{text:?} is neither a DNS name nor an IP address"))
}

/// For a server that is verified by its key or not at all. An IP address is not sent.
fn nameless() -> ServerName<'static> {
    ServerName::IpAddress(std::net::Ipv6Addr::UNSPECIFIED.into())
}
