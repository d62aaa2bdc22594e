//! The field about the client's TLS connection, and the fields within it (section 2.2.6).

use super::field::{field, next_field, once, text};
use crate::bytes::Reader;
use crate::proxy::Malformed;

/// What is known of the client's TLS connection. A sender leaves out what it does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ssl<'a> {
    /// Whether the client connected over TLS.
    pub over_tls: bool,
    /// Whether it showed a certificate on this connection.
    pub certificate_on_connection: bool,
    /// Whether it showed one on this connection or an earlier one of the same session.
    pub certificate_in_session: bool,
    /// 0 if it showed a certificate and that was verified; anything else if not, and 1 by default. Some senders,
    /// HAProxy among them, send 0 without any certificate too: look at the flags first.
    pub verify: u32,
    /// `TLSv1.3`.
    pub version: Option<&'a str>,
    /// The client certificate's common name, UTF-8.
    pub common_name: Option<&'a str>,
    /// The cipher suite: `TLS_AES_128_GCM_SHA256`.
    pub cipher: Option<&'a str>,
    /// What signed the certificate that was shown to the client: `SHA256`, `RSA-SHA256`.
    pub signature_algorithm: Option<&'a str>,
    /// The key in the certificate that was shown to the client: `EC256`, `RSA2048`.
    pub key_algorithm: Option<&'a str>,
    /// The key exchange group: `X25519MLKEM768`.
    pub group: Option<&'a str>,
    /// What signed the handshake: `ecdsa_secp256r1_sha256`.
    pub signature_scheme: Option<&'a str>,
    /// The client's certificate, DER.
    pub client_certificate: Option<&'a [u8]>,
}

/// Nothing known, and nothing verified: all zeros would claim a good certificate to a backend that looks at
/// `verify` alone.
impl Default for Ssl<'_> {
    fn default() -> Self {
        Self {
            over_tls: false,
            certificate_on_connection: false,
            certificate_in_session: false,
            verify: 1,
            version: None,
            common_name: None,
            cipher: None,
            signature_algorithm: None,
            key_algorithm: None,
            group: None,
            signature_scheme: None,
            client_certificate: None,
        }
    }
}

impl<'a> Ssl<'a> {
    /// Appends the field's content.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flags = [
            (self.over_tls, OVER_TLS),
            (self.certificate_on_connection, CERTIFICATE_ON_CONNECTION),
            (self.certificate_in_session, CERTIFICATE_IN_SESSION),
        ];
        out.push(flags.iter().map(|&(set, flag)| if set { flag } else { 0 }).sum());
        out.extend_from_slice(&self.verify.to_be_bytes());
        let texts = [
            (VERSION, self.version),
            (COMMON_NAME, self.common_name),
            (CIPHER, self.cipher),
            (SIGNATURE_ALGORITHM, self.signature_algorithm),
            (KEY_ALGORITHM, self.key_algorithm),
            (GROUP, self.group),
            (SIGNATURE_SCHEME, self.signature_scheme),
        ];
        for (kind, value) in texts {
            field(kind, value.map(str::as_bytes), out);
        }
        field(CLIENT_CERTIFICATE, self.client_certificate, out);
    }

    /// Reads the field's content.
    pub(super) fn parse(content: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(content);
        let flags = reader.u8().ok_or(Malformed::ShortField(SSL))?;
        let mut ssl = Self {
            over_tls: flags & OVER_TLS != 0,
            certificate_on_connection: flags & CERTIFICATE_ON_CONNECTION != 0,
            certificate_in_session: flags & CERTIFICATE_IN_SESSION != 0,
            verify: reader.u32().ok_or(Malformed::ShortField(SSL))?,
            ..Self::default()
        };
        while let Some((kind, value)) = next_field(&mut reader)? {
            ssl.read(kind, value)?;
        }
        Ok(ssl)
    }

    fn read(&mut self, kind: u8, value: &'a [u8]) -> Result<(), Malformed> {
        let slot = match kind {
            VERSION => &mut self.version,
            COMMON_NAME => &mut self.common_name,
            CIPHER => &mut self.cipher,
            SIGNATURE_ALGORITHM => &mut self.signature_algorithm,
            KEY_ALGORITHM => &mut self.key_algorithm,
            GROUP => &mut self.group,
            SIGNATURE_SCHEME => &mut self.signature_scheme,
            CLIENT_CERTIFICATE => return once(kind, &mut self.client_certificate, value),
            _ => return Ok(()),
        };
        once(kind, slot, text(kind, value)?)
    }
}

/// The type of the field.
pub(super) const SSL: u8 = 0x20;

const OVER_TLS: u8 = 0x01;
const CERTIFICATE_ON_CONNECTION: u8 = 0x02;
const CERTIFICATE_IN_SESSION: u8 = 0x04;

const VERSION: u8 = 0x21;
const COMMON_NAME: u8 = 0x22;
const CIPHER: u8 = 0x23;
const SIGNATURE_ALGORITHM: u8 = 0x24;
const KEY_ALGORITHM: u8 = 0x25;
const GROUP: u8 = 0x26;
const SIGNATURE_SCHEME: u8 = 0x27;
const CLIENT_CERTIFICATE: u8 = 0x28;
