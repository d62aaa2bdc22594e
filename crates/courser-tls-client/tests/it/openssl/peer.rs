//! The servers that the openssl engine is tried against, and one exchange with them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use courser_testkit::{Folder, KeyType, Leaf, PATIENCE, Process, TestCa, require};
use courser_tls::{Failure, State};
use courser_tls_client::{
    ClientConnection, ClientHandshakeInfo, ClientSessions, ClientTlsConfig, ServerName,
};

/// `openssl s_server -www`: it answers each request with a page about the connection.
pub(super) struct SServer {
    address: SocketAddr,
    /// The root of its certificate.
    pub(super) root: Vec<u8>,
    _process: Process,
    _folder: Folder,
}

impl SServer {
    /// With an RSA certificate for `localhost` and 127.0.0.1.
    pub(super) fn start(arguments: &[&str]) -> Option<Self> {
        let (ca, folder) = (TestCa::new(), Folder::new());
        let pair = ca.issue(&Leaf::new(KeyType::Rsa2048)).write_pair(&folder, "server");
        let files = [pair.chain.display().to_string(), pair.key.display().to_string()];
        Self::run(folder, &files, ca.root().to_vec(), arguments)
    }

    /// With a certificate of 1024 bits.
    pub(super) fn with_small_rsa(arguments: &[&str]) -> Option<Self> {
        let folder = Folder::new();
        let files = self_signed(&folder, "rsa:1024", "/CN=localhost")?;
        Self::run(folder, &files, Vec::new(), arguments)
    }

    fn run(folder: Folder, [chain, key]: &[String; 2], root: Vec<u8>, arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new(require("openssl")?);
        command.args(["s_server", "-www", "-accept", "127.0.0.1:0", "-cert", chain, "-key", key]);
        let process = Process::start(command.args(arguments));
        let address = process.wait_stdout("ACCEPT and its port", |lines| {
            lines.iter().find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok())
        });
        Some(Self { address, root, _process: process, _folder: folder })
    }
}

/// Files of a self-signed certificate and of its key.
pub(super) fn self_signed(folder: &Folder, key: &str, subject: &str) -> Option<[String; 2]> {
    let files = ["self.crt", "self.key"].map(|name| folder.join(name).display().to_string());
    let mut command = Command::new(require("openssl")?);
    command.args(["req", "-x509", "-nodes", "-days", "9", "-newkey", key, "-subj", subject]);
    let made = command.args(["-out", &files[0], "-keyout", &files[1]]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Some(files)
}

/// Result of a connection.
pub(super) struct ClientOutcome {
    pub(super) info: ClientHandshakeInfo,
    pub(super) page: String,
    pub(super) tickets: u32,
    pub(super) certificates: Vec<Vec<u8>>,
    pub(super) sessions: ClientSessions,
}

/// Requests the page. What comes in is handed on in small pieces, so that every record is met in pieces.
pub(super) fn exchange(
    server: &SServer,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
) -> Result<ClientOutcome, Failure> {
    exchange_as("localhost", server, config, sessions)
}

/// As [`exchange`], with the server called by another name.
pub(super) fn exchange_as(
    server_name: &str,
    server: &SServer,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
) -> Result<ClientOutcome, Failure> {
    let mut connection = ClientConnection::new(config, &name(server_name), sessions)?;
    let mut socket = TcpStream::connect(server.address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    let (mut page, mut outgoing, mut requested) = (Vec::new(), Vec::new(), false);
    let mut state = connection.process(&mut [], &mut page, &mut outgoing)?.state;
    while state != State::PeerClosed {
        if state == State::Open && !requested {
            connection.send(b"GET / HTTP/1.0\r\n\r\n", &mut [], &mut outgoing)?;
            requested = true;
        }
        // A server that has given up may be gone; what it sent before is still to be read.
        let _ = socket.write_all(&outgoing);
        outgoing.clear();
        let mut bytes = [0; 61];
        let count = socket.read(&mut bytes).unwrap_or(0);
        if count == 0 {
            break;
        }
        state = connection.process(&mut bytes[..count], &mut page, &mut outgoing)?.state;
    }
    let Some(info) = connection.handshake_info() else {
        panic!("the server closed in the middle of the handshake")
    };
    Ok(ClientOutcome {
        info,
        page: String::from_utf8_lossy(&page).into_owned(),
        tickets: connection.tickets_received(),
        certificates: connection.peer_certificates(),
        sessions: connection.into_sessions(),
    })
}

/// The beginning of a flight that repeats the session ID of `hello`, and then sends a certificate.
pub(super) fn promise_and_full_handshake(hello: &[u8], suite: u16) -> Vec<u8> {
    let id = &hello[5 + 4 + 2 + 32..][..33];
    let extensions = [0, 9, 0, 23, 0, 0, 0xff, 1, 0, 1, 0];
    let body = [&[3, 3][..], &[7; 32], id, &suite.to_be_bytes(), &[0], &extensions].concat();
    [message(2, &body), message(11, &[0, 0, 3, 0, 0, 0])].concat()
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).unwrap();
    [&[22, 3, 3, 0, length + 4, kind, 0, 0, length][..], body].concat()
}

pub(super) fn name(text: &str) -> ServerName {
    ServerName::parse(text).unwrap()
}
