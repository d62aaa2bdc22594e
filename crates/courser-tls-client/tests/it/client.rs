//! The client's end against the terminator's own, in memory: what is offered, negotiated, stored and resumed.

use courser_testkit::{KeyType, Leaf, TestCa};
use courser_tls::{
    Failure, FailureKind, HandshakeInfo, Identity, SessionOffer, Sessions, State, TlsConfigError,
};
use courser_tls_client::{
    ClientConnection, ClientHandshakeInfo, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume,
    ResumptionMethod, ServerName, Trust,
};

use crate::server::{Pair, Server, TICKETS, sessions};

const ENGINES: [Engine; 2] = [Engine::Lean, Engine::Real];
const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
const P256: u16 = 0x0017;
const X25519: u16 = 0x001d;

#[test]
fn each_engine_agrees_on_each_version_and_group() {
    let cases = [(TLS12, P256), (TLS12, 0x0018), (TLS12, X25519)];
    let cases = cases.into_iter().chain([(TLS13, P256), (TLS13, 0x0018), (TLS13, X25519), (TLS13, 0x11ec)]);
    for (version, group) in cases {
        let server = Server::new(version, group, SessionOffer::Tickets);
        for engine in ENGINES {
            let spec =
                ClientTlsSpec { alpn: vec![b"http/1.1".to_vec()], ..spec(version, group, Resume::Never) };
            let (info, seen, sessions) = meet(&server, &config(engine, &spec), ClientSessions::default());
            assert_eq!((info.version, info.group), (version, Some(group)), "{engine}");
            assert_eq!((info.scheme, info.alpn.as_deref()), (Some(0x0403), Some(&b"http/1.1"[..])));
            assert_eq!((info.offered, info.resumed, info.retried), (None, false, false));
            assert_eq!((seen.version, seen.suite, seen.group), (info.version, info.suite, info.group));
            assert!(sessions.is_empty(), "nothing is stored where nothing is resumed");
        }
    }
}

#[test]
fn sessions_are_resumed_as_asked_and_as_often() {
    let cases = [
        (TLS12, Resume::SessionId, SessionOffer::SessionId, ResumptionMethod::SessionId),
        (TLS12, Resume::Ticket, SessionOffer::Tickets, ResumptionMethod::Ticket),
        (TLS13, Resume::Ticket, SessionOffer::Tickets, ResumptionMethod::Psk),
    ];
    for (version, resume, session, expected) in cases {
        let server = Server::new(version, P256, session);
        for engine in ENGINES {
            let config = config(engine, &spec(version, P256, resume));
            let (info, seen, mut sessions) = meet(&server, &config, ClientSessions::default());
            assert_eq!((info.offered, info.resumed, seen.resumed), (None, false, false));
            for _ in 0..3 {
                let (info, seen, limit) = meet(&server, &config, sessions);
                assert_eq!((info.offered, info.resumed, seen.resumed), (Some(expected), true, true));
                assert_eq!((info.scheme, info.group), (None, (version == TLS13).then_some(P256)));
                sessions = limit;
            }
            sessions.clear();
            let (info, seen, _) = meet(&server, &config, sessions);
            assert_eq!(
                (info.offered, info.resumed, seen.resumed, seen.resumption_failure),
                (None, false, false, None)
            );
        }
    }
}

#[test]
fn each_connection_takes_one_ticket_and_no_more_are_limit_than_asked() {
    let server = Server::new(TLS13, P256, SessionOffer::Tickets);
    for limit in 0..=6 {
        let spec = ClientTlsSpec { max_tickets: limit, ..spec(TLS13, P256, Resume::Ticket) };
        let config = config(Engine::Lean, &spec);
        let mut sessions = ClientSessions::default();
        for _ in 0..5 {
            let expected = (sessions.tickets().saturating_sub(1) + TICKETS).min(limit);
            sessions = meet(&server, &config, sessions).2;
            assert_eq!(sessions.tickets(), expected);
        }
        assert_eq!(sessions.is_empty(), limit == 0);
    }
}

