//! A client that has the keys and breaks the protocol: it seals whatever a test wants sealed, in and after
//! the handshake, and opens what the server answers. The handshake itself is the library's; from then on every record
//! is made here.
//!
//! Over a socket, or over anything else that is written to and read from: a server in memory.

mod handshake;
mod keys;
mod receiving;

use std::{
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    net::TcpStream,
};

use rustls::ProtocolVersion;

pub use handshake::Flight;
pub use keys::Keys;
pub use receiving::{Received, ReceivedAll};

use super::{Client, SILENCE};

/// Content types (RFC 8446, section 5.1).
pub const CHANGE_CIPHER_SPEC: u8 = 20;
/// See [`CHANGE_CIPHER_SPEC`].
pub const ALERT: u8 = 21;
/// See [`CHANGE_CIPHER_SPEC`].
pub const HANDSHAKE: u8 = 22;
/// See [`CHANGE_CIPHER_SPEC`].
pub const APPLICATION_DATA: u8 = 23;

/// Alert levels (RFC 8446, section 6).
pub const WARNING: u8 = 1;
/// See [`WARNING`].
pub const FATAL: u8 = 2;

/// Length of a record's header, bytes.
pub const HEADER: usize = 5;
/// Longest plaintext of a record, bytes (RFC 8446, section 5.1).
pub const MAX_PLAINTEXT: usize = 1 << 14;
/// Longest record, bytes, with its header (RFC 8446, section 5.2).
pub const MAX_RECORD: usize = HEADER + MAX_PLAINTEXT + 256;

/// Type of a KeyUpdate (RFC 8446, section 4).
const KEY_UPDATE: u8 = 24;
/// Type of a Finished.
const FINISHED: u8 = 20;

/// See the module.
pub struct HostileClient<S> {
    stream: S,
    version: ProtocolVersion,
    flight: Flight,
    /// Keys of now; without them records are in the clear.
    write: Option<Keys>,
    read: Option<Keys>,
    /// Keys to come: what is sent behind Finished, and in TLS 1.2 what is read behind ChangeCipherSpec.
    next_write: Option<Keys>,
    next_read: Option<Keys>,
    /// The start of a message of the server that is not complete yet.
    message: Vec<u8>,
    received: VecDeque<Received>,
}

impl HostileClient<TcpStream> {
    /// Connects to the client's server and completes the handshake.
    ///
    /// # Errors
    /// Of the socket, or of TLS.
    pub fn connect(client: &Client) -> io::Result<Self> {
        let mut hostile = Self::start_handshake(client, Self::socket(client)?)?;
        hostile.finish()?;
        Ok(hostile)
    }

    /// A socket to the client's server.
    ///
    /// # Errors
    /// Of the socket.
    pub fn socket(client: &Client) -> io::Result<TcpStream> {
        let socket = TcpStream::connect(client.address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(SILENCE))?;
        socket.set_write_timeout(Some(SILENCE))?;
        Ok(socket)
    }
}

/// Errors are those of the stream where a function names no others.
impl<S: Read + Write> HostileClient<S> {
    /// One that has no keys: it speaks in the clear and makes no handshake of its own.
    pub fn unkeyed(stream: S) -> Self {
        Self {
            stream,
            version: ProtocolVersion::TLSv1_2,
            flight: Flight::default(),
            write: None,
            read: None,
            next_write: None,
            next_read: None,
            message: Vec::new(),
            received: VecDeque::new(),
        }
    }

    /// Makes a handshake as far as the end of the server's first flight. What the client would answer is in
    /// [`HostileClient::flight`]; it is not sent.
    ///
    /// # Errors
    /// Of the stream, or of TLS.
    pub fn start_handshake(client: &Client, mut stream: S) -> io::Result<Self> {
        let opening = handshake::open(client, &mut stream)?;
        let mut hostile = Self::unkeyed(stream);
        hostile.version = opening.version;
        hostile.flight = opening.flight;
        hostile.next_write = Some(opening.write);
        if opening.version == ProtocolVersion::TLSv1_3 {
            hostile.write = opening.handshake;
            hostile.read = Some(opening.read);
        } else {
            hostile.next_read = Some(opening.read);
        }
        Ok(hostile)
    }

    /// What an honest client would send now.
    pub fn flight(&self) -> &Flight {
        &self.flight
    }

