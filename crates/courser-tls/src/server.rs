//! The server's end of one TLS connection: bytes in, bytes and plaintext out; no socket.

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion};

use courser_session::Miss;

use crate::failure::{Failure, FailureKind};
use crate::names;
use crate::plan::{self, HandshakePlan};
use crate::terms::{SuiteOrder, Terms};

/// Most bytes that a record adds to its plaintext: header 5, explicit nonce 8 (TLS 1.2), content type 1 (TLS 1.3),
/// tag 16.
pub const RECORD_OVERHEAD: usize = 30;

/// Largest plaintext of a record (RFC 8446, section 5.1).
const MAX_PLAINTEXT: usize = 1 << 14;

/// One connection.
pub struct ServerConnection {
    tls: UnbufferedServerConnection,
    plan: Option<Box<HandshakePlan>>,
    /// How it failed. The library may not be asked again then: it would raise its alert twice.
    failed: Option<Box<Failure>>,
}

/// What a call to [`ServerConnection::process`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes at the front of the input that are done with; the rest belongs in front of what arrives next.
    pub consumed: usize,
    /// Where the connection stands.
    pub state: State,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake needs more from the client.
    Handshaking,
    /// Application data may flow.
    Open,
    /// The client has sent close_notify: nothing more comes from it, but it may still be sent to.
    ClientClosed,
}

/// What a finished handshake agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Protocol version, code point.
    pub version: u16,
    /// Cipher suite, code point.
    pub suite: u16,
    /// Key exchange group, code point; none for a TLS 1.2 resumption.
    pub group: Option<u16>,
    /// Signature scheme, code point; none for a resumption.
    pub scheme: Option<u16>,
    /// Application protocol.
    pub alpn: Option<Vec<u8>>,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// Why an offered session was not.
    pub miss: Option<Miss>,
}

impl Facts {
    /// Name of the version.
    pub fn version_name(&self) -> &'static str {
        names::version(self.version).unwrap_or("unknown")
    }

    /// Name of the suite.
    pub fn suite_name(&self) -> &'static str {
        names::suite(self.suite).unwrap_or("unknown")
    }
}

impl ServerConnection {
    /// A connection on `terms` that uses `group` for the key exchange, with what `plan` says.
    pub fn new(terms: &Terms, group: u16, order: SuiteOrder, plan: HandshakePlan) -> Result<Self, Failure> {
        let tls = UnbufferedServerConnection::new(terms.config(group, order))?;
        Ok(Self { tls, plan: Some(Box::new(plan)), failed: None })
    }

    /// Processes the records in `incoming` as far as they are complete. Plaintext is appended to `plaintext`, records
    /// to send to `outgoing`. On failure `outgoing` ends with the alert that says so to the client, and every further call
    /// fails alike.
    pub fn process(
        &mut self,
        incoming: &mut [u8],
        plaintext: &mut Vec<u8>,
        outgoing: &mut Vec<u8>,
    ) -> Result<Progress, Failure> {
        self.check_not_failed()?;
        let Self { tls, plan, .. } = self;
        let progress = if plan.is_some() {
            plan::enter(plan, || drive(tls, incoming, plaintext, outgoing))
        } else {
            drive(tls, incoming, plaintext, outgoing)
        };
        self.forget_refused_session();
        progress.inspect_err(|failure| self.failed = Some(Box::new(failure.clone())))
    }

    /// What the handshake agreed on, once it is done; the plan ends here.
    pub fn finish_handshake(&mut self) -> Option<Facts> {
        let (version, suite) = (self.tls.protocol_version()?, self.tls.negotiated_cipher_suite()?);
        let plan = self.plan.take()?;
        let resumed = self.resumed();
        let group = self.tls.negotiated_key_exchange_group().map(|group| u16::from(group.name()));
        Some(Facts {
            version: u16::from(version),
            suite: u16::from(suite.suite()),
            group: group.filter(|_| !resumed || version == ProtocolVersion::TLSv1_3),
            scheme: plan.scheme.filter(|_| !resumed),
            alpn: self.tls.alpn_protocol().map(<[u8]>::to_vec),
            resumed,
            miss: plan.miss.filter(|_| !resumed),
        })
    }

