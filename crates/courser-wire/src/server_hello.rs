//! The ID of the session that a server makes or resumes, from its first bytes: what a relay that decrypts nothing can see.

use crate::bytes::Reader;
use crate::record::HANDSHAKE;

/// What a server's first bytes say of its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerSession<'a> {
    /// More bytes are needed; never more than [`MAX_LENGTH`].
    Incomplete,
    /// The session has this ID, of 1 to 32 bytes (RFC 5246 section 7.4.1.3). Where the client has offered a ticket and the
    /// ID is the client's own, it says no more than that the ticket was taken (RFC 5077 section 3.4).
    Id(&'a [u8]),
    /// The session has no ID: it is one of TLS 1.3, whose servers return the client's bytes (RFC 8446 section 4.1.3), or
    /// cannot be resumed by one, or the bytes are no ServerHello.
    None,
}

/// The most bytes that are looked at: the headers of record and message, and the ServerHello up to its suite.
pub const MAX_LENGTH: usize = 5 + 4 + 2 + 32 + 1 + LONGEST_ID + 2;

/// Reads the ID from the first bytes of a server, all that have come so far. A ServerHello that is cut into several records
/// before its suite, which no server does, is read as none.
pub fn session_id(sent: &[u8]) -> ServerSession<'_> {
    read(Reader::new(sent)).unwrap_or(ServerSession::Incomplete)
}

/// `None` where the bytes end.
fn read(mut sent: Reader<'_>) -> Option<ServerSession<'_>> {
    if sent.u8()? != HANDSHAKE || sent.u8()? != 3 {
        return Some(ServerSession::None);
    }
    let [_minor, high, low] = *sent.array()?;
    let record = usize::from(u16::from_be_bytes([high, low]));
    if sent.u8()? != SERVER_HELLO {
        return Some(ServerSession::None);
    }
    sent.take(3 + 2 + 32)?; // length, version, random
    let length = usize::from(sent.u8()?);
    if length > LONGEST_ID || record < BEFORE_ID + length + 2 {
        return Some(ServerSession::None);
    }
    let id = sent.take(length)?;
    let [suite, _] = *sent.array()?;
    let is_tls13 = suite == TLS13_SUITES;
    Some(if id.is_empty() || is_tls13 { ServerSession::None } else { ServerSession::Id(id) })
}

/// The handshake message type (RFC 8446 section 4).
const SERVER_HELLO: u8 = 2;

/// What comes before the ID in a record: header of the message, version, random, length of the ID.
const BEFORE_ID: usize = 4 + 2 + 32 + 1;

/// RFC 5246 section 7.4.1.2.
const LONGEST_ID: usize = 32;

/// First byte of the suites of TLS 1.3, which no earlier version has (RFC 8446 section B.4).
const TLS13_SUITES: u8 = 0x13;