    /// Answers the server's first flight as an honest client does, and in TLS 1.2 waits for the server's Finished.
    ///
    /// # Errors
    /// Of the stream; `InvalidData` when the server refuses, and its alert is still to be received.
    pub fn finish(&mut self) -> io::Result<()> {
        let Flight { messages, finished } = self.flight.clone();
        if self.is_tls13() {
            self.send_long(HANDSHAKE, &[messages, finished].concat())?;
            self.change_keys();
            return Ok(());
        }
        self.send_long(HANDSHAKE, &messages)?;
        self.send_change_cipher_spec()?;
        self.send(HANDSHAKE, &finished)?;
        loop {
            match self.receive()? {
                Received::Message(FINISHED) => return Ok(()),
                Received::ChangeCipherSpec | Received::Message(_) => {}
                other => {
                    let detail = format!("not Finished: {other:?}");
                    self.received.push_front(other);
                    return Err(io::Error::new(ErrorKind::InvalidData, detail));
                }
            }
        }
    }

    /// Sends ChangeCipherSpec as an honest client of TLS 1.2 does, and goes on under the new keys.
    pub fn send_change_cipher_spec(&mut self) -> io::Result<()> {
        self.send_raw(&plain_record(CHANGE_CIPHER_SPEC, &[1]))?;
        self.change_keys();
        Ok(())
    }

    /// Goes on under the keys that follow the handshake.
    pub fn change_keys(&mut self) {
        self.write = self.next_write.take();
    }

    /// A record under the keys of now, or in the clear where there are none yet; see [`Keys::seal`].
    pub fn record(&mut self, kind: u8, content: &[u8], padding: usize) -> Vec<u8> {
        match &mut self.write {
            Some(keys) => keys.seal(kind, content, padding),
            None => plain_record(kind, content),
        }
    }

    /// Sends bytes as they are.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends `content` in one record.
    pub fn send(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        self.send_padded(kind, content, 0)
    }

    /// Sends `content` in as many records as it needs.
    fn send_long(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        content.chunks(MAX_PLAINTEXT).try_for_each(|part| self.send(kind, part))
    }

    /// As [`HostileClient::send`], with so many zero bytes behind it.
    pub fn send_padded(&mut self, kind: u8, content: &[u8], padding: usize) -> io::Result<()> {
        let record = self.record(kind, content, padding);
        self.send_raw(&record)
    }

    /// Sends application data in one record.
    pub fn send_data(&mut self, data: &[u8]) -> io::Result<()> {
        self.send(APPLICATION_DATA, data)
    }

    /// Sends an alert.
    pub fn send_alert(&mut self, level: u8, description: u8) -> io::Result<()> {
        self.send(ALERT, &[level, description])
    }

    /// Sends close_notify.
    pub fn send_close_notify(&mut self) -> io::Result<()> {
        self.send_alert(WARNING, 0)
    }

    /// Sends a KeyUpdate in records with these numbers of its bytes, each padded with so many zeros, and goes on under
    /// the next keys. `requested`: the server shall send one too.
    pub fn update_keys(&mut self, requested: bool, cut: usize, padding: usize) -> io::Result<()> {
        let message = key_update(requested.into());
        let (first, rest) = message.split_at(cut);
        for part in [first, rest].into_iter().filter(|part| !part.is_empty()) {
            self.send_padded(HANDSHAKE, part, padding)?;
        }
        self.write.as_mut().expect("the handshake has given keys").update();
        Ok(())
    }

    /// What it speaks over.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }

    fn is_tls13(&self) -> bool {
        self.version == ProtocolVersion::TLSv1_3
    }
}

/// A KeyUpdate with this request (RFC 8446, section 4.6.3).
pub fn key_update(request: u8) -> [u8; 5] {
    [KEY_UPDATE, 0, 0, 1, request]
}

/// A record in the clear.
///
/// # Panics
/// When its length does not fit into a header.
pub fn plain_record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("the length fits into a header").to_be_bytes();
    [&[kind, 3, 3, length[0], length[1]], content].concat()
}

/// Length of the message that begins here, with its header; none while that is not whole.
fn message_length(message: &[u8]) -> Option<usize> {
    let length = message.get(1..4)?;
    Some(4 + length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte)))
}

/// A whole record with its header; none when the stream ends before it.
fn read_record(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut record = vec![0; HEADER];
    let whole = stream.read_exact(&mut record).and_then(|()| {
        record.resize(HEADER + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
        stream.read_exact(&mut record[HEADER..])
    });
    match whole {
        Ok(()) => Ok(Some(record)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}
