//! What a ClientHello says (RFC 8446 section 4.1.2, RFC 5246 section 7.4.1.2), borrowed from its bytes and read
//! in one pass. It says what the client offers and decides nothing; extensions it has no field for are checked
//! for their framing only.

mod extension;
mod lists;
mod malformed;
mod server_name;

pub use lists::{KeyShares, List16, ProtocolNames, PskIdentities, is_grease};
pub use malformed::Malformed;

use crate::bytes::Reader;
use extension::Seen;

/// TLS 1.2 as a version number.
pub const TLS12: u16 = 0x0303;
/// TLS 1.3 as a version number.
pub const TLS13: u16 = 0x0304;

/// A ClientHello. Lists are in the order and with the values sent, GREASE (RFC 8701) included;
/// [`List16::without_grease`] skips it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientHello<'a> {
    /// The version field of old, 0x0303 from every client that offers TLS 1.2 or later.
    pub legacy_version: u16,
    /// The client's nonce.
    pub random: &'a [u8; 32],
    /// The session ID offered, 0 to 32 bytes. A TLS 1.3 client may send one that names no session.
    pub session_id: &'a [u8],
    /// Cipher suites, never empty.
    pub cipher_suites: List16<'a>,
    /// The name asked for (RFC 6066 section 3), in the case it was sent in, without the final dot that section 3
    /// forbids. An IP address is forbidden too, but sent by some clients, and stays as it came.
    pub server_name: Option<&'a str>,
    /// Application protocols (RFC 7301); empty if the client offers none.
    pub alpn: ProtocolNames<'a>,
    /// Key exchange groups the client knows; empty if it sends none.
    pub groups: List16<'a>,
    /// Groups with a key share; empty before TLS 1.3, or if the client asks for a HelloRetryRequest.
    pub key_shares: KeyShares<'a>,
    /// `signature_algorithms`; absent, TLS 1.2 means SHA-1 with each key type (RFC 5246 section 7.4.1.4.1).
    pub signature_schemes: Option<List16<'a>>,
    /// `supported_versions`, absent before TLS 1.3.
    pub supported_versions: Option<List16<'a>>,
    /// The session ticket of TLS 1.2 (RFC 5077 section 3.2): empty if the client takes tickets and has none.
    pub session_ticket: Option<&'a [u8]>,
    /// Identities of `pre_shared_key`, in TLS 1.3 the tickets offered; empty without the extension.
    pub psk_identities: PskIdentities<'a>,
    /// `psk_key_exchange_modes`; without it a TLS 1.3 client takes no tickets (RFC 8446 section 4.2.9).
    pub psk_key_exchange_modes: Option<&'a [u8]>,
    /// Whether it offers `extended_master_secret` (RFC 7627).
    pub extended_master_secret: bool,
    /// Whether early data follows (RFC 8446 section 4.2.10).
    pub early_data: bool,
    /// Whether it has `encrypted_client_hello` (RFC 9849 section 5): `server_name` is then a public name, or the client greases.
    pub ech: bool,
}

