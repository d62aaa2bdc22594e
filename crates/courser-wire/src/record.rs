//! From the first bytes of a connection to one whole ClientHello message, or to what they are instead.
//! Takes records and handshake framing apart (RFC 8446 sections 4 and 5.1); never looks into the message.

use std::borrow::Cow;
use std::fmt;

use crate::alert::Description;

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
    /// A PROXY header, version 1 or 2, on a listener that was not told to expect one.
    ProxyHeader,
    /// A hello in the format of SSL 2, which no supported version accepts (RFC 8446 appendix D.5).
    Sslv2,
    /// None of the protocols that are told apart here.
    NotTls,
    /// An alert, with its description: the client gave up before it had said anything.
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
    /// The alert that tells a TLS client so; `None` where the peer does not speak TLS or has gone already.
    pub const fn alert(self) -> Option<Description> {
        match self {
            Self::PlainHttp | Self::ProxyHeader | Self::NotTls | Self::Alert(_) => None,
            Self::Sslv2 => Some(Description::ProtocolVersion),
            Self::OversizedRecord => Some(Description::RecordOverflow),
            Self::TooLong => Some(Description::DecodeError),
            Self::UnexpectedType(_) | Self::ZeroLengthRecord | Self::NotClientHello(_) => {
                Some(Description::UnexpectedMessage)
            }
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
pub(crate) const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// The handshake message type (RFC 8446 section 4), and SSL 2's number for the same message.
const CLIENT_HELLO: u8 = 1;

/// Type, version, length.
const RECORD_HEADER: usize = 5;
/// Type, and a length of three bytes.
const MESSAGE_HEADER: usize = 4;
/// The most a record in the clear may carry (RFC 8446 section 5.1).
const MAX_FRAGMENT: usize = 1 << 14;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1 << 16;

    /// A handshake message, cut into records of at most `size` bytes.
    fn records(kind: u8, body: &[u8], size: usize) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let message = [&[kind], &length[1..], body].concat();
        let mut bytes = Vec::new();
        for fragment in message.chunks(size) {
            bytes.extend_from_slice(&[22, 3, 1]);
            bytes.extend_from_slice(&u16::try_from(fragment.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(fragment);
        }
        bytes
    }

    #[test]
    fn one_record_is_borrowed() {
        let bytes = records(1, b"body", 100);
        assert!(matches!(assemble(&bytes, LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b"body")))));
    }

    #[test]
    fn several_records_are_joined() {
        for size in 1..8 {
            let bytes = records(1, b"body", size);
            let Ok(Assembly::Complete(Cow::Owned(body))) = assemble(&bytes, LIMIT) else {
                panic!("records of {size} bytes were not joined");
            };
            assert_eq!(body, b"body");
        }
    }

    #[test]
    fn every_prefix_is_incomplete_and_the_last_byte_completes() {
        for size in [1, 3, 100] {
            let bytes = records(1, b"a longer body", size);
            let mut assembler = Assembler::new(LIMIT);
            for end in 0..bytes.len() {
                assert_eq!(assembler.assemble(&bytes[..end]), Ok(Assembly::Incomplete), "{end} of {size}");
            }
            assert!(matches!(assembler.assemble(&bytes), Ok(Assembly::Complete(_))));
        }
    }

    #[test]
    fn what_follows_in_the_record_is_left_alone() {
        let mut bytes = records(1, b"body", 100);
        bytes[4] += 3;
        bytes.extend_from_slice(b"...and the next record");
        assert_eq!(assemble(&bytes, LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b"body"))));
    }

    #[test]
    fn an_empty_body_is_complete() {
        assert_eq!(assemble(&records(1, b"", 9), LIMIT), Ok(Assembly::Complete(Cow::Borrowed(b""))));
    }

    #[test]
    fn other_protocols_are_named() {
        let cases: [(&[u8], NotHello); 8] = [
            (b"GET / HTTP/1.1\r\n", NotHello::PlainHttp),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", NotHello::PlainHttp),
            (b"PROXY TCP4 ", NotHello::ProxyHeader),
            (b"\r\n\r\n\0\r\nQUIT\n\x21\x11", NotHello::ProxyHeader),
            (&[0x80, 0x2e, 1, 3, 1], NotHello::Sslv2),
            (&[0x80, 0x2e, 2], NotHello::NotTls),
            (b"SSH-2.0-x\r\n", NotHello::NotTls),
            (&[22, 2, 0], NotHello::NotTls),
        ];
        for (bytes, expected) in cases {
            assert_eq!(assemble(bytes, LIMIT), Err(expected), "{bytes:?}");
        }
    }

    #[test]
    fn a_beginning_that_could_be_http_is_waited_for_and_no_longer() {
        for prefix in [&b"G"[..], b"PR", b"OPT", b"\r\n\r\n", &[0x80, 0x2e]] {
            assert_eq!(assemble(prefix, LIMIT), Ok(Assembly::Incomplete), "{prefix:?}");
        }
        for odd in [&b"X"[..], b"GO", b"PROP", b"\r\nA"] {
            assert_eq!(assemble(odd, LIMIT), Err(NotHello::NotTls), "{odd:?}");
        }
    }

    #[test]
    fn records_that_may_not_come_are_named() {
        let cases: [(&[u8], NotHello); 6] = [
            (&[21, 3, 1, 0, 2, 2, 40], NotHello::Alert(40)),
            (&[23, 3, 3, 0, 1], NotHello::UnexpectedType(23)),
            (&[20, 3, 3, 0, 1], NotHello::UnexpectedType(20)),
            (&[22, 3, 1, 0, 0], NotHello::ZeroLengthRecord),
            (&[22, 3, 1, 0x40, 1], NotHello::OversizedRecord),
            (&[22, 3, 1, 0, 9, 2], NotHello::NotClientHello(2)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(assemble(bytes, LIMIT), Err(expected), "{bytes:?}");
        }
    }

    #[test]
    fn nothing_may_come_between_the_parts() {
        let mut bytes = records(1, b"body", 3)[..8].to_vec();
        bytes.extend_from_slice(&[20, 3, 3, 0, 1, 1]);
        assert_eq!(assemble(&bytes, LIMIT), Err(NotHello::UnexpectedType(20)));
    }

    #[test]
    fn the_largest_record_is_accepted() {
        let body = vec![7; MAX_FRAGMENT - MESSAGE_HEADER];
        assert!(matches!(assemble(&records(1, &body, MAX_FRAGMENT), LIMIT), Ok(Assembly::Complete(_))));
    }

    #[test]
    fn a_declared_length_beyond_the_limit_is_refused_with_its_last_byte() {
        assert_eq!(assemble(&[22, 3, 1, 0, 200, 1, 0, 1, 0], 100), Err(NotHello::TooLong));
        assert_eq!(assemble(&[22, 3, 1, 0, 200, 1, 0, 1], 100), Ok(Assembly::Incomplete));
    }

    #[test]
    fn the_limit_holds_however_the_bytes_arrive() {
        let bytes = records(1, b"body", 1);
        let needed = bytes.len();
        assert!(matches!(assemble(&bytes, needed), Ok(Assembly::Complete(_))));
        assert_eq!(assemble(&bytes, needed - 1), Err(NotHello::TooLong));
        assert_eq!(assemble(&bytes[..needed - 1], needed - 1), Err(NotHello::TooLong));
        assert_eq!(assemble(&bytes[..needed - 2], needed - 1), Ok(Assembly::Incomplete));
    }
}
