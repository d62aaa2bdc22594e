//! From the first bytes of a connection to one whole ClientHello message, or to what they are instead.
//! Takes records and handshake framing apart (RFC 8446 sections 4 and 5.1); never looks into the message.

use std::borrow::Cow;
use std::fmt;

use crate::alert::{ALERT, Description};

/// What `received`, all bytes of the connection so far, amounts to. `limit` is the most bytes, record headers
/// included, in which the ClientHello has to end: a caller that never holds more needs no bound of its own.
///
/// Looks at everything each time; across many reads use an [`Assembler`].
///
/// # Errors
/// [`NotHello`], as soon as the bytes leave no other reading.
pub fn assemble(received: &[u8], limit: usize) -> Result<Assembly<'_>, NotHello> {
    Assembler::new(limit).assemble(received)
}

/// What the first bytes of a connection amount to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembly<'a> {
    /// Nothing wrong so far; more bytes are needed.
    Incomplete,
    /// A whole ClientHello: the body of the message, without the four bytes of type and length.
    /// Borrowed where one record holds it, copied together where it was split over several.
    /// What follows it in the same or in later records is left for the TLS library to judge.
    Complete(Cow<'a, [u8]>),
}

/// [`assemble`] that remembers which records it has seen, so that a hello that trickles in costs time linear in
/// its size, however small its records and however many the reads.
#[derive(Clone, Debug)]
pub struct Assembler {
    limit: usize,
    /// Where the first record begins that has not been seen whole.
    walked: usize,
    /// Handshake bytes in the records before it.
    gathered: usize,
    /// Type and length of the message, as far as it has come.
    header: [u8; MESSAGE_HEADER],
}

impl Assembler {
    /// One for a new connection; `limit` as for [`assemble`].
    pub const fn new(limit: usize) -> Self {
        Self { limit, walked: 0, gathered: 0, header: [0; MESSAGE_HEADER] }
    }

    /// As [`assemble`]. `received` has to begin with all that was given in earlier calls.
    ///
    /// # Errors
    /// [`NotHello`], as soon as the bytes leave no other reading.
    pub fn assemble<'a>(&mut self, received: &'a [u8]) -> Result<Assembly<'a>, NotHello> {
        if let Some(first) = received.first()
            && !CONTENT_TYPES.contains(first)
        {
            return name_opening(received);
        }
        // Only what lies within the limit counts, so that the answer does not depend on how TCP cut the bytes.
        let window = &received[..received.len().min(self.limit)];
        while let Some((fragment, whole)) = read_record(window.get(self.walked..).unwrap_or_default())? {
            if let Some(end) = self.message_end(fragment)? {
                return Ok(Assembly::Complete(self.body(window, end)));
            }
            if !whole {
                break;
            }
            self.walked += RECORD_HEADER + fragment.len();
            self.gathered += fragment.len();
        }
        if window.len() == self.limit { Err(NotHello::TooLong) } else { Ok(Assembly::Incomplete) }
    }

    /// The length of the message with its header, once `fragment` brings the last of it.
    fn message_end(&mut self, fragment: &[u8]) -> Result<Option<usize>, NotHello> {
        let gathered = self.gathered + fragment.len();
        for (slot, byte) in self.header.iter_mut().skip(self.gathered).zip(fragment) {
            *slot = *byte;
        }
        let [kind, length @ ..] = self.header;
        if gathered > 0 && kind != CLIENT_HELLO {
            return Err(NotHello::NotClientHello(kind));
        }
        if gathered < MESSAGE_HEADER {
            return Ok(None);
        }
        let end = length.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)) + MESSAGE_HEADER;
        if RECORD_HEADER + end > self.limit {
            return Err(NotHello::TooLong);
        }
        Ok((gathered >= end).then_some(end))
    }

    /// The message's body, given that `window` holds all of it.
    fn body<'a>(&self, window: &'a [u8], end: usize) -> Cow<'a, [u8]> {
        if self.walked == 0 {
            return Cow::Borrowed(&window[RECORD_HEADER + MESSAGE_HEADER..RECORD_HEADER + end]);
        }
        let mut message = Vec::with_capacity(end);
        let mut rest = window;
        while let Ok(Some((fragment, _))) = read_record(rest)
            && message.len() < end
        {
            message.extend_from_slice(&fragment[..fragment.len().min(end - message.len())]);
            rest = &rest[RECORD_HEADER + fragment.len()..];
        }
        message.drain(..MESSAGE_HEADER);
        Cow::Owned(message)
    }
}

/// Why the bytes of a connection are no ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotHello {
    /// An HTTP request in the clear.
    PlainHttp,
    /// A PROXY header, version 1 or 2, on a listener that does not expect one.
    ProxyHeader,
    /// A hello in the format of SSL 2, which no supported version accepts (RFC 8446 appendix D.5).
    Sslv2,
    /// None of the protocols that are recognised here.
    NotTls,
    /// An alert, with its description: the client gave up before its hello.
    Alert(u8),
    /// A record of this content type where a handshake record has to be (RFC 8446 section 5.1).
    UnexpectedType(u8),
    /// A handshake record without content, which is forbidden (RFC 8446 section 5.1).
    ZeroLengthRecord,
    /// A record longer than 2^14 bytes (RFC 8446 section 5.1).
    OversizedRecord,
    /// The ClientHello does not end within the limit.
    TooLong,
    /// The first handshake message is of this type, and not a ClientHello (RFC 8446 section 4).
    NotClientHello(u8),
}

