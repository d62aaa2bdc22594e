//! A client that returns, and one who has recorded it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use courser_testkit::tls_client::{
    ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName,
};
use courser_tls::State;

use crate::PATIENCE;

/// A client with one session.
pub(crate) struct Client {
    terms: ClientTlsConfig,
    purse: ClientSessions,
}

impl Client {
    pub(crate) fn new(versions: &[u16], resume: Resume) -> Self {
        let offer = ClientTlsSpec { versions: versions.to_vec(), resume, ..ClientTlsSpec::default() };
        Self { terms: ClientTlsConfig::new(Engine::Real, &offer).unwrap(), purse: ClientSessions::default() }
    }

    /// TLS 1.2 without tickets.
    pub(crate) fn by_id() -> Self {
        Self::new(&[0x0303], Resume::SessionId)
    }

    /// Shakes hands and leaves; says whether its session was resumed.
    pub(crate) fn visit(&mut self, address: SocketAddr) -> bool {
        self.connect(address).leave(self)
    }

    /// Shakes hands and leaves with a fatal alert, as if the server had sent what cannot be opened.
    pub(crate) fn leave_angry(&mut self, address: SocketAddr) {
        let mut connection = self.connect(address);
        let mut garbage = b"\x17\x03\x03\x00\x20 this was not sealed under our key".to_vec();
        garbage.truncate(5 + 0x20);
        let mut outgoing = Vec::new();
        let refused = connection.tls.process(&mut garbage, &mut Vec::new(), &mut outgoing);
        assert!(refused.is_err() && !outgoing.is_empty(), "the client has an alert to send");
        connection.stream.write_all(&outgoing).unwrap();
        connection.leave(self);
    }

    /// The ClientHello that offers its session, as anyone on the wire can record it. The session stays.
    pub(crate) fn hello(&mut self) -> Vec<u8> {
        let (mut tls, mut hello) = (self.begin(), Vec::new());
        tls.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
        self.purse = tls.into_sessions();
        hello
    }

    /// A connection after its handshake.
    pub(crate) fn connect(&mut self, address: SocketAddr) -> Connection {
        let mut connection = Connection { tls: self.begin(), stream: dial(address) };
        connection.shake_hands();
        connection
    }

    /// As [`Client::connect`], with something that happens between the halves of the ClientHello.
    pub(crate) fn connect_in_halves(&mut self, address: SocketAddr, between: impl FnOnce()) -> Connection {
        let mut connection = Connection { tls: self.begin(), stream: dial(address) };
        let mut hello = Vec::new();
        connection.tls.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
        let (first, second) = hello.split_at(hello.len() / 2);
        connection.stream.write_all(first).unwrap();
        between();
        connection.stream.write_all(second).unwrap();
        connection.shake_hands();
        connection
    }

    fn begin(&mut self) -> ClientConnection {
        let name = ServerName::parse("server.example").unwrap();
        ClientConnection::new(&self.terms, &name, std::mem::take(&mut self.purse)).unwrap()
    }
}

fn dial(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

pub(crate) struct Connection {
    tls: ClientConnection,
    stream: TcpStream,
}

impl Connection {
    fn shake_hands(&mut self) {
        let (mut received, mut outgoing) = (Vec::new(), Vec::new());
        loop {
            let progress = self.tls.process(&mut received, &mut Vec::new(), &mut outgoing).unwrap();
            received.drain(..progress.consumed);
            self.stream.write_all(&outgoing).unwrap();
            outgoing.clear();
            if progress.state != State::Handshaking {
                return;
            }
            let mut bytes = [0; 4096];
            let read = self.stream.read(&mut bytes).unwrap();
            assert!(read > 0, "the server has closed");
            received.extend_from_slice(&bytes[..read]);
        }
    }

    /// Ends the client's direction; then, after something else, waits until the server has ended its own.
    pub(crate) fn half_close(mut self, between: impl FnOnce()) {
        let (mut received, mut outgoing, mut plaintext) = (Vec::new(), Vec::new(), Vec::new());
        self.tls.send_close_notify(&mut received, &mut outgoing).unwrap();
        self.stream.write_all(&outgoing).unwrap();
        between();
        self.stream.shutdown(Shutdown::Write).unwrap();
        self.stream.read_to_end(&mut received).unwrap();
        let progress = self.tls.process(&mut received, &mut plaintext, &mut Vec::new()).unwrap();
        assert_eq!((progress.state, plaintext.len()), (State::PeerClosed, 0));
    }

    fn leave(self, client: &mut Client) -> bool {
        let resumed = self.tls.handshake_info().unwrap().resumed;
        client.purse = self.tls.into_sessions();
        resumed
    }
}

/// A connection of one who has nothing of a client but its ClientHello.
pub(crate) struct Impostor(TcpStream);

impl Impostor {
    pub(crate) fn say(address: SocketAddr, hello: &[u8]) -> Self {
        let mut stream = dial(address);
        stream.write_all(hello).unwrap();
        Self(stream)
    }

    /// The server's next record: its type, and what is in it.
    pub(crate) fn hear(&mut self) -> (u8, Vec<u8>) {
        let mut header = [0; 5];
        self.0.read_exact(&mut header).unwrap();
        let mut content = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        self.0.read_exact(&mut content).unwrap();
        (header[0], content)
    }

    /// Sends `records`, and waits until the server has ended the connection.
    pub(crate) fn end_with(mut self, records: &[u8]) {
        self.0.write_all(records).unwrap();
        self.0.shutdown(Shutdown::Write).unwrap();
        self.0.read_to_end(&mut Vec::new()).unwrap();
    }
}