#[test]
fn a_connection_that_comes_to_nothing_costs_its_ticket() {
    let server = Server::new(TLS13, P256, SessionOffer::Tickets);
    let config = config(Engine::Lean, &spec(TLS13, P256, Resume::Ticket));
    let mut sessions = meet(&server, &config, ClientSessions::default()).2;
    for left in [1, 0] {
        sessions = ClientConnection::new(&config, &name("server.example"), sessions)
            .expect("it fits")
            .into_sessions();
        assert_eq!(sessions.tickets(), left);
    }
}

#[test]
fn a_session_is_only_offered_where_it_came_from() {
    for version in [TLS12, TLS13] {
        let server = Server::new(version, P256, SessionOffer::Tickets);
        let spec = spec(version, P256, Resume::Ticket);
        let (ours, others) = (config(Engine::Lean, &spec), config(Engine::Lean, &spec));
        let offered = |config: &ClientTlsConfig, server_name| {
            let sessions = meet(&server, &ours, ClientSessions::default()).2;
            meet_as(server_name, &server, config, sessions).0.offered
        };
        assert_eq!(offered(&others, "server.example"), None, "other config");
        assert_eq!(offered(&ours, "other.example"), None, "another server");
        assert!(offered(&ours.clone(), "server.example").is_some(), "a clone of the config");
    }
}

#[test]
fn a_session_without_a_ticket_is_not_resumed_by_its_id_instead() {
    let sessions = Sessions { ticketer: None, ..sessions() };
    let identity = courser_tls::self_signed(&["server.example".to_owned()]).expect("a key can be made");
    let server = Server::with(TLS12, P256, SessionOffer::SessionId, identity, &sessions);
    let config = config(Engine::Real, &spec(TLS12, P256, Resume::Ticket));
    let sessions = meet(&server, &config, ClientSessions::default()).2;
    assert!(!sessions.is_empty(), "the server gave a session ID");
    let (info, seen, _) = meet(&server, &config, sessions);
    assert_eq!(
        (info.offered, info.resumed, seen.resumed, seen.resumption_failure),
        (None, false, false, None)
    );
}

#[test]
fn a_second_hello_is_told_with_and_without_resumption() {
    let server = Server::new(TLS13, P256, SessionOffer::Tickets);
    for engine in ENGINES {
        let mut spec = spec(TLS13, X25519, Resume::Ticket);
        spec.groups.push(P256);
        let config = config(engine, &spec);
        let (info, _, sessions) = meet(&server, &config, ClientSessions::default());
        assert_eq!((info.retried, info.resumed, info.group), (true, false, Some(P256)));
        let (info, _, _) = meet(&server, &config, sessions);
        assert_eq!((info.retried, info.resumed, info.group), (true, true, Some(P256)));
    }
}

#[test]
fn the_part_of_a_hybrid_group_does_without_a_second_hello() {
    let server = Server::new(TLS13, X25519, SessionOffer::Tickets);
    for engine in ENGINES {
        let mut spec = spec(TLS13, 0x11ec, Resume::Never);
        spec.groups.push(X25519);
        let (info, _, _) = meet(&server, &config(engine, &spec), ClientSessions::default());
        assert_eq!((info.retried, info.group), (false, Some(X25519)), "{engine}");
    }
}

#[test]
fn the_servers_bytes_may_come_one_at_a_time() {
    for version in [TLS12, TLS13] {
        let server = Server::new(version, X25519, SessionOffer::Tickets);
        for engine in ENGINES {
            let config = config(engine, &spec(version, X25519, Resume::Ticket));
            let whole = meet(&server, &config, ClientSessions::default()).0;
            let mut pair = begin("server.example", &server, &config, ClientSessions::default());
            settle_by_bytes(&mut pair);
            assert_eq!(pair.client.handshake_info(), Some(whole));
            talk(&mut pair);
        }
    }
}

