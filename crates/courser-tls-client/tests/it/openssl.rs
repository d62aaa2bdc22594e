//! The openssl engine against `openssl s_server`, which prints what it saw of each connection, and against bytes that no
//! honest server sends.

#![allow(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

mod peer;

use std::sync::Arc;

use crate::server::{Pair, Server};
use courser_testkit::{Folder, TestCa};
use courser_tls::names;
use courser_tls::{FailureKind, SessionOffer, State};
use courser_tls_client::{
    ClientConnection, ClientIdentity, ClientSessions, ClientTlsConfig, ClientTlsSpec, Engine, Resume,
    ResumptionMethod, Trust,
};
use peer::{ClientOutcome, SServer, exchange, name};

const OLD: [&str; 2] = ["-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"];

#[test]
fn each_version_is_spoken_alone() {
    let Some(server) = SServer::start(&OLD) else { return };
    for (version, shown) in [(0x0301, "TLSv1"), (0x0302, "TLSv1.1"), (0x0303, "TLSv1.2"), (0x0304, "TLSv1.3")]
    {
        let spec = ClientTlsSpec { versions: vec![version], ..ClientTlsSpec::default() };
        let got = full(&server, &spec);
        assert_eq!(got.info.version, version);
        assert!(got.page.contains(&format!("Protocol  : {shown}\n")), "{}", got.page);
    }
}

#[test]
fn versions_in_between_are_left_out() {
    let Some(server) = SServer::start(&[&OLD[..], &["-no_tls1_3", "-no_tls1_2"]].concat()) else { return };
    let spec = ClientTlsSpec { versions: vec![0x0304, 0x0303, 0x0301], ..ClientTlsSpec::default() };
    assert_eq!(full(&server, &spec).info.version, 0x0301, "TLS 1.1, which the server has, was not offered");
}

#[test]
fn each_key_exchange_of_the_old_world_is_done_as_asked() {
    let Some(server) = SServer::start(&OLD) else { return };
    for (suite, group) in [
        ("AES128-SHA", None),
        ("AES256-GCM-SHA384", None),
        ("DHE-RSA-AES128-SHA", None),
        ("DHE-RSA-AES256-GCM-SHA384", None),
        ("ECDHE-RSA-AES128-SHA", Some(0x0018)),
        ("ECDHE-RSA-AES256-SHA384", Some(0x0018)),
    ] {
        let code = names::suite_code(suite).unwrap();
        let spec = ClientTlsSpec {
            versions: vec![0x0303],
            suites: vec![code],
            groups: vec![0x0018],
            ..ClientTlsSpec::default()
        };
        let got = full(&server, &spec);
        assert_eq!((got.info.suite, got.info.group), (code, group), "{suite}");
        assert_eq!(got.info.scheme.is_some(), suite.contains("DHE"), "who has an ephemeral key signs it");
        assert!(got.page.contains(&format!("Cipher    : {suite}\n")), "{}", got.page);
    }
}

#[test]
fn a_certificate_of_1024_bits_does() {
    let Some(server) = SServer::with_small_rsa(&OLD) else { return };
    let got = full(&server, &ClientTlsSpec { versions: vec![0x0301], ..ClientTlsSpec::default() });
    assert_eq!(got.certificates.len(), 1);
    assert_eq!(got.info.scheme, None, "TLS 1.0 has none");
}

#[test]
fn sessions_are_resumed_as_asked_and_no_other_way() {
    use ResumptionMethod::{Psk, SessionId, Ticket};
    let ids_only = [&OLD[..], &["-no_ticket"]].concat();
    let (Some(tickets), Some(ids)) = (SServer::start(&OLD), SServer::start(&ids_only)) else { return };
    for (server, version, resume, expected) in [
        (&tickets, 0x0303, Resume::Ticket, Some(Ticket)),
        (&tickets, 0x0301, Resume::Ticket, Some(Ticket)),
        (&tickets, 0x0304, Resume::Ticket, Some(Psk)),
        (&tickets, 0x0303, Resume::SessionId, Some(SessionId)),
        (&ids, 0x0303, Resume::SessionId, Some(SessionId)),
        (&ids, 0x0301, Resume::SessionId, Some(SessionId)),
        (&ids, 0x0303, Resume::Ticket, None),
        (&tickets, 0x0304, Resume::SessionId, None),
        (&tickets, 0x0303, Resume::Never, None),
        (&tickets, 0x0304, Resume::Never, None),
    ] {
        let config = config(&ClientTlsSpec { versions: vec![version], resume, ..ClientTlsSpec::default() });
        let mut sessions = exchange(server, &config, ClientSessions::default()).unwrap().sessions;
        for _ in 0..3 {
            let got = exchange(server, &config, sessions).unwrap();
            let case = format!("{version:04x} {resume:?} {expected:?}");
            assert_eq!((got.info.offered, got.info.resumed), (expected, expected.is_some()), "{case}");
            let word = if expected.is_some() { "Reused, TLSv1" } else { "New, TLSv1" };
            assert!(got.page.contains(word), "{case}: {}", got.page);
            assert_eq!(got.info.scheme.is_some(), expected.is_none() && version == 0x0303, "{case}");
            sessions = got.sessions;
        }
    }
}

