//! Which signature scheme the server has used.

use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Public};
use openssl::ssl::SslRef;

use crate::flight::ServerFlight;

/// Its code point. TLS 1.2 sends it in the clear. In TLS 1.3 it follows from the server's key, which leaves no choice
/// but with RSA: there it is known only if a single scheme `offered` fits. TLS 1.0 and 1.1 have none.
pub(crate) fn used(ssl: &SslRef, flight: &ServerFlight, version: u16, offered: &[u16]) -> Option<u16> {
    if version < 0x0304 {
        return flight.key_exchange.as_ref()?.scheme;
    }
    let key = ssl.peer_certificate()?.public_key().ok()?;
    let possible = of_key(&key);
    let mut fitting = possible.iter().filter(|scheme| offered.is_empty() || offered.contains(scheme));
    let scheme = fitting.next()?;
    fitting.next().is_none().then_some(*scheme)
}

/// What a key can sign with in TLS 1.3 (RFC 8446, section 4.2.3).
fn of_key(key: &PKey<Public>) -> &'static [u16] {
    match key.id() {
        Id::RSA => &[0x0804, 0x0805, 0x0806],
        Id::RSA_PSS => &[0x0809, 0x080a, 0x080b],
        Id::ED25519 => &[0x0807],
        Id::ED448 => &[0x0808],
        Id::EC => match key.ec_key().ok().and_then(|key| key.group().curve_name()) {
            Some(Nid::X9_62_PRIME256V1) => &[0x0403],
            Some(Nid::SECP384R1) => &[0x0503],
            Some(Nid::SECP521R1) => &[0x0603],
            _ => &[],
        },
        _ => &[],
    }
}