impl<'a> ClientHello<'a> {
    /// Reads `body`, a ClientHello message without its four bytes of type and length, as
    /// [`Assembly::Complete`](crate::record::Assembly) holds it.
    ///
    /// # Errors
    /// [`Malformed`]: the first fault met.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        use Malformed::Truncated;
        let mut reader = Reader::new(body);
        let legacy_version = reader.u16().ok_or(Truncated("legacy_version"))?;
        let random = reader.array().ok_or(Truncated("random"))?;
        let session_id = reader.vector8().ok_or(Truncated("session_id"))?;
        if session_id.len() > 32 {
            return Err(Malformed::BadLength("session_id"));
        }
        let cipher_suites = List16::filled(reader.vector16(), "cipher_suites")?;
        if reader.vector8().ok_or(Truncated("compression_methods"))?.is_empty() {
            return Err(Malformed::BadLength("compression_methods"));
        }
        let mut hello = Self::without_extensions(legacy_version, random);
        (hello.session_id, hello.cipher_suites) = (session_id, cipher_suites);
        // A ClientHello of TLS 1.2 may end here (RFC 5246 section 7.4.1.2).
        if !reader.is_empty() {
            let block = reader.vector16().ok_or(Truncated("extensions"))?;
            hello.read_extensions(block)?;
        }
        if reader.is_empty() { Ok(hello) } else { Err(Malformed::Trailing("client_hello")) }
    }

    /// Whether `supported_versions` names TLS 1.3, which alone offers it (RFC 8446 section 4.2.1).
    pub fn offers_tls13(&self) -> bool {
        self.supported_versions.is_some_and(|versions| versions.contains(TLS13))
    }

    fn without_extensions(legacy_version: u16, random: &'a [u8; 32]) -> Self {
        Self {
            legacy_version,
            random,
            session_id: &[],
            cipher_suites: List16::default(),
            server_name: None,
            alpn: ProtocolNames::default(),
            groups: List16::default(),
            key_shares: KeyShares::default(),
            signature_schemes: None,
            supported_versions: None,
            session_ticket: None,
            psk_identities: PskIdentities::default(),
            psk_key_exchange_modes: None,
            extended_master_secret: false,
            early_data: false,
            ech: false,
        }
    }

    fn read_extensions(&mut self, block: &'a [u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(block);
        let mut seen = Seen::default();
        while !reader.is_empty() {
            let kind = reader.u16().ok_or(Malformed::Truncated("extension"))?;
            let content = reader.vector16().ok_or(Malformed::Truncated("extension"))?;
            if !seen.insert(kind) {
                return Err(Malformed::DuplicateExtension(kind));
            }
            self.read_extension(kind, content)?;
            if kind == extension::PRE_SHARED_KEY && !reader.is_empty() {
                return Err(Malformed::PreSharedKeyNotLast);
            }
        }
        Ok(())
    }

    fn read_extension(&mut self, kind: u16, content: &'a [u8]) -> Result<(), Malformed> {
        let mut reader = Reader::new(content);
        match kind {
            extension::SERVER_NAME => self.server_name = server_name::read(&mut reader)?,
            extension::SUPPORTED_GROUPS => {
                self.groups = List16::filled(reader.vector16(), "supported_groups")?;
            }
            extension::SIGNATURE_ALGORITHMS => {
                let schemes = List16::filled(reader.vector16(), "signature_algorithms")?;
                self.signature_schemes = Some(schemes);
            }
            extension::ALPN => self.alpn = ProtocolNames::read(&mut reader)?,
            extension::EXTENDED_MASTER_SECRET => self.extended_master_secret = true,
            extension::SESSION_TICKET => {
                self.session_ticket = Some(content);
                return Ok(());
            }
            extension::PRE_SHARED_KEY => self.psk_identities = PskIdentities::read(&mut reader)?,
            extension::EARLY_DATA => self.early_data = true,
            extension::SUPPORTED_VERSIONS => {
                let versions = List16::filled(reader.vector8(), "supported_versions")?;
                self.supported_versions = Some(versions);
            }
            extension::PSK_KEY_EXCHANGE_MODES => {
                let modes = reader.vector8().filter(|modes| !modes.is_empty());
                self.psk_key_exchange_modes =
                    Some(modes.ok_or(Malformed::BadLength("psk_key_exchange_modes"))?);
            }
            extension::SIGNATURE_ALGORITHMS_CERT => {
                List16::filled(reader.vector16(), "signature_algorithms_cert")?;
            }
            extension::KEY_SHARE => self.key_shares = KeyShares::read(&mut reader)?,
            extension::ECH => {
                self.ech = true;
                return Ok(());
            }
            _ => return Ok(()),
        }
        if reader.is_empty() { Ok(()) } else { Err(Malformed::Trailing(extension::name(kind))) }
    }
}