#[test]
fn the_real_engine_wants_a_certificate_that_it_can_trace() {
    let ca = TestCa::with_intermediate();
    for version in [TLS12, TLS13] {
        let server = certified(&ca, version);
        let trusting = |root: &TestCa| trusting(Engine::Real, version, root);
        assert!(attempt(&server, &trusting(&ca), "server.example").is_ok());
        let others = attempt(&server, &trusting(&TestCa::new()), "server.example");
        assert_eq!(kind(others), Some(FailureKind::Certificate), "another authority");
        let misnamed = attempt(&server, &trusting(&ca), "other.example");
        assert_eq!(kind(misnamed), Some(FailureKind::Certificate), "another name");
    }
}

#[test]
fn the_lean_engine_checks_a_sample() {
    let server = certified(&TestCa::new(), TLS13);
    let config = trusting(Engine::Lean, TLS13, &TestCa::new());
    let refused: Vec<_> =
        (0..20).filter(|_| kind(attempt(&server, &config, "server.example")).is_some()).collect();
    assert!(refused[0] == 0 && refused.len() < 10, "the first, and then by chance: {refused:?}");
    let clone = kind(attempt(&server, &config.clone(), "server.example"));
    assert_eq!(clone, Some(FailureKind::Certificate), "each thread begins with a check");
}

#[test]
fn the_lean_engine_accepts_what_it_should_when_it_checks() {
    let ca = TestCa::new();
    for version in [TLS12, TLS13] {
        let server = certified(&ca, version);
        assert!(attempt(&server, &trusting(Engine::Lean, version, &ca), "server.example").is_ok());
    }
}

#[test]
fn an_engine_says_what_it_cannot_do() {
    let base = spec(TLS13, P256, Resume::Never);
    let refusal = |engine, spec: ClientTlsSpec| ClientTlsConfig::new(engine, &spec).err();
    for engine in ENGINES {
        let unknown = ClientTlsSpec { suites: vec![0x0035], ..base.clone() };
        assert_eq!(refusal(engine, unknown), Some(TlsConfigError::UnknownSuite(0x0035)));
        let unknown = ClientTlsSpec { groups: vec![0x0100], ..base.clone() };
        assert_eq!(refusal(engine, unknown), Some(TlsConfigError::UnknownGroup(0x0100)));
        let unknown = ClientTlsSpec { schemes: vec![0x0201], ..base.clone() };
        assert_eq!(refusal(engine, unknown), Some(TlsConfigError::UnknownScheme(0x0201)));
        let unknown = ClientTlsSpec { versions: vec![0x0301], ..base.clone() };
        assert_eq!(refusal(engine, unknown), Some(TlsConfigError::UnknownVersion(0x0301)));
        assert_eq!(
            refusal(engine, ClientTlsSpec { versions: vec![], ..base.clone() }),
            Some(TlsConfigError::NoVersion)
        );
        let by_id = ClientTlsSpec { resume: Resume::SessionId, ..base.clone() };
        assert!(matches!(refusal(engine, by_id), Some(TlsConfigError::Unable(_))));
        let no_root = ClientTlsSpec { trust: Trust::Roots(vec![vec![1, 2, 3]]), ..base.clone() };
        assert!(matches!(refusal(engine, no_root), Some(TlsConfigError::BadRoot(_))));
        let misfit = ClientTlsSpec { suites: vec![0xc02b], ..base.clone() };
        assert!(matches!(refusal(engine, misfit), Some(TlsConfigError::Inconsistent(_))));
    }
}

#[test]
fn nothing_is_sent_before_the_handshake_is_done() {
    let config = config(Engine::Lean, &spec(TLS13, P256, Resume::Never));
    let mut client =
        ClientConnection::new(&config, &name("server.example"), ClientSessions::default()).expect("it fits");
    let mut outgoing = Vec::new();
    assert!(client.send(b"x", &mut [], &mut outgoing).is_err() && outgoing.is_empty());
    assert!(client.send_close_notify(&mut [], &mut outgoing).is_err() && outgoing.is_empty());
    assert_eq!(client.send_early(b"x", &mut outgoing), None);
    assert_eq!(client.handshake_info(), None);
}

pub(crate) fn spec(version: u16, group: u16, resume: Resume) -> ClientTlsSpec {
    ClientTlsSpec { versions: vec![version], groups: vec![group], resume, ..ClientTlsSpec::default() }
}

