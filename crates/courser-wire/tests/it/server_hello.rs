//! The session ID in what real servers sent, and in what none sends.

use std::fs;

use courser_wire::server_hello::{MAX_LENGTH, ServerSession, session_id};

fn sent(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/captured/server/{name}.bin", env!("CARGO_MANIFEST_DIR"));
    fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_session_is_resumed_under_the_id_that_it_got() {
    for server in ["openssl-id", "openssl-tls10", "nginx-id", "haproxy-id", "gnutls-id"] {
        let (first, again) = (sent(server), sent(&format!("{server}-resumed")));
        assert!(matches!(session_id(&first), ServerSession::Id(id) if id.len() == 32), "{server}");
        assert_eq!(session_id(&first), session_id(&again), "{server}");
    }
}

#[test]
fn a_session_with_a_ticket_has_no_id_of_its_own() {
    assert_eq!(session_id(&sent("openssl-ticket")), ServerSession::None);
    assert!(matches!(session_id(&sent("openssl-ticket-resumed")), ServerSession::Id(_)), "the client's");
}

#[test]
fn tls_13_returns_the_clients_bytes_which_are_no_id() {
    assert_eq!(session_id(&sent("openssl-tls13")), ServerSession::None);
}

#[test]
fn the_answer_is_there_after_the_suite_and_not_before() {
    let hello = sent("nginx-id");
    assert_eq!(session_id(&hello[..MAX_LENGTH - 1]), ServerSession::Incomplete);
    assert!(matches!(session_id(&hello[..MAX_LENGTH]), ServerSession::Id(_)));
}

#[test]
fn what_is_no_server_hello_has_no_session() {
    for other in [&b"HTTP/1.1 400 Bad Request"[..], &[21, 3, 3, 0, 2, 2, 40], &[22, 3, 3, 0, 40, 1]] {
        assert_eq!(session_id(other), ServerSession::None);
    }
    let mut hello = sent("nginx-id");
    hello[43] = 33;
    assert_eq!(session_id(&hello), ServerSession::None, "no ID has 33 bytes");
    let mut hello = sent("nginx-id");
    hello[3..5].copy_from_slice(&[0, 60]);
    assert_eq!(session_id(&hello), ServerSession::None, "its record ends before its suite");
}
