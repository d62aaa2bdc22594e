//! TLS configurations of faulty servers.

use std::{
    collections::HashSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU16, Ordering},
    },
};

use courser_wire::hello::ClientHello;
use rustls::{
    ServerConfig, SupportedProtocolVersion,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, ServerSessionMemoryCache, StoresServerSessions},
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::Fault;
use crate::{Issued, KeyType, Leaf, TestCa};

/// Most sessions that are stored; the oldest is deleted first.
const SESSIONS: usize = 100_000;

/// The configurations of one server.
#[derive(Debug)]
pub(super) struct FaultScript {
    honest: Arc<ServerConfig>,
    /// One for each group, which it alone has.
    single: Vec<(u16, Arc<ServerConfig>)>,
    sessions: Arc<Sessions>,
    /// The suite of the last complete handshake.
    suite: AtomicU16,
    /// The leaf.
    pub(super) certificate: CertificateDer<'static>,
}

impl FaultScript {
    pub(super) fn new(fault: Fault, issued: &Issued) -> Self {
        let provider = aws_lc_rs::default_provider();
        let sessions = Arc::new(Sessions::new());
        let single = |group: &&'static dyn rustls::crypto::SupportedKxGroup| {
            let provider = CryptoProvider { kx_groups: vec![*group], ..provider.clone() };
            (u16::from(group.name()), config(fault, provider, issued, &sessions))
        };
        let wanted = fault == Fault::HelloRetry;
        let single = aws_lc_rs::ALL_KX_GROUPS.iter().filter(|_| wanted).map(single).collect();
        let honest = config(fault, provider.clone(), issued, &sessions);
        let suite = AtomicU16::new(0);
        Self { honest, single, sessions, suite, certificate: issued.certificate.clone() }
    }

    pub(super) fn honest(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.honest)
    }

    /// With the first group alone that the client lists and sends no share for.
    pub(super) fn without_share(&self, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
        let shared: Vec<u16> = hello.key_shares.groups().collect();
        let mut wanted = hello.groups.iter().filter(|group| !shared.contains(group));
        wanted.find_map(|group| {
            self.single.iter().find(|(known, _)| *known == group).map(|(_, config)| Arc::clone(config))
        })
    }

    pub(super) fn agreed_on(&self, suite: u16) {
        self.suite.store(suite, Ordering::SeqCst);
    }

    pub(super) fn last_suite(&self) -> u16 {
        self.suite.load(Ordering::SeqCst)
    }

    /// Whether a session of this ID was ever created here.
    pub(super) fn knows(&self, session_id: &[u8]) -> bool {
        self.sessions.ids.lock().unwrap_or_else(PoisonError::into_inner).contains(session_id)
    }
}

fn config(
    fault: Fault,
    provider: CryptoProvider,
    issued: &Issued,
    sessions: &Arc<Sessions>,
) -> Arc<ServerConfig> {
    let versions: &[&SupportedProtocolVersion] = match fault {
        Fault::FalseResumption => &[&rustls::version::TLS12],
        Fault::HelloRetry => &[&rustls::version::TLS13],
        _ => rustls::ALL_VERSIONS,
    };
    let chain = CertificateDer::pem_slice_iter(issued.chain_pem.as_bytes())
        .collect::<Result<_, _>>()
        .expect("the chain was issued as PEM");
    let key = PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).expect("the key was issued as PEM");
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .expect("the provider has suites for all versions")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key is the certificate's");
    if fault == Fault::WrongKey {
        config.cert_resolver = Arc::new(SingleCertAndKey::from(mismatched(issued)));
    }
    if fault.is_http2() {
        config.alpn_protocols = vec![b"h2".to_vec()];
    }
    if fault == Fault::NeverResumes {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        config.session_storage = Arc::clone(sessions) as Arc<dyn StoresServerSessions>;
        config.ticketer = aws_lc_rs::Ticketer::new().expect("the library has random bytes");
    }
    Arc::new(config)
}

/// The certificate with the key of another one.
fn mismatched(issued: &Issued) -> CertifiedKey {
    let other = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256));
    let key = PrivateKeyDer::from_pem_slice(other.key_pem.as_bytes()).expect("the key was issued as PEM");
    let key = aws_lc_rs::sign::any_supported_type(&key).expect("the library signs with it");
    CertifiedKey::new(vec![issued.certificate.clone()], key)
}

/// The library's cache, and the IDs of all sessions that were ever put into it.
struct Sessions {
    cache: Arc<ServerSessionMemoryCache>,
    ids: Mutex<HashSet<Vec<u8>>>,
}

impl Sessions {
    fn new() -> Self {
        Self { cache: ServerSessionMemoryCache::new(SESSIONS), ids: Mutex::default() }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl StoresServerSessions for Sessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone());
        self.cache.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(key)
    }

    fn can_cache(&self) -> bool {
        true
    }
}
