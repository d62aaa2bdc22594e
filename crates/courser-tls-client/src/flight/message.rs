//! The messages of a server's flight, as far as an observer needs them.

use courser_tls::names;

use super::cursor::Cursor;

/// A ServerHello or HelloRetryRequest (RFC 8446, section 4.1.3; RFC 5246, section 7.4.1.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHello {
    /// Protocol version, code point: the extension's if it is there.
    pub version: u16,
    /// Whether it is a HelloRetryRequest.
    pub is_retry: bool,
    /// The session ID: the client's own where a session is resumed, up to TLS 1.2.
    pub session_id: Vec<u8>,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Group of the key share, or that a HelloRetryRequest wants one of; TLS 1.3 only.
    pub group: Option<u16>,
    /// Whether a pre-shared key was selected: TLS 1.3's resumption.
    pub psk: bool,
    /// Whether a ticket will follow (RFC 5077, section 3.2); up to TLS 1.2.
    pub ticket: bool,
    /// Application protocol; up to TLS 1.2.
    pub alpn: Option<Vec<u8>>,
}

impl ServerHello {
    pub(super) fn read(body: &mut Cursor<'_>) -> Option<Self> {
        let mut hello = Self { version: body.u16()?, ..Self::default() };
        hello.is_retry = body.array::<32>()? == RETRY;
        hello.session_id = body.vector8()?.rest().to_vec();
        hello.suite = body.u16()?;
        let _compression = body.u8()?;
        if !body.is_empty() {
            hello.read_extensions(body.vector16()?)?;
        }
        Some(hello)
    }

    fn read_extensions(&mut self, mut block: Cursor<'_>) -> Option<()> {
        while !block.is_empty() {
            let kind = block.u16()?;
            let mut content = block.vector16()?;
            match kind {
                ALPN => self.alpn = Some(content.vector16()?.vector8()?.rest().to_vec()),
                SESSION_TICKET => self.ticket = true,
                PRE_SHARED_KEY => self.psk = true,
                SUPPORTED_VERSIONS => self.version = content.u16()?,
                KEY_SHARE => self.group = Some(content.u16()?),
                _ => {}
            }
        }
        Some(())
    }
}

/// A server's ephemeral key (RFC 8422, section 5.4; RFC 5246, section 7.4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyExchange {
    /// The named curve, code point; none for a finite field.
    pub group: Option<u16>,
    /// Size of the finite field's prime in bits; none for a curve.
    pub prime_bits: Option<u32>,
    /// Signature scheme, code point; none before TLS 1.2 and for anonymous suites.
    pub scheme: Option<u16>,
}

impl KeyExchange {
    /// None where it is neither a named curve nor a finite field.
    pub(super) fn read(body: &mut Cursor<'_>, version: u16, suite: u16) -> Option<Self> {
        let name = names::suite(suite)?;
        let mut exchange = Self { group: None, prime_bits: None, scheme: None };
        if name.starts_with("TLS_ECDH") {
            if body.u8()? != NAMED_CURVE {
                return None;
            }
            exchange.group = Some(body.u16()?);
            body.vector8()?;
        } else {
            exchange.prime_bits = Some(bits(body.vector16()?.rest()));
            body.vector16()?;
            body.vector16()?;
        }
        if version >= TLS12 && !name.contains("_anon_") {
            exchange.scheme = Some(body.u16()?);
        }
        Some(exchange)
    }
}

/// The certificates of a Certificate message up to TLS 1.2 (RFC 5246, section 7.4.2).
pub(super) fn certificates(body: &mut Cursor<'_>) -> Option<Vec<Vec<u8>>> {
    let mut list = body.vector24()?;
    let mut certificates = Vec::new();
    while !list.is_empty() {
        certificates.push(list.vector24()?.rest().to_vec());
    }
    Some(certificates)
}

/// Length of a number without leading zeros.
fn bits(number: &[u8]) -> u32 {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let Some(first) = number.get(zeros) else { return 0 };
    let whole = u32::try_from(number.len() - zeros).expect("its length came in two bytes");
    whole * 8 - first.leading_zeros()
}

const TLS12: u16 = 0x0303;

/// The random value that makes a ServerHello a HelloRetryRequest (RFC 8446, section 4.1.3).
pub(super) const RETRY: [u8; 32] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
    0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

/// Extensions (RFC 8446, section 4.2; RFC 7301; RFC 5077).
const ALPN: u16 = 16;
const SESSION_TICKET: u16 = 35;
const PRE_SHARED_KEY: u16 = 41;
const SUPPORTED_VERSIONS: u16 = 43;
const KEY_SHARE: u16 = 51;

/// `named_curve` of `ECCurveType` (RFC 8422, section 5.4).
const NAMED_CURVE: u8 = 3;
