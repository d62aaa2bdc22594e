//! What has to hold for any bytes of a server. The fuzz target runs this on what it makes up, the tests on the corpus.

use std::sync::OnceLock;

use courser_tls::{FailureKind, SessionOffer};
use courser_tls_client::{
    ClientConnection, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume, ServerName,
};

use crate::server::{Pair, Server};

const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;

/// Where the session ID is in the record of a hello, be it the client's or the server's: behind the headers of record
/// and message, the version, the random bytes and its length.
const SESSION_ID: std::ops::Range<usize> = 44..76;

/// A client that is answered with `input` in pieces. The first byte is the size of a piece; the second one chooses the
/// client (bit 0: the real engine; bits 1 and 2: TLS 1.2, TLS 1.3; bit 3: with a session to resume; bit 4: the
/// session ID in the input's first record is replaced by the client's, which no stored byte can match). It never panics,
/// always ends, consumes no more than it has, fails again alike after a failure, and accepts no server without the keys.
pub(crate) fn client(input: &[u8]) {
    let [size, choice, bytes @ ..] = input else { return };
    let (mut client, hello) = begin(*choice);
    let mut bytes = bytes.to_vec();
    let echo = bytes.get_mut(SESSION_ID).filter(|_| choice & 16 != 0 && hello.get(43) == Some(&32));
    if let Some(echo) = echo {
        echo.copy_from_slice(&hello[SESSION_ID]);
    }
    let (mut received, mut plaintext, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        received.extend_from_slice(piece);
        match client.process(&mut received, &mut plaintext, &mut outgoing) {
            Ok(progress) => {
                assert!(progress.consumed <= received.len());
                received.drain(..progress.consumed);
            }
            Err(failure) => {
                assert_ne!(failure.kind, FailureKind::Internal, "{failure}");
                assert_eq!(client.process(&mut received, &mut plaintext, &mut outgoing), Err(failure));
                break;
            }
        }
    }
    assert!(plaintext.is_empty() && client.handshake_info().is_none(), "no plaintext without the keys");
    assert!(client.send(b"x", &mut received, &mut outgoing).is_err());
    assert!(client.into_sessions().tickets() <= 1);
}

/// A client that has sent its ClientHello.
fn begin(choice: u8) -> (ClientConnection, Vec<u8>) {
    static CONFIGS: OnceLock<Vec<ClientTlsConfig>> = OnceLock::new();
    let config = &CONFIGS.get_or_init(|| (0..8).map(config).collect())[usize::from(choice & 7)];
    let sessions = if choice & 8 != 0 { session(config, choice) } else { ClientSessions::default() };
    let mut client = new(config, sessions);
    let mut hello = Vec::new();
    client.process(&mut [], &mut Vec::new(), &mut hello).expect("nothing has gone wrong yet");
    (client, hello)
}

fn config(choice: u8) -> ClientTlsConfig {
    let engine = if choice & 1 != 0 { Engine::Real } else { Engine::Lean };
    let versions = match choice & 6 {
        2 => vec![TLS12],
        4 => vec![TLS13],
        _ => vec![TLS13, TLS12],
    };
    let groups = vec![0x001d, 0x0017];
    let spec = ClientTlsSpec {
        versions,
        groups,
        resume: Resume::Ticket,
        early_data: true,
        ..ClientTlsSpec::default()
    };
    ClientTlsConfig::new(engine, &spec).expect("known code points")
}

/// A client's sessions from an honest server.
fn session(config: &ClientTlsConfig, choice: u8) -> ClientSessions {
    static SERVERS: OnceLock<[Server; 2]> = OnceLock::new();
    let server = |version| Server::new(version, 0x001d, SessionOffer::Tickets);
    let servers = SERVERS.get_or_init(|| [server(TLS12), server(TLS13)]);
    let mut pair =
        Pair::new(new(config, ClientSessions::default()), servers[usize::from(choice & 6 == 4)].connection());
    while pair.client.handshake_info().is_none() {
        pair.client_turn().expect("a good server");
        pair.server_turn().expect("a good client");
    }
    pair.client_turn().expect("a good server");
    pair.client.into_sessions()
}

fn new(config: &ClientTlsConfig, sessions: ClientSessions) -> ClientConnection {
    let name = ServerName::parse("server.example").expect("a name");
    ClientConnection::new(config, &name, sessions).expect("the config fit")
}
