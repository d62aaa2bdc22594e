//! What a header says, and the numbers in it.

use super::ssl::Ssl;
use crate::proxy::Addresses;

/// The content of a header. The same type is written and read, and reads as it was written.
/// Text that a client chose (`authority`, `common_name`) is passed on as it is: these fields have lengths, and
/// no byte in them can be taken for the header's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyHeader<'a> {
    /// On whose behalf the connection is.
    pub command: Command,
    /// Who called, and where.
    pub addresses: Addresses<'a>,
    /// The application protocol agreed on (section 2.2.1).
    pub alpn: Option<&'a [u8]>,
    /// The name the client asked for, the SNI (section 2.2.2).
    pub authority: Option<&'a str>,
    /// Names the connection across proxies: 128 bytes at most (section 2.2.5).
    pub unique_id: Option<&'a [u8]>,
    /// What is known of the client's TLS connection (section 2.2.6).
    pub ssl: Option<Ssl<'a>>,
    /// Whether the header ends with a checksum (section 2.2.3). Read: whether it carried one, which was right.
    pub crc32c: bool,
}

/// On whose behalf a connection is (section 2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Command {
    /// The proxy's own, such as a health check: nothing else of the header is written, or taken from it.
    Local,
    /// A client's.
    #[default]
    Proxy,
}

pub(super) const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family and transport, length.
pub(super) const HEADER: usize = 16;
/// Type and length in front of each field.
pub(super) const FIELD_HEADER: usize = 3;
/// The size of `sun_path`.
pub(super) const UNIX_PATH: usize = 108;
pub(super) const MAX_UNIQUE_ID: usize = 128;

pub(super) const ALPN: u8 = 0x01;
pub(super) const AUTHORITY: u8 = 0x02;
pub(super) const CRC32C: u8 = 0x03;
pub(super) const NOOP: u8 = 0x04;
pub(super) const UNIQUE_ID: u8 = 0x05;
