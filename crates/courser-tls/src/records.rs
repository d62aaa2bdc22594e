//! The record loop that client and server have in common: drives the library's state machine.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error};

/// Most bytes that a record adds to its plaintext: header 5, explicit nonce 8 (TLS 1.2), content type 1 (TLS 1.3),
/// tag 16.
pub const RECORD_OVERHEAD: usize = 30;

/// Largest plaintext of a record, bytes (RFC 8446, section 5.1).
pub const MAX_PLAINTEXT: usize = 1 << 14;

/// Most bytes of a peer that wait for the rest of their record or handshake message: four full records, as large as TLS
/// 1.3 allows (RFC 8446, section 5.2), on the wire. The longest message that the library reads, 64 KiB, fits into four;
/// padding (section 5.4) counts, or a message of a few bytes could make us hold a gigabyte.
pub const MAX_HELD: usize = 4 * (5 + MAX_PLAINTEXT + 256);

/// Result of a call to `process`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes at the front of the input that are consumed; the rest belongs in front of what arrives next.
    pub consumed: usize,
    /// State of the connection after it.
    pub state: State,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake needs more from the peer.
    Handshaking,
    /// Application data may flow.
    Open,
    /// The peer has sent close_notify: nothing more comes from it, but it may still be sent to.
    PeerClosed,
}

/// The library's client and server connections, which share their states but no trait.
pub trait RustlsConnection {
    /// The library's data for this end alone.
    type Data;

    /// The library's next state.
    fn step<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// The library's state that both ends have.
    fn common(&self) -> &CommonState;
}

impl RustlsConnection for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn step<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn common(&self) -> &CommonState {
        self
    }
}

impl RustlsConnection for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn step<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }

    fn common(&self) -> &CommonState {
        self
    }
}

/// Processes the records in `incoming` as far as they are complete. Plaintext is appended to `plaintext`, records to
/// send to `outgoing`, which ends with an alert on failure.
pub fn process<E: RustlsConnection>(
    tls: &mut E,
    incoming: &mut [u8],
    plaintext: &mut Vec<u8>,
    outgoing: &mut Vec<u8>,
) -> Result<Progress, Error> {
    let mut consumed = 0;
    let mut closed = false;
    loop {
        let UnbufferedStatus { discard, state, .. } = tls.step(&mut incoming[consumed..]);
        let state = match state {
            Err(error) => {
                collect_alert(tls, outgoing);
                return Err(error);
            }
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    plaintext.extend_from_slice(record?.payload);
                }
                None
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                encode(&mut data, outgoing);
                None
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                None
            }
            Ok(ConnectionState::PeerClosed) => {
                closed = true;
                None
            }
            Ok(ConnectionState::BlockedHandshake) => Some(State::Handshaking),
            Ok(ConnectionState::WriteTraffic(_)) if !closed => Some(State::Open),
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => Some(State::PeerClosed),
            Ok(_) => return Err(Error::General("early data was not expected".into())),
        };
        consumed += discard;
        if let Some(state) = state {
            return Ok(Progress { consumed, state });
        }
    }
}

/// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`process`] has left: the library
/// holds positions in it.
pub fn send<E: RustlsConnection>(
    tls: &mut E,
    plaintext: &[u8],
    received: &mut [u8],
    outgoing: &mut Vec<u8>,
) -> Result<(), Error> {
    write(tls, max_records_len(plaintext), received, outgoing, |traffic, room| {
        traffic.encrypt(plaintext, room)
    })
}

/// Appends a KeyUpdate to `outgoing`, and seals with a new key from then on (RFC 8446, section 4.6.3). `received` as for
/// [`send`].
///
/// # Errors
/// In TLS 1.2, where a connection has one key.
pub(crate) fn update_key<E: RustlsConnection>(
    tls: &mut E,
    received: &mut [u8],
    outgoing: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut is_updated = false;
    loop {
        match tls.step(received).state? {
            ConnectionState::WriteTraffic(_) if is_updated => return Ok(()),
            ConnectionState::WriteTraffic(traffic) => {
                traffic.refresh_traffic_keys()?;
                is_updated = true;
            }
            ConnectionState::EncodeTlsData(mut data) => encode(&mut data, outgoing),
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed => {}
            _ => return Err(Error::General("a key can only be updated after the handshake".into())),
        }
    }
}

/// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`send`].
pub fn send_close_notify<E: RustlsConnection>(
    tls: &mut E,
    received: &mut [u8],
    outgoing: &mut Vec<u8>,
) -> Result<(), Error> {
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is not general over lifetimes"
    )]
    write(tls, 2 + RECORD_OVERHEAD, received, outgoing, |traffic, room| traffic.queue_close_notify(room))
}

fn write<E: RustlsConnection>(
    tls: &mut E,
    mut room: usize,
    received: &mut [u8],
    outgoing: &mut Vec<u8>,
    mut write: impl FnMut(&mut WriteTraffic<'_, E::Data>, &mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), Error> {
    loop {
        match tls.step(received).state? {
            ConnectionState::WriteTraffic(mut traffic) => {
                match append(outgoing, room, |room| write(&mut traffic, room)) {
                    // A KeyUpdate that the peer has requested goes in front (RFC 8446, section 4.6.3); only this
                    // error reveals that it is due.
                    Err(EncryptError::InsufficientSize(needed)) if needed.required_size > room => {
                        room = needed.required_size;
                    }
                    written => return written.map_err(|error| Error::General(error.to_string())),
                }
            }
            ConnectionState::EncodeTlsData(mut data) => encode(&mut data, outgoing),
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::PeerClosed => {}
            ConnectionState::Closed => return Ok(()),
            _ => return Err(Error::General("records can only be written after the handshake".into())),
        }
    }
}

/// Most bytes that the records of `plaintext` take.
pub fn max_records_len(plaintext: &[u8]) -> usize {
    plaintext.len() + plaintext.len().div_ceil(MAX_PLAINTEXT) * RECORD_OVERHEAD
}

/// After an error the library still holds the alert for the peer, and maybe more before it. Any other call would
/// continue reading where it stopped.
fn collect_alert<E: RustlsConnection>(tls: &mut E, outgoing: &mut Vec<u8>) {
    while tls.common().wants_write() {
        match tls.step(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, outgoing),
            Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
            _ => return,
        }
    }
}

/// Appends an alert in the clear, unless one is there already.
pub(crate) fn append_alert(outgoing: &mut Vec<u8>, description: u8) {
    const ALERT: u8 = 21;
    let is_there = matches!(outgoing.last_chunk(), Some(&[ALERT, 3, _, 0, 2, 1..=2, _]));
    if !is_there {
        outgoing.extend([ALERT, 3, 3, 0, 2, 2, description]);
    }
}

/// Appends records that are ready to `outgoing`.
pub fn encode<D>(data: &mut EncodeTlsData<'_, D>, outgoing: &mut Vec<u8>) {
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        Ok(_) | Err(EncodeError::AlreadyEncoded) => return,
    };
    let encoded = append(outgoing, needed, |room| data.encode(room));
    debug_assert!(encoded.is_ok(), "the library required exactly this much room");
}

/// Lets `write` fill up to `room` bytes at the end of `outgoing`.
#[inline]
pub fn append<E>(
    outgoing: &mut Vec<u8>,
    room: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<(), E> {
    let start = outgoing.len();
    outgoing.resize(start + room, 0);
    let written = write(&mut outgoing[start..]);
    outgoing.truncate(start + *written.as_ref().unwrap_or(&0));
    written.map(drop)
}
