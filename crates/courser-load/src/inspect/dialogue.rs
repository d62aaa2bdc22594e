//! One real connection with an engine: handshake, a request, what comes of it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use courser_tls::State;
use courser_tls_client::{ClientConnection, ClientHandshakeInfo, ClientSessions, ClientTlsConfig};

use super::prober::Prober;

/// What a connection came to.
pub(super) struct Dialogue {
    pub(super) facts: ClientHandshakeInfo,
    pub(super) tickets: u32,
    pub(super) certificates: Vec<Vec<u8>>,
    pub(super) sessions: ClientSessions,
}

/// Shakes hands, sends a request (as early data, if the terms have it and the session allows it), and listens until
/// something has come back: by then the server's tickets have come too. None if the handshake fails.
pub(super) fn hold(
    prober: &mut Prober,
    terms: &ClientTlsConfig,
    sessions: ClientSessions,
) -> Option<Dialogue> {
    let mut talk = Talk::new(prober, terms, sessions)?;
    let request = format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", prober.host);
    let is_early = talk.connection.send_early(request.as_bytes(), &mut talk.outgoing).is_some();
    talk.shake_hands()?;
    let facts = talk.connection.handshake_info()?;
    if !is_early || facts.early_data == Some(false) {
        talk.send(request.as_bytes());
    }
    talk.listen(1);
    let tickets = talk.connection.tickets_received();
    let certificates = talk.connection.peer_certificates();
    Some(Dialogue { facts, tickets, certificates, sessions: talk.connection.into_sessions() })
}

/// Shakes hands and ends the connection. The server's chain, DER; none if the handshake fails.
pub(super) fn shake_hands(prober: &mut Prober, terms: &ClientTlsConfig) -> Option<Vec<Vec<u8>>> {
    let mut talk = Talk::new(prober, terms, ClientSessions::default())?;
    talk.shake_hands()?;
    let _ = talk.connection.send_close_notify(&mut talk.received, &mut talk.outgoing);
    let _ = talk.transmit();
    Some(talk.connection.peer_certificates())
}

/// Bytes on the wire, record headers included. Where they differ from one handshake to the next (signatures do by a few), of
/// the one in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeBytes {
    /// The ClientHello.
    pub client_hello: usize,
    /// The ServerHello.
    pub server_hello: usize,
    /// Both directions, up to the client's Finished.
    pub all: usize,
}

/// A handshake, counted and measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    pub(super) bytes: HandshakeBytes,
    /// From the making of the key share to the client's Finished.
    pub(super) time: Duration,
    pub(super) group: Option<u16>,
    /// There were two ClientHellos.
    pub(super) retried: bool,
}

/// Shakes hands and ends the connection. None if the handshake fails.
pub(super) fn exchange(prober: &mut Prober, terms: &ClientTlsConfig) -> Option<Exchanged> {
    let socket = prober.connect().ok()?;
    let begun = Instant::now();
    let mut talk = Talk::on(socket, prober, terms, ClientSessions::default())?;
    talk.process()?;
    let client_hello = talk.sent;
    while talk.state == State::Handshaking {
        talk.receive()?;
        talk.process()?;
    }
    let time = begun.elapsed();
    let bytes = HandshakeBytes { client_hello, server_hello: talk.first, all: talk.sent + talk.taken };
    let facts = talk.connection.handshake_info()?;
    let _ = talk.connection.send_close_notify(&mut talk.received, &mut talk.outgoing);
    let _ = talk.transmit();
    Some(Exchanged { bytes, time, group: facts.group, retried: facts.retried })
}

/// Shakes hands, greets as an HTTP/2 client does and listens: whether the server's first frame is SETTINGS (RFC 9113,
/// section 3.4). None if the handshake fails.
pub(super) fn speaks_http2(prober: &mut Prober, terms: &ClientTlsConfig) -> Option<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let mut talk = Talk::new(prober, terms, ClientSessions::default())?;
    talk.shake_hands()?;
    talk.send(&[PREFACE, SETTINGS].concat());
    talk.listen(SETTINGS.len());
    Some(talk.plaintext.get(3) == SETTINGS.get(3))
}

/// A connection and what it has not done with yet.
struct Talk {
    socket: TcpStream,
    connection: ClientConnection,
    state: State,
    received: Vec<u8>,
    outgoing: Vec<u8>,
    /// What the server has said.
    plaintext: Vec<u8>,
    /// Bytes that were sent.
    sent: usize,
    /// Bytes that were received.
    taken: usize,
    /// Bytes of the server's first record: in TLS 1.3 of the ServerHello, as what comes next is encrypted.
    first: usize,
}

impl Talk {
    fn new(prober: &mut Prober, terms: &ClientTlsConfig, sessions: ClientSessions) -> Option<Self> {
        let socket = prober.connect().ok()?;
        Self::on(socket, prober, terms, sessions)
    }

    fn on(
        socket: TcpStream,
        prober: &Prober,
        terms: &ClientTlsConfig,
        sessions: ClientSessions,
    ) -> Option<Self> {
        let connection = ClientConnection::new(terms, &prober.name, sessions).ok()?;
        let state = State::Handshaking;
        let (received, outgoing, plaintext) = Default::default();
        let (sent, taken, first) = (0, 0, 0);
        Some(Self { socket, connection, state, received, outgoing, plaintext, sent, taken, first })
    }

    fn shake_hands(&mut self) -> Option<()> {
        self.process()?;
        while self.state == State::Handshaking {
            self.receive()?;
            self.process()?;
        }
        Some(())
    }

    /// Until so many bytes have come. A server that answers nothing to a request that it does not understand is waited
    /// for a moment only.
    fn listen(&mut self, wanted: usize) {
        let _ = self.socket.set_read_timeout(Some(MOMENT));
        while self.plaintext.len() < wanted && self.state == State::Open && self.receive().is_some() {
            if self.process().is_none() {
                break;
            }
        }
        let _ = self.connection.send_close_notify(&mut self.received, &mut self.outgoing);
        let _ = self.transmit();
    }

    fn send(&mut self, plaintext: &[u8]) {
        let _ = self.connection.send(plaintext, &mut self.received, &mut self.outgoing);
        let _ = self.transmit();
    }

    /// None when it has failed.
    fn process(&mut self) -> Option<()> {
        let Self { connection, received, outgoing, plaintext, .. } = self;
        if let [_, _, _, high, low, ..] = received[..]
            && self.first == 0
        {
            self.first = 5 + usize::from(u16::from_be_bytes([high, low]));
        }
        let progress = connection.process(received, plaintext, outgoing);
        let sent = self.transmit();
        let progress = progress.ok()?;
        self.received.drain(..progress.consumed);
        self.state = progress.state;
        sent
    }

    fn receive(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => {
                    self.received.extend_from_slice(&buffer[..count]);
                    self.taken += count;
                    return Some(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    fn transmit(&mut self) -> Option<()> {
        let sent = self.socket.write_all(&self.outgoing).ok();
        self.sent += self.outgoing.len();
        self.outgoing.clear();
        sent
    }
}

/// How long after a handshake and a request something is waited for. Tickets of servers that send them with their first
/// answer only are missed if it takes longer.
const MOMENT: Duration = Duration::from_secs(1);
