//! The end of a session's life: absolute, whatever was renewed meanwhile.

use courser_testkit::Courser;
use courser_testkit::KeyType::EcdsaP256;
use courser_testkit::client::{Client, Resume, Version};

use super::visitor::Visitor;
use crate::stage::eventually;
use crate::support::{PSK, SESSION_ID, Site, TICKET, assert_line, line};

/// Long enough to come back once on a busy machine.
const LIFETIME: [&str; 2] = ["--session-lifetime", "3s"];

/// A client that comes back without a pause, resumed or not as `visit` says, is resumed until the lifetime of its
/// first session is over, and then no more.
#[track_caller]
fn ends(courser: &Courser, mut visit: impl FnMut() -> bool) {
    let mut visits = 1;
    eventually("the session's lifetime is over", || {
        visits += 1;
        !visit()
    });
    assert!(visits > 2, "it was never resumed");
    assert_line(
        &line(courser, visits),
        &[("session", "full"), ("not_resumed", "expired"), ("close_reason", "done")],
    );
}

#[test]
fn a_session_in_constant_use_ends_with_its_lifetime() {
    for way in [TICKET, SESSION_ID] {
        let site = Site::new();
        let courser = site.serve(&[EcdsaP256]).args(LIFETIME).start();
        let visitor = Visitor::new(&site, way);
        if visitor.come(&courser, "").is_none() {
            return;
        }
        ends(&courser, || visitor.comes_back(&courser).is_some_and(|said| said.text.contains("Reused, TLS")));
    }
}

/// With our own client, which keeps renewed tickets in both versions and whose clock stands still: OpenSSL keeps none
/// in TLS 1.2 and offers no old one in TLS 1.3.
#[test]
fn renewed_tickets_do_not_lengthen_a_session() {
    for version in [Version::Tls12, Version::Tls13] {
        let site = Site::new();
        let courser = site.serve(&[EcdsaP256]).args(LIFETIME).start();
        let client = Client::new(courser.address(), version, EcdsaP256, Resume::Ticket);
        let visit = || {
            let mut connection = client.connect().expect("the handshake succeeds");
            connection.get(1, true).expect("the page comes");
            connection.is_resumed()
        };
        assert!(!visit());
        ends(&courser, visit);
    }
}

#[test]
fn clients_are_told_the_lifetime() {
    let site = Site::new();
    let courser = site.serve(&[EcdsaP256]).args(["--session-lifetime", "1000s"]).start();
    for way in [TICKET, PSK] {
        let Some(said) = Visitor::new(&site, way).come(&courser, "") else { return };
        said.has("TLS session ticket lifetime hint: 1000 (seconds)");
    }
}
