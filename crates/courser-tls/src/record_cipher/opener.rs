//! What opens a connection's records at present, and checks the length in the header of a handshake message.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::cipher::{InboundOpaqueMessage, InboundPlainMessage, MessageDecrypter};
use rustls::{ContentType, Error, InvalidMessage, ProtocolVersion};

use super::APPLICATION_DATA;
use super::key::RecordKey;
use crate::plan;
use crate::records::MAX_PLAINTEXT;

/// Longest handshake message that is read after the handshake, bytes. A KeyUpdate has 5; a ClientHello by
/// which TLS 1.2 asks for a renegotiation, which is declined, is below 2 KiB.
const MAX_POST_HANDSHAKE_MESSAGE: usize = 16 * 1024;

/// Longest body of a record that is opened past the library (RFC 8446, section 5.2).
const MAX_BODY: usize = MAX_PLAINTEXT + 256;

/// The library's decrypter, which the connection shares: it opens application data itself. The decrypter refuses a handshake
/// message whose header has a length above the limit.
#[derive(Clone)]
pub(crate) struct Opener(Arc<Mutex<Opening>>);

struct Opening {
    key: RecordKey,
    /// Sequence number of the next record. The library's own does not count what goes past it.
    next: u64,
    /// The record that the library reads next is open already: where its plaintext is, or why it has none.
    opened: Option<Result<Range<usize>, Error>>,
    message: Message,
}

/// What the front of the received bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    /// A record of application data of so many bytes, opened and taken.
    Data(usize),
    /// The beginning of a record.
    Incomplete,
    /// A record that the library has to read.
    Library,
}

thread_local! {
    /// Created by the library within the current call on this thread, which passes it no context.
    static LATEST: RefCell<Option<Opener>> = const { RefCell::new(None) };

    /// Whether there is one: most calls make none, and find that out in an instruction.
    static IS_NEW: Cell<bool> = const { Cell::new(false) };
}

impl Opener {
    pub(super) fn start(key: RecordKey) -> Box<dyn MessageDecrypter> {
        let opening = Opening { key, next: 0, opened: None, message: Message::default() };
        let opener = Self(Arc::new(Mutex::new(opening)));
        LATEST.set(Some(opener.clone()));
        IS_NEW.set(true);
        Box::new(opener)
    }

    /// The one that the library has made last on this thread, once.
    pub(crate) fn take_latest() -> Option<Self> {
        if IS_NEW.replace(false) { LATEST.take() } else { None }
    }

    /// After a panic in the library: what it left on this thread belongs to no other connection.
    pub(crate) fn clear() {
        LATEST.take();
    }

