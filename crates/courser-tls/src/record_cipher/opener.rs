//! Opens records, and checks the length in the header of a handshake message.

use rustls::crypto::cipher::{InboundOpaqueMessage, InboundPlainMessage, MessageDecrypter};
use rustls::{ContentType, Error, InvalidMessage};

use crate::plan;

/// Longest handshake message that is read after the handshake, bytes. A KeyUpdate has 5; a ClientHello by
/// which TLS 1.2 asks for a renegotiation, which is declined, is below 2 KiB.
const MAX_POST_HANDSHAKE_MESSAGE: usize = 16 * 1024;

/// Opens records, and refuses a handshake message whose header has a length above the limit.
pub(super) struct Opener {
    cipher: Box<dyn MessageDecrypter>,
    message: Message,
}

impl Opener {
    pub(super) fn start(cipher: Box<dyn MessageDecrypter>) -> Box<dyn MessageDecrypter> {
        Box::new(Self { cipher, message: Message::default() })
    }
}

impl MessageDecrypter for Opener {
    fn decrypt<'a>(
        &mut self,
        record: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        let opened = self.cipher.decrypt(record, sequence);
        // Within the handshake the library's own limit holds: a chain of certificates may be long.
        if let Ok(plain) = &opened
            && plain.typ == ContentType::Handshake
            && self.message.longest(plain.payload) > MAX_POST_HANDSHAKE_MESSAGE
            && !plan::is_current()
        {
            return Err(InvalidMessage::HandshakePayloadTooLarge.into());
        }
        opened
    }
}

/// The handshake message that is being received: its header, and how much of it is missing.
#[derive(Default)]
struct Message {
    header: [u8; HEADER],
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
            if self.seen < HEADER {
                let taken = bytes.len().min(HEADER - self.seen);
                self.header[self.seen..self.seen + taken].copy_from_slice(&bytes[..taken]);
                self.seen += taken;
                bytes = &bytes[taken..];
                if self.seen < HEADER {
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
const HEADER: usize = 4;

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
            assert_eq!((message.seen, message.missing), (HEADER, 0x1_0203 - 1));
        }
    }
}
