//! The client's end against `openssl s_server`, which prints what was offered to it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::Arc;

use courser_testkit::{Folder, KeyType, Leaf, PATIENCE, Process, TestCa, require};
use courser_tls::{Failure, FailureKind, State};
use courser_tls_client::{
    ClientConnection, ClientHandshakeInfo, ClientIdentity, ClientSessions, ClientTlsConfig, ClientTlsSpec,
    Engine, Resume, ResumptionMethod, ServerName, Trust,
};

const ENGINES: [Engine; 2] = [Engine::Lean, Engine::Real];
const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
const P256: u16 = 0x0017;
const P384: u16 = 0x0018;
const X25519: u16 = 0x001d;
const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

#[test]
fn what_is_offered_is_what_was_asked() {
    let Some(server) = Server::start(&["-www"]) else { return };
    let spec = ClientTlsSpec {
        versions: vec![TLS12],
        suites: vec![0xc02c, 0xcca9, 0xc02b],
        groups: vec![P384, P256],
        schemes: vec![0x0503, 0x0804, 0x0403],
        ..ClientTlsSpec::default()
    };
    for engine in ENGINES {
        let page = exchange(&server, &config(engine, &spec), ClientSessions::default()).page;
        let suites =
            "ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305 ECDHE-ECDSA-AES128-GCM-SHA256";
        assert_eq!(after(&page, "Ciphers common between both SSL end points:\n"), suites);
        assert_eq!(after(&page, "\nSignature Algorithms: "), "ECDSA+SHA384:RSA-PSS+SHA256:ECDSA+SHA256");
        assert_eq!(after(&page, "\nSupported groups: "), "secp384r1:secp256r1");
        assert_eq!(after(&page, "    Protocol  : "), "TLSv1.2");
    }
}

#[test]
fn each_version_and_group_carries_data() {
    let Some(server) = Server::start(&["-www"]) else { return };
    for (version, group) in [(TLS12, P256), (TLS12, P384), (TLS13, P256), (TLS13, P384), (TLS13, X25519)] {
        for engine in ENGINES {
            // OpenSSL takes the groups of TLS 1.2 for the curves of certificates as well (RFC 8422, section 5.1).
            let groups = if group == P384 && version == TLS12 { vec![P384, P256] } else { vec![group] };
            let spec = ClientTlsSpec {
                versions: vec![version],
                groups,
                schemes: vec![0x0403],
                ..ClientTlsSpec::default()
            };
            let got = exchange(&server, &config(engine, &spec), ClientSessions::default());
            assert_eq!((got.info.version, got.info.scheme), (version, Some(0x0403)));
            assert!(!got.info.retried && !got.info.resumed);
            assert!(got.info.group == Some(group), "{engine} {:?}", got.info);
        }
    }
}

#[test]
fn each_kind_of_resumption_is_what_the_server_sees() {
    let Some(server) = Server::start(&["-www"]) else { return };
    for (version, resume, expected) in [
        (TLS12, Resume::SessionId, ResumptionMethod::SessionId),
        (TLS12, Resume::Ticket, ResumptionMethod::Ticket),
        (TLS13, Resume::Ticket, ResumptionMethod::Psk),
    ] {
        for engine in ENGINES {
            let spec = ClientTlsSpec { versions: vec![version], resume, ..ClientTlsSpec::default() };
            let config = config(engine, &spec);
            let first = exchange(&server, &config, ClientSessions::default());
            assert_eq!((first.info.offered, first.info.resumed), (None, false));
            assert_eq!(after(&first.page, "\n---\nNew, "), suite_line(&first.page));
            let second = exchange(&server, &config, first.sessions);
            assert_eq!((second.info.offered, second.info.resumed), (Some(expected), true));
            assert_eq!(after(&second.page, "\n---\nReused, "), suite_line(&second.page));
            let tickets = if version == TLS13 { (2, 1) } else { (0, 0) };
            assert_eq!((first.tickets, second.tickets), tickets, "OpenSSL's default");
        }
    }
}

#[test]
fn what_the_server_refuses_is_first_outcome() {
    let Some(server) = Server::start(&["-www", "-no_ticket", "-no_cache", "-tls1_2"]) else { return };
    for resume in [Resume::SessionId, Resume::Ticket] {
        let config = config(
            Engine::Lean,
            &ClientTlsSpec { versions: vec![TLS12], resume, ..ClientTlsSpec::default() },
        );
        let first = exchange(&server, &config, ClientSessions::default());
        let second = exchange(&server, &config, first.sessions);
        assert!(!second.info.resumed);
    }
    let newer = config(Engine::Lean, &ClientTlsSpec { versions: vec![TLS13], ..ClientTlsSpec::default() });
    let failure = try_exchange(&server, &newer, ClientSessions::default()).err().expect("TLS 1.2 only");
    assert_eq!((failure.kind, failure.alert()), (FailureKind::AlertReceived, Some("ProtocolVersion")));
}

