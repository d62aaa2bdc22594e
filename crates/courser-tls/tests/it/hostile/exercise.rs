//! What has to hold for anything that a client with the keys does. The fuzz target runs this on what it makes up, the test
//! on the corpus.

use std::io::Write;

use courser_testkit::client::Version;
use courser_testkit::client::hostile::{
    APPLICATION_DATA, FATAL, HANDSHAKE, WARNING, key_update, plain_record,
};

use super::{MOST_HELD, Pair, connected, halfway};

/// Bytes as actions: the first chooses version and place, then each action has an opcode, a content type or size, and
/// what it takes. It never panics, holds no more than it may, ends a failure with one alert, and what was sent before it
/// has arrived.
pub(crate) fn hostile(input: &[u8]) {
    let Some((&place, rest)) = input.split_first() else { return };
    let version = if place & 1 == 0 { Version::Tls13 } else { Version::Tls12 };
    let in_handshake = place & 2 != 0;
    let mut pair = if in_handshake { halfway(version) } else { connected(version) };
    let mut actions = Actions { rest, sent: Vec::new(), honest: true, in_handshake };
    while pair.stream().failure.is_none() && actions.next(&mut pair, version).is_some() {}
    let server = pair.stream();
    assert!(server.most_held <= MOST_HELD, "{} bytes were held", server.most_held);
    assert!(server.plaintext.starts_with(&actions.sent), "what was sent in order arrives");
    if server.failure.is_some() {
        let again = server.connection.process(&mut Vec::new(), &mut Vec::new(), &mut Vec::new());
        assert!(again.is_err(), "who has failed fails again");
    }
    end(&mut pair);
}

/// A failed server has sent one alert, fatal, and nothing behind it, unless the client had ended it by one of its own.
fn end(pair: &mut Pair) {
    let Some(failure) = pair.stream().failure.clone() else { return };
    let Ok(answer) = pair.receive_all() else { panic!("what the server sends cannot be opened: {failure}") };
    let fatal = answer.alerts.iter().filter(|alert| alert.0 == FATAL).count();
    let by_alert = failure.alert().is_some();
    assert!(fatal == 1 || by_alert && fatal == 0, "{failure}: {:?}", answer.alerts);
    assert!(fatal == 0 || answer.alerts.last().is_some_and(|alert| alert.0 == FATAL));
}

struct Actions<'a> {
    rest: &'a [u8],
    /// Application data that an honest client has sent before anything else, and so has to arrive.
    sent: Vec<u8>,
    /// Nothing has been sent so far that may be refused.
    honest: bool,
    in_handshake: bool,
}

impl Actions<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// A size, two bytes.
    fn size(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) << 8 | usize::from(self.byte()?))
    }

    /// Some of the input itself.
    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let (taken, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        taken.to_vec()
    }

    /// Does one; none when the input is at its end. Errors of the stream are the server's failure, which is looked at.
    fn next(&mut self, pair: &mut Pair, version: Version) -> Option<()> {
        let code = self.byte()? % 12;
        self.honest &= code == 0 && !self.in_handshake;
        let _ = match code {
            0 => {
                let data = vec![7; self.size()? % (1 << 14) + 1];
                let result = pair.send_data(&data);
                if self.honest {
                    self.sent.extend(data);
                }
                result
            }
            // Any content type, with padding or more than is allowed.
            1 => {
                let (kind, length, padding) = (self.byte()?, self.byte()?, self.size()? % 20_000);
                let content = self.bytes(length.into());
                pair.send_padded(kind, &content, padding)
            }
            2 => {
                let length = self.size()? % 20_000;
                pair.send(APPLICATION_DATA, &vec![0; length])
            }
            3 if version == Version::Tls13 => {
                let (requested, cut) = (self.byte()? & 1 == 1, usize::from(self.byte()? % 6));
                let padding = self.size()? % 16_000;
                pair.update_keys(requested, cut, padding)
            }
            // Without keys that follow it.
            4 => pair.send(HANDSHAKE, &key_update(self.byte()?)),
            5 => {
                let (level, description) = (self.byte()? % 3, self.byte()?);
                pair.send_alert(level, description)
            }
            6 => pair.send_alert(WARNING, 0),
            // Fragments of a message, one byte each.
            7 => {
                let (count, padding) = (self.byte()?, self.size()? % (1 << 14));
                let kind = self.byte()?;
                let message = [kind, 0, 0x30, 0].into_iter().chain(std::iter::repeat(0));
                message.take(count.into()).try_for_each(|byte| pair.send_padded(HANDSHAKE, &[byte], padding))
            }
            8 => {
                let mut record = pair.record(APPLICATION_DATA, b"tampered with", 0);
                let at = usize::from(self.byte()?) % record.len();
                record[at] ^= self.byte()?;
                pair.send_raw(&record)
            }
            9 => {
                let (kind, length) = (self.byte()?, self.byte()?);
                let content = self.bytes(length.into());
                pair.send_raw(&plain_record(kind, &content))
            }
            10 if self.in_handshake => {
                self.in_handshake = false;
                pair.finish()
            }
            // The server speaks meanwhile.
            _ => {
                let length = self.size()?;
                if !self.in_handshake {
                    pair.stream().send(&vec![9; length]);
                }
                pair.stream().flush()
            }
        };
        Some(())
    }
}
