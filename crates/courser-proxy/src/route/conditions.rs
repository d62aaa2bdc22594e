//! Whether a ClientHello meets the conditions of a rule.

use courser_tls::{KeyKind, Version};

use crate::classify::{Classified, ClientOffer};
use crate::settings::{Conditions, Listener};

/// Whether all conditions hold.
pub(super) fn hold(conditions: &Conditions, classified: &Classified) -> bool {
    let Classified { client, offer, .. } = classified;
    let Conditions { server_names, alpn, rsa_only, version, session } = conditions;
    let offered =
        |protocol: &Vec<u8>| client.account.offered.iter().any(|hello| hello.alpn.contains(protocol));
    server_names.as_ref().is_none_or(|names| names.contain(offer.name.as_deref()))
        && (alpn.is_empty() || alpn.iter().any(offered))
        && version.is_none_or(|version| highest_version(offer) == Some(version))
        && session.is_none_or(|session| session == offers_session(offer))
        && (!rsa_only || is_rsa_only(offer, &client.listener))
}

fn highest_version(offer: &ClientOffer) -> Option<Version> {
    let tls12 = offer.tls12.then_some(Version::Tls12);
    if offer.tls13 { Some(Version::Tls13) } else { tls12 }
}

/// Whether the client means to resume a session. A session ID alone says so only where TLS 1.3 is not offered: clients of
/// that send a random one (RFC 8446, section 4.1.2).
fn offers_session(offer: &ClientOffer) -> bool {
    offer.psk || offer.ticket || (offer.session_id.is_some() && !offer.tls13)
}

/// Whether the client can use no ECDSA certificate of the host that it would get by its name: in TLS 1.3 a signature scheme
/// names the curve; before, a suite, a scheme and the curve among its groups are needed (RFC 8422, section 2).
fn is_rsa_only(offer: &ClientOffer, listener: &Listener) -> bool {
    let host = listener.host(offer.name.as_deref());
    let certificates = host.map(|host| host.certificates.for_name(offer.name.as_deref()));
    let kinds = certificates.into_iter().flatten().map(|identity| identity.kind);
    let mut kinds: Vec<KeyKind> = kinds.filter(|kind| kind.curve().is_some()).collect();
    if kinds.is_empty() {
        kinds.extend(USUAL);
    }
    let schemes = || offer.schemes.iter().flatten();
    if offer.tls13 && host.is_none_or(|host| host.tls.allows(Version::Tls13)) {
        return !kinds.iter().any(|kind| schemes().any(|&scheme| kind.signs(scheme, true)));
    }
    let is_known = |kind: &KeyKind| kind.curve().is_some_and(|curve| offer.groups.contains(&curve));
    // Without the extension SHA-1 is meant, with any kind of key (RFC 5246, section 7.4.1.4.1).
    let has_scheme = offer.schemes.is_none() || schemes().any(|&scheme| is_ecdsa_scheme(scheme));
    !(has_scheme && offer.suites.iter().any(|&suite| is_ecdsa_suite(suite)) && kinds.iter().any(is_known))
}

/// Curves of the certificates behind a listener that has none of its own.
const USUAL: [KeyKind; 2] = [KeyKind::EcdsaP256, KeyKind::EcdsaP384];

/// A hash, from SHA-1 on, and 3 for ECDSA (RFC 5246, section 7.4.1.4.1).
fn is_ecdsa_scheme(scheme: u16) -> bool {
    matches!(scheme, 0x0203 | 0x0303 | 0x0403 | 0x0503 | 0x0603)
}

/// TLS_ECDHE_ECDSA_WITH_*, of whatever cipher (IANA, TLS Cipher Suites).
fn is_ecdsa_suite(suite: u16) -> bool {
    matches!(
        suite,
        0xc006..=0xc00a
            | 0xc023..=0xc024
            | 0xc02b..=0xc02c
            | 0xc048..=0xc049
            | 0xc05c..=0xc05d
            | 0xc072..=0xc073
            | 0xc086..=0xc087
            | 0xc0ac..=0xc0af
            | 0xcca9
    )
}