    /// Opens the first record of `received`, past the library, and appends its plaintext if it is application data. The
    /// library must have nothing left of what came before.
    pub(crate) fn open_data(&self, received: &mut [u8], plaintext: &mut Vec<u8>) -> Opened {
        let (content, length) = match *received {
            [APPLICATION_DATA, 3, 3, high, low, ..] => {
                (ContentType::ApplicationData, usize::from(u16::from_be_bytes([high, low])))
            }
            [_, _, _, _, _, ..] => return Opened::Library,
            _ => return Opened::Incomplete,
        };
        if length > MAX_BODY {
            return Opened::Library;
        }
        let Some(body) = received[HEADER..].get_mut(..length) else { return Opened::Incomplete };
        let opening = &mut *self.lock();
        let opened = opening.open(content, ProtocolVersion::TLSv1_2, body);
        match opened.as_ref().ok().and_then(|range| opening.application_data(&body[range.clone()])) {
            Some(data) => {
                plaintext.extend_from_slice(data);
                Opened::Data(HEADER + length)
            }
            None => {
                opening.opened = Some(opened);
                Opened::Library
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Opening> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opening {
    fn open(
        &mut self,
        content: ContentType,
        version: ProtocolVersion,
        body: &mut [u8],
    ) -> Result<Range<usize>, Error> {
        let range = self.key.open(self.next, content, version, body)?;
        self.next += 1;
        Ok(range)
    }

    /// Without what TLS 1.3 puts behind it, if it is application data, some, and not too long (RFC 8446, section 5.4). The
    /// library limits how many records may be empty.
    fn application_data<'p>(&self, plaintext: &'p [u8]) -> Option<&'p [u8]> {
        let data = if self.key.is_tls13() {
            let (&APPLICATION_DATA, data) = without_padding(plaintext).split_last()? else { return None };
            data
        } else {
            plaintext
        };
        let longest = MAX_PLAINTEXT + usize::from(self.key.is_tls13());
        let is_legal = plaintext.len() <= longest && (1..=MAX_PLAINTEXT).contains(&data.len());
        is_legal.then_some(data)
    }
}

/// Without the zeros at its end, of which there may be thousands.
fn without_padding(mut plaintext: &[u8]) -> &[u8] {
    const ZEROS: [u8; 64] = [0; 64];
    while let Some(shorter) = plaintext.strip_suffix(&ZEROS) {
        plaintext = shorter;
    }
    let end = plaintext.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &plaintext[..end]
}

impl MessageDecrypter for Opener {
    fn decrypt<'a>(
        &mut self,
        mut record: InboundOpaqueMessage<'a>,
        _sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let opening = &mut *self.lock();
        let opened = opening.opened.take();
        let range =
            opened.unwrap_or_else(|| opening.open(record.typ, record.version, &mut record.payload))?;
        let plain = if opening.key.is_tls13() {
            record.payload.truncate(range.end);
            record.into_tls13_unpadded_message()?
        } else if range.len() > MAX_PLAINTEXT {
            return Err(Error::PeerSentOversizedRecord);
        } else {
            record.into_plain_message_range(range)
        };
        // Within the handshake the library's own limit holds: a chain of certificates may be long.
        if plain.typ == ContentType::Handshake
            && opening.message.longest(plain.payload) > MAX_POST_HANDSHAKE_MESSAGE
            && !plan::is_current()
        {
            return Err(InvalidMessage::HandshakePayloadTooLarge.into());
        }
        Ok(plain)
    }
}

/// The handshake message that is being received: its header, and how much of it is missing.
#[derive(Default)]
struct Message {
    header: [u8; MESSAGE_HEADER],
    /// How much of the header has come.
    seen: usize,
    /// How much of the body has not.
    missing: usize,
}

impl Message {
    /// Takes in more bytes of messages, and returns the length of the longest that they belong to.
    fn longest(&mut self, mut bytes: &[u8]) -> usize {
        let mut longest = 0;
        while !bytes.is_empty() {
            if self.seen < MESSAGE_HEADER {
                let taken = bytes.len().min(MESSAGE_HEADER - self.seen);
                self.header[self.seen..self.seen + taken].copy_from_slice(&bytes[..taken]);
                self.seen += taken;
                bytes = &bytes[taken..];
                if self.seen < MESSAGE_HEADER {
                    break;
                }
                self.missing = self.length();
            }
            longest = longest.max(self.length());
            let taken = bytes.len().min(self.missing);
            self.missing -= taken;
            bytes = &bytes[taken..];
            if self.missing == 0 {
                self.seen = 0;
            }
        }
        longest
    }

    fn length(&self) -> usize {
        let [_, high, middle, low] = self.header;
        usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low)
    }
}

/// Type and length of a handshake message (RFC 8446, section 4).
const MESSAGE_HEADER: usize = 4;

/// Length of a record's header, bytes (RFC 8446, section 5.1).
const HEADER: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_as_long_as_its_header_says_however_it_is_cut() {
        // A message of 3 bytes, an empty one, and the beginning of one of 0x01_0203 bytes.
        let bytes = [24, 0, 0, 3, 7, 7, 7, 14, 0, 0, 0, 11, 1, 2, 3, 9];
        for cut in 1..=bytes.len() {
            let mut message = Message::default();
            let longest: Vec<_> = bytes.chunks(cut).map(|part| message.longest(part)).collect();
            assert_eq!(longest.iter().max(), Some(&0x1_0203), "cut at {cut}: {longest:?}");
            assert_eq!((message.seen, message.missing), (MESSAGE_HEADER, 0x1_0203 - 1));
        }
    }
}