pub(crate) fn config(engine: Engine, spec: &ClientTlsSpec) -> ClientTlsConfig {
    ClientTlsConfig::new(engine, spec).expect("the engine can do it")
}

fn trusting(engine: Engine, version: u16, ca: &TestCa) -> ClientTlsConfig {
    let trust = Trust::Roots(vec![ca.root().to_vec()]);
    config(engine, &ClientTlsSpec { trust, ..spec(version, P256, Resume::Never) })
}

fn certified(ca: &TestCa, version: u16) -> Server {
    let issued = ca.issue(&Leaf::new(KeyType::EcdsaP256).names(["server.example"]));
    let identity = Identity::from_pem(issued.chain_pem.as_bytes(), issued.key_pem.as_bytes())
        .expect("a good certificate");
    Server::with(version, P256, SessionOffer::Tickets, identity, &sessions())
}

pub(crate) fn name(text: &str) -> ServerName {
    ServerName::parse(text).expect("a name")
}

fn begin(server_name: &str, server: &Server, config: &ClientTlsConfig, sessions: ClientSessions) -> Pair {
    let client = ClientConnection::new(config, &name(server_name), sessions).expect("the config fit");
    Pair::new(client, server.connection())
}

/// A whole connection with data in both directions: the info of each end, and the client's sessions.
pub(crate) fn meet(
    server: &Server,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
) -> (ClientHandshakeInfo, HandshakeInfo, ClientSessions) {
    meet_as("server.example", server, config, sessions)
}

pub(crate) fn meet_as(
    server_name: &str,
    server: &Server,
    config: &ClientTlsConfig,
    sessions: ClientSessions,
) -> (ClientHandshakeInfo, HandshakeInfo, ClientSessions) {
    let mut pair = begin(server_name, server, config, sessions);
    settle(&mut pair).expect("two good ends");
    talk(&mut pair);
    let info = pair.client.handshake_info().expect("the handshake is done");
    let seen = pair.server.finish_handshake().expect("the handshake is done");
    (info, seen, pair.client.into_sessions())
}

fn attempt(server: &Server, config: &ClientTlsConfig, server_name: &str) -> Result<(), Failure> {
    let client = ClientConnection::new(config, &name(server_name), ClientSessions::default())?;
    settle(&mut Pair::new(client, server.connection()))
}

fn kind(result: Result<(), Failure>) -> Option<FailureKind> {
    result.err().map(|failure| failure.kind)
}

/// Turns until nothing is under way: the handshake is done and the tickets are delivered.
pub(crate) fn settle(pair: &mut Pair) -> Result<(), Failure> {
    loop {
        pair.client_turn()?;
        if pair.to_server.is_empty() {
            return Ok(());
        }
        pair.server_turn()?;
    }
}

/// As [`settle`], with the server's bytes handed on one at a time.
fn settle_by_bytes(pair: &mut Pair) {
    pair.client_turn().expect("nothing has gone wrong yet");
    while !pair.to_server.is_empty() {
        pair.server_turn().expect("a good client");
        for byte in std::mem::take(&mut pair.to_client) {
            pair.to_client.push(byte);
            pair.client_turn().expect("a good server");
        }
    }
}

/// Data in both directions, and the end of the client's.
fn talk(pair: &mut Pair) {
    assert_eq!(pair.state, State::Open);
    pair.client.send(b"ping", &mut pair.to_client, &mut pair.to_server).expect("it is open");
    pair.client.send_close_notify(&mut pair.to_client, &mut pair.to_server).expect("it is open");
    pair.server_turn().expect("a good client");
    pair.server.send(b"pong", &mut pair.to_server, &mut pair.to_client).expect("it is open");
    pair.server.send_close_notify(&mut pair.to_server, &mut pair.to_client).expect("it is open");
    pair.client_turn().expect("a good server");
    assert_eq!((&pair.server_read[..], &pair.client_read[..]), (&b"ping"[..], &b"pong"[..]));
    assert_eq!(pair.state, State::PeerClosed);
}
