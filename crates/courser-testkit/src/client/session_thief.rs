//! A client that offers a session to any server and name, and changes its certificate from one connection to the next.

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

/// Such a client.
#[derive(Clone, Debug)]
pub struct SessionThief {
    client: Client,
    certificate: Arc<CurrentCertificate>,
    captured: Arc<CapturedSessions>,
}

impl SessionThief {
    /// One that offers this version and way of resumption, and has neither certificate nor session.
    pub fn new(version: Version, key: KeyType, resume: Resume) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut client = Client::new(nowhere, version, key, Resume::Never);
        let (certificate, captured) =
            (Arc::<CurrentCertificate>::default(), Arc::<CapturedSessions>::default());
        let config = Arc::make_mut(&mut client.config);
        config.client_auth_cert_resolver = Arc::clone(&certificate) as _;
        config.resumption = match resume {
            Resume::Never => Resumption::disabled(),
            Resume::Ticket => Resumption::store(Arc::clone(&captured) as _),
            Resume::SessionId => {
                Resumption::store(Arc::clone(&captured) as _).tls12_resumption(Tls12Resumption::SessionIdOnly)
            }
        };
        Self { client, certificate, captured }
    }

    /// Sets the certificate that it sends from now on to any CertificateRequest, whichever authority it names.
    pub fn set_certificate(&self, certificate: Option<&Issued>) {
        *lock(&self.certificate.0) = certificate.map(certified);
    }

    /// Stores the sessions of the connections from now on, in place of those that it has.
    pub fn capture(&self) {
        *lock(&self.captured.0) = CaptureState { capturing: true, ..CaptureState::default() };
    }

    /// Offers the sessions that it has from now on, and stores those that it receives: as an orderly client does, but
    /// to every server.
    pub fn renew(&self) {
        *lock(&self.captured.0) = CaptureState { capturing: true, offering: true, ..CaptureState::default() };
    }

    /// Offers the sessions that it has from now on, and stores no others. One of TLS 1.2 is offered again and again, a
    /// ticket of TLS 1.3 once.
    pub fn offer(&self) {
        let mut state = lock(&self.captured.0);
        (state.capturing, state.offering) = (false, true);
    }

    /// How many connections can still be offered a session.
    pub fn offers_left(&self) -> usize {
        let state = lock(&self.captured.0);
        if state.tls12.is_some() { usize::MAX } else { state.tls13.len() }
    }

    /// The client of one server, by address and name.
    ///
    /// # Panics
    /// When `name` is neither a DNS name nor an IP address.
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
pub(super) struct CurrentCertificate(pub(super) Mutex<Option<Arc<CertifiedKey>>>);

impl ResolvesClientCert for CurrentCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        lock(&self.0).clone()
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Sessions, whichever server they are from.
#[derive(Debug, Default)]
pub(super) struct CapturedSessions(Mutex<CaptureState>);

impl CapturedSessions {
    /// Captures and offers nothing, but makes the client send its one key share for this group: the library sends one for
    /// the group that a server chose last, and reads it from the store.
    pub(super) fn with_hint(group: NamedGroup) -> Self {
        Self(CaptureState { hint: Some(group), ..CaptureState::default() }.into())
    }
}

#[derive(Debug, Default)]
struct CaptureState {
    hint: Option<NamedGroup>,
    capturing: bool,
    offering: bool,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl ClientSessionStore for CapturedSessions {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        lock(&self.0).hint
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        let mut state = lock(&self.0);
        if state.capturing {
            state.tls12 = Some(session);
        }
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let state = lock(&self.0);
        state.tls12.clone().filter(|_| state.offering)
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut state = lock(&self.0);
        if state.capturing {
            state.tls13.push_back(ticket);
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut state = lock(&self.0);
        if state.offering { state.tls13.pop_back() } else { None }
    }
}