    /// Encrypts `plaintext` into records at the end of `outgoing`. `received` is what [`Self::process`] has left: the
    /// library keeps positions in it.
    pub fn send(
        &mut self,
        plaintext: &[u8],
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let records = plaintext.len().div_ceil(MAX_PLAINTEXT);
        let room = plaintext.len() + records * RECORD_OVERHEAD;
        self.write(room, received, outgoing, |traffic, room| traffic.encrypt(plaintext, room))
    }

    /// Appends close_notify to `outgoing`; more than once does nothing. `received` as for [`Self::send`].
    pub fn send_close_notify(&mut self, received: &mut [u8], outgoing: &mut Vec<u8>) -> Result<(), Failure> {
        #[allow(
            clippy::redundant_closure_for_method_calls,
            reason = "the method itself is not general over lifetimes"
        )]
        self.write(2 + RECORD_OVERHEAD, received, outgoing, |traffic, room| traffic.queue_close_notify(room))
    }

    fn write(
        &mut self,
        room: usize,
        received: &mut [u8],
        outgoing: &mut Vec<u8>,
        write: impl FnOnce(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), Failure> {
        self.check_not_failed()?;
        loop {
            match self.tls.process_tls_records(received).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    return append(outgoing, room, |room| write(&mut traffic, room))
                        .map_err(|error| internal(&error.to_string()));
                }
                ConnectionState::EncodeTlsData(mut data) => encode(&mut data, outgoing),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                ConnectionState::Closed => return Ok(()),
                _ => return Err(internal("records can only be written after the handshake")),
            }
        }
    }

    /// Whether TLS 1.3 is being spoken.
    pub fn is_tls13(&self) -> bool {
        self.tls.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    fn check_not_failed(&self) -> Result<(), Failure> {
        self.failed.as_deref().map_or(Ok(()), |failure| Err(failure.clone()))
    }

    fn resumed(&self) -> bool {
        self.tls.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// A session that could be read but was not resumed (another suite or name) lends its age to nobody.
    fn forget_refused_session(&mut self) {
        let resumed = self.resumed();
        if let Some(plan) = self.plan.as_mut().filter(|plan| !resumed && plan.lifespan.is_some()) {
            plan.lifespan = None;
            plan.miss = Some(Miss::OtherParameters);
        }
    }
}

type WriteTraffic<'c> = rustls::unbuffered::WriteTraffic<'c, rustls::server::ServerConnectionData>;
type EncodeTlsData<'c> = rustls::unbuffered::EncodeTlsData<'c, rustls::server::ServerConnectionData>;

fn drive(
    tls: &mut UnbufferedServerConnection,
    incoming: &mut [u8],
    plaintext: &mut Vec<u8>,
    outgoing: &mut Vec<u8>,
) -> Result<Progress, Failure> {
    let mut consumed = 0;
    let mut closed = false;
    loop {
        let UnbufferedStatus { discard, state, .. } = tls.process_tls_records(&mut incoming[consumed..]);
        let state = match state {
            Err(error) => {
                collect_alert(tls, outgoing);
                return Err(error.into());
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
            Ok(ConnectionState::WriteTraffic(_) | ConnectionState::Closed) => Some(State::ClientClosed),
            Ok(_) => return Err(internal("early data was not offered")),
        };
        consumed += discard;
        if let Some(state) = state {
            return Ok(Progress { consumed, state });
        }
    }
}

/// After an error the library still holds the alert that tells the client, and maybe more before it. It must not be
/// asked for anything else: it would read on where it stopped.
fn collect_alert(tls: &mut UnbufferedServerConnection, outgoing: &mut Vec<u8>) {
    while tls.wants_write() {
        match tls.process_tls_records(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(mut data)) => encode(&mut data, outgoing),
            Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
            _ => return,
        }
    }
}

fn encode(data: &mut EncodeTlsData<'_>, outgoing: &mut Vec<u8>) {
    let needed = match data.encode(&mut []) {
        Err(EncodeError::InsufficientSize(size)) => size.required_size,
        Ok(_) | Err(EncodeError::AlreadyEncoded) => return,
    };
    let encoded = append(outgoing, needed, |room| data.encode(room));
    debug_assert!(encoded.is_ok(), "the library asked for exactly this much room");
}

/// Lets `write` fill up to `room` bytes at the end of `outgoing`.
fn append<E>(
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

fn internal(detail: &str) -> Failure {
    Failure { kind: FailureKind::Internal, detail: detail.into() }
}