#[test]
fn a_second_hello_is_first_outcome() {
    let Some(server) = Server::start(&["-www", "-groups", "P-384"]) else { return };
    for engine in ENGINES {
        let spec =
            ClientTlsSpec { versions: vec![TLS13], groups: vec![X25519, P384], ..ClientTlsSpec::default() };
        let got = exchange(&server, &config(engine, &spec), ClientSessions::default());
        assert!(got.info.retried && got.info.group == Some(P384), "{:?}", got.info);
    }
}

#[test]
fn the_client_shows_its_certificate_to_who_asks() {
    let Some(server) = Server::start(&["-www", "-Verify", "1"]) else { return };
    let issued = TestCa::new().issue(&Leaf::new(KeyType::EcdsaP256).names(["client.example"]));
    let identity = ClientIdentity::from_pem(issued.chain_pem.as_bytes(), issued.key_pem.as_bytes());
    let identity = Arc::new(identity.expect("a good certificate"));
    for version in [TLS12, TLS13] {
        for engine in ENGINES {
            let with = ClientTlsSpec { identity: Some(Arc::clone(&identity)), ..ClientTlsSpec::default() };
            let with = ClientTlsSpec { versions: vec![version], ..with };
            let page = exchange(&server, &config(engine, &with), ClientSessions::default()).page;
            assert!(page.contains("DNS:client.example"), "{page}");
            let without = ClientTlsSpec { identity: None, ..with };
            let refused = try_exchange(&server, &config(engine, &without), ClientSessions::default());
            let refused = refused.map(|exchange| exchange.page.is_empty()).map_err(|failure| failure.kind);
            assert!(matches!(refused, Err(FailureKind::AlertReceived)), "{refused:?}");
        }
    }
}

#[test]
fn the_certificates_of_the_server_are_first_outcome_and_traced() {
    let Some(server) = Server::start(&["-www"]) else { return };
    let trust = Trust::Roots(vec![server.root.clone()]);
    for version in [TLS12, TLS13] {
        for engine in ENGINES {
            let spec =
                ClientTlsSpec { versions: vec![version], trust: trust.clone(), ..ClientTlsSpec::default() };
            let got = exchange(&server, &config(engine, &spec), ClientSessions::default());
            assert_eq!(got.certificates, std::slice::from_ref(&server.leaf));
        }
    }
}

#[test]
fn early_data_is_taken_or_not_and_first_outcome() {
    let Some(server) = Server::start(&["-early_data"]) else { return };
    for engine in ENGINES {
        let spec = ClientTlsSpec {
            versions: vec![TLS13],
            resume: Resume::Ticket,
            early_data: true,
            ..ClientTlsSpec::default()
        };
        let first = config(engine, &spec);
        let outcome = send_text(&server, &first, ClientSessions::default(), "nothing to be early with");
        assert_eq!((outcome.info.early_data, outcome.taken), (None, None));
        let text = format!("early with {engine}");
        let outcome = send_text(&server, &first, outcome.sessions, &text);
        assert_eq!((outcome.info.early_data, outcome.taken), (Some(true), Some(text.len())));
        server.process.wait_stdout("the early data", |lines| {
            lines.iter().any(|line| line.contains(&text)).then_some(())
        });
    }
}

#[test]
fn early_data_is_thrown_away_with_the_first_hello() {
    let Some(server) = Server::start(&["-early_data", "-groups", "P-384"]) else { return };
    for engine in ENGINES {
        let groups = vec![X25519, P384];
        let spec =
            ClientTlsSpec { resume: Resume::Ticket, early_data: true, groups, ..ClientTlsSpec::default() };
        let config = config(engine, &ClientTlsSpec { versions: vec![TLS13], ..spec });
        let first = send_text(&server, &config, ClientSessions::default(), "");
        let second = send_text(&server, &config, first.sessions, "never read");
        assert!(
            second.info.retried && second.info.offered == Some(ResumptionMethod::Psk),
            "{:?}",
            second.info
        );
        assert_eq!((second.info.early_data, second.taken), (Some(false), Some("never read".len())));
    }
    assert!(!server.process.stdout().iter().any(|line| line.contains("never read")));
}

/// `openssl s_server` with a certificate for `localhost`.
struct Server {
    address: SocketAddr,
    root: Vec<u8>,
    leaf: Vec<u8>,
    process: Process,
    _folder: Folder,
}