#[test]
fn a_ticket_that_comes_with_a_resumption_takes_the_place_of_the_one_before() {
    // OpenSSL's server renews no ticket that will do; the terminator renews each.
    let server = Server::new(0x0303, 0x001d, SessionOffer::Tickets);
    let config =
        config(&ClientTlsSpec { versions: vec![0x0303], resume: Resume::Ticket, ..ClientTlsSpec::default() });
    let mut sessions = ClientSessions::default();
    for turn in 0..4 {
        let mut pair = Pair::new(connection(&config, sessions), server.connection());
        while pair.state != State::Open {
            pair.client_turn().unwrap();
            pair.server_turn().unwrap();
        }
        assert_eq!(pair.client.handshake_info().unwrap().resumed, turn > 0, "connection {turn}");
        sessions = pair.client.into_sessions();
    }
}

#[test]
fn a_client_stores_tickets_up_to_its_limit_and_uses_each_once() {
    let Some(server) = SServer::start(&["-num_tickets", "4"]) else { return };
    let spec = ClientTlsSpec {
        versions: vec![0x0304],
        resume: Resume::Ticket,
        max_tickets: 3,
        ..ClientTlsSpec::default()
    };
    let config = config(&spec);
    let first = exchange(&server, &config, ClientSessions::default()).unwrap();
    assert_eq!((first.tickets, first.sessions.tickets()), (4, 3));
    let connection = ClientConnection::new(&config, &name("localhost"), first.sessions).unwrap();
    assert_eq!(connection.into_sessions().tickets(), 2);
}

#[test]
fn a_session_is_for_its_own_terms_and_its_own_server() {
    let Some(server) = SServer::start(&[]) else { return };
    let spec = ClientTlsSpec { resume: Resume::Ticket, max_tickets: 9, ..ClientTlsSpec::default() };
    let (one, other) = (config(&spec), config(&spec));
    let sessions = exchange(&server, &one, ClientSessions::default()).unwrap().sessions;
    let got = exchange(&server, &other, sessions).unwrap();
    assert_eq!((got.info.offered, got.info.resumed), (None, false));
    let elsewhere = ClientConnection::new(&other, &name("127.0.0.1"), got.sessions).unwrap();
    assert_eq!(elsewhere.into_sessions().tickets(), 4, "two of each config, none taken");
}

#[test]
fn another_hello_is_sent_when_it_is_asked_for() {
    let Some(server) = SServer::start(&["-groups", "P-384"]) else { return };
    let spec =
        ClientTlsSpec { versions: vec![0x0304], groups: vec![0x001d, 0x0018], ..ClientTlsSpec::default() };
    let info = full(&server, &spec).info;
    assert_eq!((info.retried, info.group), (true, Some(0x0018)));
    let spec = ClientTlsSpec { groups: vec![0x0018, 0x001d], ..spec };
    let info = full(&server, &spec).info;
    assert_eq!((info.retried, info.group), (false, Some(0x0018)));
}

#[test]
fn protocols_are_offered_and_schemes_are_what_was_asked_for() {
    let Some(server) = SServer::start(&["-alpn", "h2,http/1.1"]) else { return };
    let alpn = vec![b"spdy/3".to_vec(), b"http/1.1".to_vec()];
    for version in [0x0303, 0x0304] {
        let spec = ClientTlsSpec {
            versions: vec![version],
            alpn: alpn.clone(),
            schemes: vec![0x0805],
            ..ClientTlsSpec::default()
        };
        let info = full(&server, &spec).info;
        assert_eq!((info.alpn.as_deref(), info.scheme), (Some(&b"http/1.1"[..]), Some(0x0805)));
    }
}

#[test]
fn a_client_certificate_is_shown_when_it_is_asked_for() {
    let folder = Folder::new();
    let Some(files) = peer::self_signed(&folder, "rsa:2048", "/CN=client.test") else { return };
    let Some(server) = SServer::start(&["-Verify", "1", "-verify_return_error", "-CAfile", &files[0]]) else {
        return;
    };
    let [chain, key] = [&files[0], &files[1]].map(|file| std::fs::read(file).unwrap());
    let identity = Some(Arc::new(ClientIdentity::from_pem(&chain, &key).unwrap()));
    for version in [0x0303, 0x0304] {
        let spec =
            ClientTlsSpec { versions: vec![version], identity: identity.clone(), ..ClientTlsSpec::default() };
        let page = full(&server, &spec).page;
        assert!(page.contains("CN=client.test"), "the server prints the client's subject: {page}");
        let without = ClientTlsSpec { identity: None, ..spec };
        assert!(exchange(&server, &config(&without), ClientSessions::default()).is_err());
    }
}

