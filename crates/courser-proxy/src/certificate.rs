//! Which version, group and certificate: everything that is the host's to choose by the ClientHello.
//!
//! The library would choose a certificate by the signature schemes and by any suite in common. But in TLS 1.2 the
//! suite fixes the kind of key and the client's groups fix the curves it can verify, so the choice is made here, for
//! the version that will be negotiated.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use courser_telemetry::{Close, CloseReason};
use courser_tls::identity::Validity;
use courser_tls::{Identity, KeyKind, ServerTlsConfig, SuiteOrder, Version};
use courser_wire::alert::Description;

use crate::buffers::Inbox;
use crate::classify::{Classified, ClientOffer};
use crate::client::{Client, EarlyClose, alert};
use crate::settings::{Certificates, VirtualHost};

pub(crate) struct Selected {
    pub(crate) client: Client,
    pub(crate) received: Inbox,
    pub(crate) offer: ClientOffer,
    pub(crate) host: Arc<VirtualHost>,
    pub(crate) selection: Selection,
}

#[derive(Debug)]
pub(crate) struct Selection {
    pub(crate) version: Version,
    pub(crate) group: u16,
    pub(crate) order: SuiteOrder,
    pub(crate) identity: Arc<Identity>,
}

/// X25519MLKEM768, which TLS 1.2 has not.
const HYBRID: u16 = 0x11ec;

pub(crate) fn select(classified: Classified, host: Arc<VirtualHost>) -> Result<Selected, Box<EarlyClose>> {
    let Classified { mut client, received, offer } = classified;
    client.account.host = Some(Arc::clone(&host));
    match Selection::make(&offer, &host.tls, &host.certificates) {
        Ok(selection) => {
            client.account.identity = Some(Arc::clone(&selection.identity));
            Ok(Selected { client, received, offer, host, selection })
        }
        Err((end, description)) => {
            received.discard(&client.worker.buffers);
            Err(client.close_with(end, alert(description)))
        }
    }
}

pub(crate) type Refusal = (Close, Description);

impl Selection {
    pub(crate) fn make(
        offer: &ClientOffer,
        terms: &ServerTlsConfig,
        certificates: &Certificates,
    ) -> Result<Self, Refusal> {
        let version = version(offer, terms)?;
        let suites: Vec<u16> = terms.suites.iter().copied().filter(|&suite| is_of(suite, version)).collect();
        // Before the group: who offers nothing but RSA key exchange names no groups either.
        if !suites.iter().any(|suite| offer.suites.contains(suite)) {
            return Err(mismatch(CloseReason::NoCommonSuite));
        }
        let group = group(offer, terms, version)?;
        let usable = |identity: &Identity| is_usable(identity.kind, offer, version, &suites);
        let identities = certificates.for_name(offer.name.as_deref());
        let mut usable = identities.iter().filter(|identity| usable(identity)).peekable();
        let first = *usable.peek().ok_or_else(|| no_certificate(offer))?;
        // An expired certificate does not win over a valid one. Who has no choice asks no clock.
        let identity = match identities.len() {
            1 => first,
            _ => valid_of(usable).unwrap_or(first),
        };
        Ok(Self { version, group, order: order(offer, &suites), identity: Arc::clone(identity) })
    }
}

fn valid_of<'a>(mut usable: impl Iterator<Item = &'a Arc<Identity>>) -> Option<&'a Arc<Identity>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    usable.find(|identity| identity.validity(now) == Validity::Valid)
}

fn version(offer: &ClientOffer, terms: &ServerTlsConfig) -> Result<Version, Refusal> {
    if offer.tls13 && terms.allows(Version::Tls13) {
        Ok(Version::Tls13)
    } else if offer.tls12 && terms.allows(Version::Tls12) {
        Ok(Version::Tls12)
    } else {
        Err((CloseReason::NoCommonVersion.into(), Description::ProtocolVersion))
    }
}

fn is_of(suite: u16, version: Version) -> bool {
    (suite >> 8 == 0x13) == (version == Version::Tls13)
}

/// Our first group that the client has sent a key share for; only when there is none, our first that it knows, which
/// costs a HelloRetryRequest. In TLS 1.2 there are no shares.
fn group(offer: &ClientOffer, terms: &ServerTlsConfig, version: Version) -> Result<u16, Refusal> {
    let tls13 = version == Version::Tls13;
    let ours = || terms.groups.iter().filter(|&&group| tls13 || group != HYBRID);
    let shared = ours().find(|group| tls13 && offer.key_shares.contains(group));
    let known = || ours().find(|group| offer.groups.contains(group));
    shared.or_else(known).copied().ok_or_else(|| mismatch(CloseReason::NoCommonGroup))
}

/// Whether a client can use a certificate with a key of `kind`.
fn is_usable(kind: KeyKind, offer: &ClientOffer, version: Version, suites: &[u16]) -> bool {
    let tls13 = version == Version::Tls13;
    let Some(schemes) = &offer.schemes else { return false };
    let common = |&&suite: &&u16| offer.suites.contains(&suite);
    let suite = suites.iter().filter(common).any(|&suite| tls13 || kind.fits_tls12_suite(suite));
    let curve = tls13 || kind.curve().is_none_or(|curve| offer.groups.contains(&curve));
    suite && curve && schemes.iter().any(|&scheme| kind.signs(scheme, tls13))
}

/// A client that puts ChaCha20 first has no AES in hardware; everybody else gets the configured order.
fn order(offer: &ClientOffer, suites: &[u16]) -> SuiteOrder {
    let first = offer.suites.iter().find(|suite| suites.contains(suite));
    match first {
        Some(0x1303 | 0xcca8 | 0xcca9) => SuiteOrder::ChaChaFirst,
        _ => SuiteOrder::Configured,
    }
}

fn no_certificate(offer: &ClientOffer) -> Refusal {
    match offer.schemes {
        None => mismatch(Close::with(CloseReason::NoUsableCertificate, "no signature_algorithms extension")),
        Some(_) => mismatch(CloseReason::NoUsableCertificate),
    }
}

/// RFC 8446, section 4.1.1; RFC 5246, section 7.4.1.3.
fn mismatch(close: impl Into<Close>) -> Refusal {
    (close.into(), Description::HandshakeFailure)
}
