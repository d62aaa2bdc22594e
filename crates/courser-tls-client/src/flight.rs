//! Reads what a server sends in the clear: its first flight up to the point where encryption begins.
//!
//! A TLS 1.3 server shows its ServerHello or HelloRetryRequest (RFC 8446, section 4.1); an older one everything up to
//! its ChangeCipherSpec (RFC 5246, section 7.3). It checks nothing that a TLS library checks, keeps no keys, and may
//! be handed any bytes: what makes no sense ends the reading.

mod cursor;
mod message;

use cursor::Cursor;
pub use message::{KeyExchange, ServerHello};

/// Reads a flight as it comes in.
#[derive(Clone, Debug, Default)]
pub struct FlightReader {
    /// What of the last record has come, its header included.
    record: Vec<u8>,
    /// What of the last handshake message has come.
    message: Vec<u8>,
    /// Whether nothing more will be read.
    finished: bool,
    flight: ServerFlight,
}

/// What the server has sent so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFlight {
    /// The HelloRetryRequest, if there was one (RFC 8446, section 4.1.4).
    pub retry: Option<ServerHello>,
    /// The ServerHello.
    pub hello: Option<ServerHello>,
    /// Certificates up to TLS 1.2, DER, leaf first.
    pub certificates: Vec<Vec<u8>>,
    /// The server's part of an ephemeral key exchange up to TLS 1.2.
    pub key_exchange: Option<KeyExchange>,
    /// Whether a CertificateRequest has come, up to TLS 1.2.
    pub certificate_requested: bool,
    /// Whether ServerHelloDone has come: up to TLS 1.2 it is the client's turn then.
    pub done: bool,
    /// Session tickets up to TLS 1.2.
    pub tickets: u32,
    /// The fatal alert that ended it, by its code (RFC 8446, section 6).
    pub alert: Option<u8>,
    /// Whether the first bytes were no TLS record.
    pub not_tls: bool,
}

impl FlightReader {
    /// Takes the next bytes from the server; what comes after the clear part is not looked at.
    pub fn read(&mut self, mut bytes: &[u8]) {
        while !self.finished && !bytes.is_empty() {
            bytes = self.take(bytes);
            self.next_record();
        }
    }

    /// What the server has sent so far.
    pub fn flight(&self) -> &ServerFlight {
        &self.flight
    }

    /// Whether the clear part has been read to its end.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Moves bytes into the record up to its end, and gives back the others.
    fn take<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (taken, rest) = bytes.split_at(self.missing().min(bytes.len()));
        self.record.extend_from_slice(taken);
        rest
    }

    /// How many bytes the record lacks, as far as is known: the header's, then the fragment's.
    fn missing(&self) -> usize {
        match *self.record.as_slice() {
            [_, _, _, high, low, ..] => {
                HEADER + usize::from(u16::from_be_bytes([high, low])) - self.record.len()
            }
            _ => HEADER - self.record.len(),
        }
    }

    fn next_record(&mut self) {
        let [kind, major, rest @ ..] = self.record.as_slice() else { return };
        if !CONTENT_TYPES.contains(kind) || *major != 3 {
            // After the first record it is a protocol error, for the library to name.
            self.flight.not_tls = self.flight == ServerFlight::default() && self.message.is_empty();
            self.finished = true;
            return;
        }
        if rest.len() < HEADER - 2 || self.missing() > 0 {
            return;
        }
        let record = std::mem::take(&mut self.record);
        self.read_record(record[0], &record[HEADER..]);
    }

    fn read_record(&mut self, kind: u8, fragment: &[u8]) {
        match kind {
            HANDSHAKE => self.read_handshake(fragment),
            ALERT => self.read_alert(fragment),
            // For the sake of middleboxes a TLS 1.3 server sends one between HelloRetryRequest and ServerHello.
            CHANGE_CIPHER_SPEC => self.finished = self.flight.hello.is_some(),
            _ => self.finished = true,
        }
    }

    fn read_alert(&mut self, fragment: &[u8]) {
        if let [level, code] = *fragment
            && level != WARNING
        {
            self.flight.alert = Some(code);
            self.finished = true;
        }
    }

    fn read_handshake(&mut self, fragment: &[u8]) {
        self.message.extend_from_slice(fragment);
        while !self.finished
            && let Some(length) = message_length(&self.message)
            && self.message.len() >= length
        {
            let rest = self.message.split_off(length);
            let message = std::mem::replace(&mut self.message, rest);
            self.finished = self.flight.take(message[0], &message[MESSAGE_HEADER..]).is_none();
        }
        self.finished |= self.message.len() > MAX_MESSAGE;
    }
}

impl ServerFlight {
    /// The version that the server chose, code point.
    pub fn version(&self) -> Option<u16> {
        self.hello.as_ref().or(self.retry.as_ref()).map(|hello| hello.version)
    }

    /// The group of the key exchange, code point, if it has one that is known.
    pub fn group(&self) -> Option<u16> {
        let old = self.key_exchange.as_ref().and_then(|exchange| exchange.group);
        old.or_else(|| self.hello.as_ref()?.group)
    }

    /// Takes in one message; none when it is the last that can be read.
    fn take(&mut self, kind: u8, body: &[u8]) -> Option<()> {
        let mut body = Cursor::new(body);
        match kind {
            SERVER_HELLO => return self.take_hello(&mut body),
            NEW_SESSION_TICKET => self.tickets += 1,
            CERTIFICATE => self.certificates = message::certificates(&mut body)?,
            SERVER_KEY_EXCHANGE => {
                let hello = self.hello.as_ref()?;
                self.key_exchange = Some(KeyExchange::read(&mut body, hello.version, hello.suite)?);
            }
            CERTIFICATE_REQUEST => self.certificate_requested = true,
            SERVER_HELLO_DONE => self.done = true,
            _ => {}
        }
        Some(())
    }

    fn take_hello(&mut self, body: &mut Cursor<'_>) -> Option<()> {
        let hello = ServerHello::read(body)?;
        if hello.is_retry {
            self.retry = Some(hello);
            return Some(());
        }
        let goes_on_in_the_clear = (hello.version < TLS13).then_some(());
        self.hello = Some(hello);
        goes_on_in_the_clear
    }
}

fn message_length(bytes: &[u8]) -> Option<usize> {
    let &[_, high, middle, low] = bytes.first_chunk::<MESSAGE_HEADER>()?;
    Some(MESSAGE_HEADER + usize::from(high) * 0x1_0000 + usize::from(u16::from_be_bytes([middle, low])))
}

const TLS13: u16 = 0x0304;

/// Content types that TLS has, heartbeat the last (RFC 8446, section 5.1; RFC 6520, section 6).
const CONTENT_TYPES: std::ops::RangeInclusive<u8> = 20..=24;
const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Level of an alert that does not end the connection (RFC 5246, section 7.2).
const WARNING: u8 = 1;

/// Handshake message types (RFC 5246, section 7.4; RFC 5077, section 3.3).
const SERVER_HELLO: u8 = 2;
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE: u8 = 11;
const SERVER_KEY_EXCHANGE: u8 = 12;
const CERTIFICATE_REQUEST: u8 = 13;
const SERVER_HELLO_DONE: u8 = 14;

/// Type, version, length of a record; type and length of a message.
const HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;

/// The largest message that is waited for. Chains of post-quantum certificates come to some 20 KiB.
const MAX_MESSAGE: usize = 1 << 18;

#[cfg(test)]
mod tests;