impl Server {
    fn start(arguments: &[&str]) -> Option<Self> {
        let (ca, folder) = (TestCa::new(), Folder::new());
        let issued = ca.issue(&Leaf::new(KeyType::EcdsaP256));
        let file = issued.write_combined(&folder, "server").display().to_string();
        // It ends with its input, so that it is given one that does not end.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 | exec \"$@\"", "sh"]).arg(require("openssl")?);
        command.args(["s_server", "-accept", "127.0.0.1:0", "-cert", &file, "-key", &file]);
        let process = Process::start(command.args(arguments));
        let address = process.wait_stdout("ACCEPT and its port", |lines| {
            lines.iter().find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok())
        });
        let (root, leaf) = (ca.root().to_vec(), issued.certificate.to_vec());
        Some(Self { address, root, leaf, process, _folder: folder })
    }
}

/// Result of a connection.
struct ClientOutcome {
    info: ClientHandshakeInfo,
    page: String,
    tickets: u32,
    certificates: Vec<Vec<u8>>,
    sessions: ClientSessions,
    /// Bytes of early data taken.
    taken: Option<usize>,
}

/// Requests the page that describes the connection.
fn exchange(server: &Server, config: &ClientTlsConfig, sessions: ClientSessions) -> ClientOutcome {
    try_exchange(server, config, sessions).expect("a good server")
}

fn try_exchange(
    server: &Server,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
) -> Result<ClientOutcome, Failure> {
    let mut line = Line::connect(server, config, sessions);
    line.open()?;
    line.client.send(REQUEST, &mut line.received, &mut line.outgoing)?;
    while line.turn()? != State::PeerClosed {}
    Ok(line.finish(None))
}

/// Sends early data if possible, and reads until the tickets have come; closes.
fn send_text(
    server: &Server,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
    text: &str,
) -> ClientOutcome {
    let mut line = Line::connect(server, config, sessions);
    let taken = line.client.send_early(text.as_bytes(), &mut line.outgoing);
    line.open().expect("a good server");
    while line.client.tickets_received() == 0 {
        line.turn().expect("a good server");
    }
    line.client.send_close_notify(&mut line.received, &mut line.outgoing).expect("it is open");
    line.socket.write_all(&line.outgoing).expect("the server listens");
    line.finish(taken)
}

/// A connection over a socket.
struct Line {
    client: ClientConnection,
    socket: TcpStream,
    received: Vec<u8>,
    outgoing: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Line {
    fn connect(server: &Server, config: &ClientTlsConfig, sessions: ClientSessions) -> Self {
        let name = ServerName::parse("localhost").expect("a name");
        let client = ClientConnection::new(config, &name, sessions).expect("the config fit");
        let socket = TcpStream::connect(server.address).expect("the server listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        Self { client, socket, received: Vec::new(), outgoing: Vec::new(), plaintext: Vec::new() }
    }

    fn open(&mut self) -> Result<(), Failure> {
        let Self { client, received, outgoing, plaintext, .. } = self;
        client.process(received, plaintext, outgoing)?;
        while self.turn()? == State::Handshaking {}
        Ok(())
    }

    /// Sends what is to be sent, and processes what comes next.
    fn turn(&mut self) -> Result<State, Failure> {
        let Self { client, socket, received, outgoing, plaintext } = self;
        // A server that has given up may be gone; what it sent before is still to be read.
        let _ = socket.write_all(outgoing);
        outgoing.clear();
        let mut bytes = [0; 4096];
        let count = socket.read(&mut bytes).expect("the server answers in time");
        if count == 0 {
            return Ok(State::PeerClosed);
        }
        received.extend_from_slice(&bytes[..count]);
        let progress = client.process(received, plaintext, outgoing)?;
        received.drain(..progress.consumed);
        Ok(progress.state)
    }

    fn finish(self, taken: Option<usize>) -> ClientOutcome {
        ClientOutcome {
            info: self.client.handshake_info().expect("the handshake is done"),
            page: String::from_utf8_lossy(&self.plaintext).into_owned(),
            tickets: self.client.tickets_received(),
            certificates: self.client.peer_certificates(),
            sessions: self.client.into_sessions(),
            taken,
        }
    }
}

fn config(engine: Engine, spec: &ClientTlsSpec) -> ClientTlsConfig {
    ClientTlsConfig::new(engine, spec).expect("the engine can do it")
}

/// The rest of the line that begins with `beginning`, its words one space apart.
fn after(page: &str, beginning: &str) -> String {
    let (_, rest) = page.split_once(beginning).unwrap_or_else(|| panic!("{beginning:?} is not in {page}"));
    rest.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How the page names version and suite of the connection.
fn suite_line(page: &str) -> String {
    let suite = after(page, "    Cipher    : ");
    let version = if suite.starts_with("TLS_") { "TLSv1.3" } else { "TLSv1.2" };
    format!("{version}, Cipher is {suite}")
}
