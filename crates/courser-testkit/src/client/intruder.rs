//! A client that does what no orderly one does: it carries a session to any server and name, and changes the
//! certificate that it shows from one connection to the next.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use rustls::{
    NamedGroup, SignatureScheme,
    client::{
        ClientSessionStore, ResolvesClientCert, Resumption, Tls12ClientSessionValue, Tls12Resumption,
        Tls13ClientSessionValue,
    },
    crypto::aws_lc_rs::sign::any_supported_type,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    sign::CertifiedKey,
};

use super::{Client, Resume, Version};
use crate::{Issued, KeyType};

/// See the module.
#[derive(Clone, Debug)]
pub struct Intruder {
    client: Client,
    shown: Arc<Shown>,
    loot: Arc<CapturedSession>,
}

impl Intruder {
    /// One that offers this version and way of resumption, and has neither certificate nor session.
    #[must_use]
    pub fn new(version: Version, key: KeyType, resume: Resume) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut client = Client::new(nowhere, version, key, Resume::Never);
        let (shown, loot) = (Arc::<Shown>::default(), Arc::<CapturedSession>::default());
        let config = Arc::make_mut(&mut client.config);
        config.client_auth_cert_resolver = Arc::clone(&shown) as _;
        config.resumption = match resume {
            Resume::Never => Resumption::disabled(),
            Resume::Ticket => Resumption::store(Arc::clone(&loot) as _),
            Resume::SessionId => {
                Resumption::store(Arc::clone(&loot) as _).tls12_resumption(Tls12Resumption::SessionIdOnly)
            }
        };
        Self { client, shown, loot }
    }

    /// The certificate that it shows from now on to whoever asks, whichever authority is asked for.
    pub fn show(&self, certificate: Option<&Issued>) {
        *lock(&self.shown.0) = certificate.map(certified);
    }

    /// Keeps the sessions of the connections from now on, in place of those that it has.
    pub fn collect(&self) {
        *lock(&self.loot.0) = CapturedTicket { collecting: true, ..CapturedTicket::default() };
    }

    /// Offers the sessions that it has from now on, and keeps those that it is given: as an orderly client does, but
    /// to every server.
    pub fn renew(&self) {
        *lock(&self.loot.0) =
            CapturedTicket { collecting: true, offering: true, ..CapturedTicket::default() };
    }

    /// Offers the sessions that it has from now on, and keeps no others. One of TLS 1.2 is offered again and again, a
    /// ticket of TLS 1.3 once.
    pub fn offer(&self) {
        let mut kept = lock(&self.loot.0);
        (kept.collecting, kept.offering) = (false, true);
    }

    /// How many connections can still be offered a session.
    #[must_use]
    pub fn offers_left(&self) -> usize {
        let kept = lock(&self.loot.0);
        if kept.tls12.is_some() { usize::MAX } else { kept.tls13.len() }
    }

    /// The client of one server, by address and name.
    ///
    /// # Panics
    /// When `name` is neither a DNS name nor an IP address.
    #[must_use]
    pub fn at(&self, address: SocketAddr, name: &str) -> Client {
        Client { address, ..self.client.for_name(name) }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A certificate with its key, as the library wants them.
pub(super) fn certified(issued: &Issued) -> Arc<CertifiedKey> {
    let chain = CertificateDer::pem_slice_iter(issued.chain_pem.as_bytes());
    let chain = chain.collect::<Result<_, _>>().expect("the test authority writes PEM");
    let key =
        PrivateKeyDer::from_pem_slice(issued.key_pem.as_bytes()).expect("the test authority writes PEM");
    Arc::new(CertifiedKey::new(
        chain,
        any_supported_type(&key).expect("the library signs with every test key"),
    ))
}

/// The certificate of the next connection.
#[derive(Debug, Default)]
pub(super) struct Shown(pub(super) Mutex<Option<Arc<CertifiedKey>>>);

impl ResolvesClientCert for Shown {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        lock(&self.0).clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Sessions, whichever server they are from.
#[derive(Debug, Default)]
struct CapturedSession(Mutex<CapturedTicket>);

#[derive(Debug, Default)]
struct CapturedTicket {
    collecting: bool,
    offering: bool,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl ClientSessionStore for CapturedSession {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        let mut kept = lock(&self.0);
        if kept.collecting {
            kept.tls12 = Some(session);
        }
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let kept = lock(&self.0);
        kept.tls12.clone().filter(|_| kept.offering)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = lock(&self.0);
        if kept.collecting {
            kept.tls13.push_back(ticket);
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = lock(&self.0);
        if kept.offering { kept.tls13.pop_back() } else { None }
    }
}