#[test]
fn certificates_are_believed_only_with_their_root_and_their_name() {
    let Some(server) = SServer::start(&[]) else { return };
    let verifying = |root: Vec<u8>| {
        config(&ClientTlsSpec { trust: Trust::Roots(vec![root]), ..ClientTlsSpec::default() })
    };
    let right = verifying(server.root.clone());
    assert!(exchange(&server, &right, ClientSessions::default()).is_ok());
    let wrong = verifying(TestCa::new().root().to_vec());
    let failure = exchange(&server, &wrong, ClientSessions::default()).map(drop).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Certificate, "{failure}");
    let failure = peer::exchange_as("elsewhere.test", &server, &right, ClientSessions::default())
        .map(drop)
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Certificate, "{failure}");
    assert!(peer::exchange_as("127.0.0.1", &server, &right, ClientSessions::default()).is_ok());
}

#[test]
fn a_refusal_keeps_its_name_and_a_failed_connection_stays_failed() {
    let Some(server) = SServer::start(&["-tls1_3"]) else { return };
    let spec = ClientTlsSpec { versions: vec![0x0303], ..ClientTlsSpec::default() };
    let failure = exchange(&server, &config(&spec), ClientSessions::default()).map(drop).unwrap_err();
    assert_eq!((failure.kind, failure.alert()), (FailureKind::AlertReceived, Some("ProtocolVersion")));
}

#[test]
fn plain_http_is_not_tls() {
    let mut connection = connection(&config(&ClientTlsSpec::default()), ClientSessions::default());
    let mut answer = *b"HTTP/1.1 400 Bad Request\r\n\r\n";
    for _ in 0..2 {
        let failure = connection.process(&mut answer, &mut Vec::new(), &mut Vec::new()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::NotTls);
        assert!(failure.detail.contains("HTTP/1.1 400 Bad Request"), "{failure}");
    }
}

#[test]
fn a_full_handshake_behind_a_promise_to_resume_is_named() {
    let Some(server) = SServer::start(&[]) else { return };
    let spec = ClientTlsSpec {
        versions: vec![0x0303],
        suites: vec![0xc02f],
        resume: Resume::Ticket,
        ..ClientTlsSpec::default()
    };
    let config = config(&spec);
    let sessions = exchange(&server, &config, ClientSessions::default()).unwrap().sessions;
    let mut connection = connection(&config, sessions);
    let mut hello = Vec::new();
    connection.process(&mut [], &mut Vec::new(), &mut hello).unwrap();
    let mut flight = peer::promise_and_full_handshake(&hello, 0xc02f);
    let failure = connection.process(&mut flight, &mut Vec::new(), &mut Vec::new()).unwrap_err();
    assert_eq!(failure.kind, FailureKind::FalseResumption, "{failure}");
}

#[test]
fn what_the_library_cannot_do_is_named() {
    let refused =
        |spec: ClientTlsSpec| ClientTlsConfig::new(Engine::Openssl, &spec).map(drop).unwrap_err().to_string();
    assert!(refused(ClientTlsSpec { early_data: true, ..ClientTlsSpec::default() }).contains("early data"));
    assert!(
        refused(ClientTlsSpec { suites: vec![0x1301, 0x0003], ..ClientTlsSpec::default() })
            .contains("0x0003")
    );
    assert!(
        refused(ClientTlsSpec { groups: vec![0x001d, 0x6399], ..ClientTlsSpec::default() })
            .contains("0x6399")
    );
    assert!(
        refused(ClientTlsSpec { schemes: vec![0x0403, 0xfefe], ..ClientTlsSpec::default() })
            .contains("0xfefe")
    );
    assert!(refused(ClientTlsSpec { versions: vec![0x0300], ..ClientTlsSpec::default() }).contains("0x0300"));
    assert!(refused(ClientTlsSpec { versions: vec![], ..ClientTlsSpec::default() }).contains("version"));
}

fn full(server: &SServer, spec: &ClientTlsSpec) -> ClientOutcome {
    let got = exchange(server, &config(spec), ClientSessions::default()).unwrap();
    assert!(!got.info.resumed);
    got
}

fn config(spec: &ClientTlsSpec) -> ClientTlsConfig {
    ClientTlsConfig::new(Engine::Openssl, spec).unwrap()
}

fn connection(config: &ClientTlsConfig, sessions: ClientSessions) -> ClientConnection {
    ClientConnection::new(config, &name("localhost"), sessions).unwrap()
}