impl NotHello {
    /// The alert for it: also for a peer that speaks no TLS, for whose first record RFC 8446 section 5 demands
    /// it, and whose user then finds something to search for. `None` where the peer has given up already.
    pub const fn alert(self) -> Option<Description> {
        match self {
            Self::Alert(_) => None,
            Self::Sslv2 => Some(Description::ProtocolVersion),
            Self::OversizedRecord => Some(Description::RecordOverflow),
            Self::TooLong => Some(Description::DecodeError),
            Self::PlainHttp
            | Self::ProxyHeader
            | Self::NotTls
            | Self::UnexpectedType(_)
            | Self::ZeroLengthRecord
            | Self::NotClientHello(_) => Some(Description::UnexpectedMessage),
        }
    }
}

impl fmt::Display for NotHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PlainHttp => f.write_str("plain HTTP, not TLS"),
            Self::ProxyHeader => f.write_str("a PROXY header that this listener does not expect"),
            Self::Sslv2 => f.write_str("a hello in the format of SSL 2"),
            Self::NotTls => f.write_str("not TLS"),
            Self::Alert(code) => write!(f, "alert {code} instead of a ClientHello"),
            Self::UnexpectedType(kind) => write!(f, "a record of type {kind} instead of a handshake"),
            Self::ZeroLengthRecord => f.write_str("a handshake record without content"),
            Self::OversizedRecord => write!(f, "a record of more than {MAX_FRAGMENT} bytes"),
            Self::TooLong => f.write_str("a ClientHello beyond the limit"),
            Self::NotClientHello(kind) => write!(f, "handshake message {kind} instead of a ClientHello"),
        }
    }
}

impl std::error::Error for NotHello {}

/// The content of the record at the front, as far as it has come, and whether that is all of it.
/// `None` until its header is there.
fn read_record(bytes: &[u8]) -> Result<Option<(&[u8], bool)>, NotHello> {
    // The minor version is not looked at: clients send 1, 2 or 3 (RFC 8446 section 5.1).
    if bytes.get(1).is_some_and(|&major| major != 3) {
        return Err(NotHello::NotTls);
    }
    let Some((&[kind, _, _, high, low], content)) = bytes.split_first_chunk::<RECORD_HEADER>() else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    match kind {
        HANDSHAKE if length == 0 => Err(NotHello::ZeroLengthRecord),
        HANDSHAKE if length > MAX_FRAGMENT => Err(NotHello::OversizedRecord),
        HANDSHAKE => Ok(Some((&content[..length.min(content.len())], content.len() >= length))),
        ALERT if length == 2 => content.get(1).map_or(Ok(None), |&code| Err(NotHello::Alert(code))),
        _ => Err(NotHello::UnexpectedType(kind)),
    }
}

/// Names what begins with a byte that no TLS record begins with.
fn name_opening(received: &[u8]) -> Result<Assembly<'static>, NotHello> {
    if let [0x80..=0xff, _, message, ..] = received {
        return Err(if *message == CLIENT_HELLO { NotHello::Sslv2 } else { NotHello::NotTls });
    }
    if let Some((_, name)) = OPENINGS.iter().find(|(opening, _)| received.starts_with(opening)) {
        return Err(*name);
    }
    let undecided = matches!(received, [0x80..=0xff, ..])
        || OPENINGS.iter().any(|(opening, _)| opening.starts_with(received));
    if undecided { Ok(Assembly::Incomplete) } else { Err(NotHello::NotTls) }
}

/// What clients of other protocols begin with. Four bytes of a method are enough to be sure of HTTP.
const OPENINGS: [(&[u8], NotHello); 12] = [
    (b"GET ", NotHello::PlainHttp),
    (b"POST", NotHello::PlainHttp),
    (b"HEAD", NotHello::PlainHttp),
    (b"PUT ", NotHello::PlainHttp),
    (b"OPTI", NotHello::PlainHttp),
    (b"DELE", NotHello::PlainHttp),
    (b"CONN", NotHello::PlainHttp),
    (b"PATC", NotHello::PlainHttp),
    (b"TRAC", NotHello::PlainHttp),
    (b"PRI ", NotHello::PlainHttp),
    (b"PROXY ", NotHello::ProxyHeader),
    (b"\r\n\r\n\0\r\nQUIT\n", NotHello::ProxyHeader),
];

/// Content types that TLS has, heartbeat the last (RFC 8446 section 5.1, RFC 6520 section 6).
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=24;
pub(crate) const HANDSHAKE: u8 = 22;

/// The handshake message type (RFC 8446 section 4), and SSL 2's number for the same message.
const CLIENT_HELLO: u8 = 1;

/// Type, version, length.
const RECORD_HEADER: usize = 5;
/// Type, and a length of three bytes.
const MESSAGE_HEADER: usize = 4;
/// The most a record in the clear may carry (RFC 8446 section 5.1).
const MAX_FRAGMENT: usize = 1 << 14;
